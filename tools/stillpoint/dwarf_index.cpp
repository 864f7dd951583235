#include "dwarf_index.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <dwarf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "exit_codes.hpp"
#include "os/descriptor.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr unsigned levels_max = 32;

/// The words of an integer type in one order, which compilers and programs write in several: "long unsigned int" is unsignedlong.
std::string integer_name(const std::vector<std::string_view>& words)
{
    const auto count = [&words](std::string_view word) { return std::ranges::count(words, word); };
    std::string name = count("unsigned") != 0 ? "unsigned" : count("signed") != 0 && count("char") != 0 ? "signed" : "";
    const auto longs = count("long");
    name += count("char") != 0 ? "char" : count("short") != 0 ? "short" : longs > 1 ? "longlong" : longs == 1 ? "long" : "int";
    return count("double") != 0 ? "longdouble" : name;
}

bool is_word_character(char one) { return one == '_' || std::isalnum(static_cast<unsigned char>(one)) != 0; }

/// A type's name as the index has it: without spaces and words like "struct", and each integer type in one spelling.
std::string key_of(std::string_view name)
{
    constexpr std::string_view integer_words[] = {"long", "short", "unsigned", "signed", "int", "char"};
    constexpr std::string_view tags[] = {"struct", "class", "union", "enum"};
    std::string key;
    std::vector<std::string_view> integer;
    const auto end_integer = [&] {
        key += integer.empty() ? "" : integer_name(integer);
        integer.clear();
    };
    for (std::size_t at = 0; at < name.size();) {
        std::size_t end = at;
        while (end < name.size() && is_word_character(name[end])) {
            ++end;
        }
        const std::string_view word = name.substr(at, end - at);
        const bool is_of_integer = std::ranges::find(integer_words, word) != std::end(integer_words) ||
                                   (word == "double" && !integer.empty());
        if (is_of_integer) {
            integer.push_back(word);
        } else if (!word.empty() && std::ranges::find(tags, word) == std::end(tags)) {
            end_integer();
            key += word;
        } else if (word.empty() && name[at] != ' ') {
            end_integer();
            key += name[at];
        }
        at = std::max(end, at + 1);
    }
    end_integer();
    return key;
}

std::string name_in(const std::string& scope, const char* name) { return scope.empty() ? name : scope + "::" + name; }

ProgramError no_debug_information(const std::string& path, Dwfl_Module* module)
{
    const unsigned char* bits = nullptr;
    GElf_Addr place = 0;
    const int bytes = dwfl_module_build_id(module, &bits, &place);
    std::string id;
    for (int i = 0; i < bytes; ++i) {
        id += text_of("{:02x}", static_cast<unsigned>(bits[i]));
    }
    return {exit_codes::no_input,
            text_of("{}: it has no debug information, so its types are not known: compile it with -g, or install its separate debug file{}",
                    path, id.empty() ? std::string() : text_of(" (build id {})", id)),
            "compile the program with -g"};
}

}  // namespace

std::uint64_t number_of(Dwarf_Die& die, unsigned attribute, std::uint64_t otherwise)
{
    Dwarf_Attribute found;
    Dwarf_Word value = 0;
    Dwarf_Sword signed_value = 0;
    if (dwarf_attr_integrate(&die, attribute, &found) == nullptr) {
        return otherwise;
    }
    const unsigned form = dwarf_whatform(&found);
    if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
        return dwarf_formsdata(&found, &signed_value) == 0 ? static_cast<std::uint64_t>(signed_value) : otherwise;
    }
    return dwarf_formudata(&found, &value) == 0 ? value : otherwise;
}

bool has_flag(Dwarf_Die& die, unsigned attribute)
{
    Dwarf_Attribute found;
    bool is_set = false;
    return dwarf_attr(&die, attribute, &found) != nullptr && dwarf_formflag(&found, &is_set) == 0 && is_set;
}

bool referred(Dwarf_Die& die, unsigned attribute, Dwarf_Die& found)
{
    Dwarf_Attribute reference;
    return dwarf_attr_integrate(&die, attribute, &reference) != nullptr && dwarf_formref_die(&reference, &found) != nullptr;
}

std::uint64_t offset_of(Dwarf_Die& die)
{
    Dwarf_Attribute place;
    if (dwarf_attr(&die, DW_AT_data_member_location, &place) == nullptr) {
        return 0;
    }
    Dwarf_Word number = 0;
    if (dwarf_formudata(&place, &number) == 0) {
        return number;
    }
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_getlocation(&place, &operations, &count) == 0 && count == 1 && operations[0].atom == DW_OP_plus_uconst) {
        return operations[0].number;
    }
    return not_said;
}

std::optional<std::uint64_t> address_of(Dwarf_Die& die)
{
    Dwarf_Attribute place;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_attr(&die, DW_AT_location, &place) == nullptr || dwarf_getlocation(&place, &operations, &count) != 0 || count != 1) {
        return std::nullopt;
    }
    Dwarf_Addr address = operations[0].number;
    Dwarf_Attribute listed;
    const bool is_listed = operations[0].atom == DW_OP_addrx || operations[0].atom == DW_OP_GNU_addr_index;
    if (is_listed && (dwarf_getlocation_attr(&place, &operations[0], &listed) != 0 || dwarf_formaddr(&listed, &address) != 0)) {
        return std::nullopt;
    }
    return is_listed || operations[0].atom == DW_OP_addr ? std::optional<std::uint64_t>(address) : std::nullopt;
}

tl::expected<std::unique_ptr<DwarfIndex>, ProgramError> DwarfIndex::open(const std::string& path)
{
    const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) {
        const int code = errno == EACCES ? exit_codes::no_permission : exit_codes::no_input;
        return tl::unexpected<ProgramError>({code, text_of("{}: {}", path, std::strerror(errno)), "name the compiled program"});
    }
    struct stat kind{};
    if (fstat(file.get(), &kind) != 0 || !S_ISREG(kind.st_mode)) {
        return tl::unexpected<ProgramError>({exit_codes::data_error, text_of("{}: it is not a file: name the compiled program", path)});
    }
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = nullptr};
    auto index = std::make_unique<DwarfIndex>();
    index->dwfl_.reset(dwfl_begin(&callbacks));
    dwfl_report_begin(index->dwfl_.get());
    Dwfl_Module* const module = dwfl_report_offline(index->dwfl_.get(), "", path.c_str(), -1);
    dwfl_report_end(index->dwfl_.get(), nullptr, nullptr);
    if (module == nullptr) {
        return tl::unexpected<ProgramError>(
            {exit_codes::data_error,
             text_of("{}: it cannot be read as a program ({}): name the compiled program, not a script", path, dwfl_errmsg(-1))});
    }
    Dwarf_Addr bias = 0;
    Dwarf* const dwarf = dwfl_module_getdwarf(module, &bias);
    if (dwarf == nullptr) {
        return tl::unexpected<ProgramError>(no_debug_information(path, module));
    }
    index->read_units(dwarf);
    if (Dwarf* const shared = dwarf_getalt(dwarf); shared != nullptr) {
        index->read_units(shared);
    }
    if (index->types_.empty()) {
        return tl::unexpected<ProgramError>(no_debug_information(path, module));
    }
    return index;
}

void DwarfIndex::read_units(Dwarf* dwarf)
{
    Dwarf_CU* unit = nullptr;
    std::uint8_t unit_type = 0;
    Dwarf_Die top;
    Dwarf_Die split;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, &unit_type, &top, &split) == 0) {
        Dwarf_Die& root = unit_type == DW_UT_skeleton && split.addr != nullptr ? split : top;
        const char* const name = dwarf_diename(&root);
        read_children(root, "", name == nullptr ? "" : name, 0);
    }
}

void DwarfIndex::read_children(Dwarf_Die& parent, const std::string& scope, const std::string& file, unsigned depth)
{
    if (depth < levels_max) {
        for_each_child(parent, [&](Dwarf_Die& child) {
            read_child(child, scope, file, depth);
            return true;
        });
    }
}

void DwarfIndex::read_child(Dwarf_Die& child, const std::string& scope, const std::string& file, unsigned depth)
{
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_variable) {
        add_variable(child, scope, file);
        return;
    }
    const char* const name = dwarf_diename(&child);
    if (tag == DW_TAG_namespace) {
        read_children(child, name == nullptr ? scope : name_in(scope, name), file, depth + 1);
        return;
    }
    const bool has_members = tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
    const bool is_type = has_members || tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef || tag == DW_TAG_base_type;
    if (is_type && name != nullptr) {
        const std::string full = name_in(scope, name);
        add_type(child, full);
        if (full.starts_with("stillpoint::detail::durable_class<")) {
            add_durable_class(child);
        }
        if (has_members) {
            read_children(child, full, file, depth + 1);
        }
    }
}

void DwarfIndex::add_type(Dwarf_Die& die, const std::string& name)
{
    qualified_.emplace(die.addr, name);
    const bool is_declaration = has_flag(die, DW_AT_declaration);
    const auto [place, is_new] = types_.try_emplace(key_of(name), NamedType{die, is_declaration});
    const bool is_better = place->second.is_declaration ||
                           (dwarf_tag(&place->second.die) == DW_TAG_typedef && dwarf_tag(&die) != DW_TAG_typedef);
    if (!is_new && is_better && !is_declaration) {
        place->second = {die, is_declaration};
    }
}

/// The class that a template was made for.
void DwarfIndex::add_durable_class(Dwarf_Die& instance)
{
    for_each_child(instance, [this](Dwarf_Die& child) {
        if (Dwarf_Die made_for; dwarf_tag(&child) == DW_TAG_template_type_parameter && referred(child, DW_AT_type, made_for)) {
            durable_classes_.push_back(made_for);
            return false;
        }
        return true;
    });
}

void DwarfIndex::add_variable(Dwarf_Die& die, const std::string& scope, const std::string& file)
{
    Dwarf_Die declared;
    std::string name;
    if (referred(die, DW_AT_specification, declared)) {
        name = qualified_name(declared);
    }
    if (name.empty()) {
        const char* const own = dwarf_diename(&die);
        if (own == nullptr) {
            return;
        }
        name = name_in(scope, own);
    }
    qualified_.emplace(die.addr, name);
    if (dwarf_hasattr(&die, DW_AT_location) != 0) {
        variables_[name].push_back({die, file});
    }
}

Dwarf_Die* DwarfIndex::type_named(std::string_view name)
{
    auto found = types_.find(key_of(name));
    if (found == types_.end() && name == "bool") {
        found = types_.find("_Bool");
    }
    return found == types_.end() || found->second.is_declaration ? nullptr : &found->second.die;
}

Dwarf_Die* DwarfIndex::instance_named(std::string_view beginning)
{
    const std::string key = key_of(beginning);
    Dwarf_Die* found = nullptr;
    for (auto& [name, type] : types_) {
        const bool fits = !type.is_declaration && name.size() > key.size() && name.starts_with(key) && name.ends_with('>') &&
                          (name[key.size()] == ',' || name.find_first_not_of('>', key.size()) == std::string::npos);
        if (fits && found != nullptr) {
            return nullptr;
        }
        found = fits ? &type.die : found;
    }
    return found;
}

const std::vector<DwarfIndex::Variable>* DwarfIndex::variables_named(std::string_view name) const
{
    const auto found = variables_.find(std::string(name));
    return found == variables_.end() ? nullptr : &found->second;
}

std::string_view DwarfIndex::qualified_name(const Dwarf_Die& die) const
{
    const auto found = qualified_.find(die.addr);
    return found == qualified_.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<std::string> DwarfIndex::names_with(std::string_view part) const
{
    constexpr std::size_t names_max = 5;
    const std::string key = key_of(part);
    std::vector<std::string> names;
    for (const auto& [name, type] : types_) {
        if (!type.is_declaration && name.find(key) != std::string::npos) {
            names.emplace_back(qualified_name(type.die));
        }
    }
    std::ranges::sort(names, {}, [](const std::string& name) { return std::pair(name.size(), name); });
    names.resize(std::min(names.size(), names_max));
    return names;
}

}  // namespace stillpoint::tool
