#include "type_descriptions.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "elf_file.hpp"
#include "output.hpp"
#include "program_types.hpp"
#include "runtime/kept_types.hpp"
#include "runtime/type_text.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::tool {

namespace {

/// An environment variable has at most 128 KiB.
constexpr std::size_t text_bytes_max = std::size_t{96} * 1024;
/// Types that lead to more types than these are not compared to their end.
constexpr std::size_t types_max = 2000;

class Describer {
public:
    explicit Describer(ProgramTypes& program) : program_(program) {}

    void add_root(const std::string& root, TypeId type) { found_.roots[root] = name_of(type, root); }
    /// A class is compared by its name, whatever objects have it.
    void add_class(TypeId type) { static_cast<void>(name_of(type, "")); }
    [[nodiscard]] std::string text()
    {
        while (!waiting_.empty()) {
            const auto [name, id] = *waiting_.begin();
            waiting_.erase(waiting_.begin());
            if (found_.types.size() < types_max && !found_.types.contains(name)) {
                add_type(name, id);
            }
        }
        return type_text::text_of(found_);
    }

private:
    /// `owner` names a type that has no name.
    std::string name_of(TypeId id, const std::string& owner)
    {
        const ProgramType type = program_.type(id);
        switch (type.kind) {
        case TypeKind::signed_number: return text_of("i{}", type.size * 8);
        case TypeKind::unsigned_number: return text_of("u{}", type.size * 8);
        case TypeKind::floating: return text_of("f{}", type.size * 8);
        case TypeKind::boolean: return "bool";
        case TypeKind::character: return text_of("char{}", type.size * 8);
        case TypeKind::nothing: return "nothing";
        case TypeKind::lock: return text_of("lock {} of {} bytes", type.name, type.size);
        case TypeKind::opaque: return text_of("{} of {} bytes", type.name.empty() ? "something" : type.name, type.size);
        case TypeKind::pointer: return "*" + name_of(type.target, owner);
        case TypeKind::array: return text_of("{}[{}]", name_of(type.target, owner), type.is_unbounded ? 0 : type.count);
        case TypeKind::enumeration:
        case TypeKind::record: break;
        }
        const std::string name = without_tabs(type.name.empty() ? owner : without_keyword(type.name));
        if (is_of_a_library(name)) {
            if (looked_into_.insert(id).second) {  // Once: arguments are said again in those of an allocator.
                std::ranges::for_each(type.arguments, [&](TypeId argument) { static_cast<void>(name_of(argument, owner)); });
            }
        } else if (!name.empty()) {
            waiting_.emplace(name, id);
        }
        return name;
    }

    void add_type(const std::string& name, TypeId id)
    {
        const ProgramType type = program_.type(id);
        type_text::Type described{std::to_string(type.size), {}};
        for (const TypeMember& member : type.members) {
            const std::string place = member.bits == 0 ? std::to_string(member.offset)
                                                       : text_of("{}.{}:{}", member.offset, member.bit_offset, member.bits);
            const std::string own = without_tabs(member.name.empty() ? text_of("(unnamed at {})", place) : member.name);
            described.members.push_back({own, place, name_of(member.type, name + "." + own)});
        }
        for (const auto& [value, word] : type.enumerators) {
            described.members.push_back({without_tabs(word), std::to_string(value), ""});
        }
        found_.types.emplace(name, std::move(described));
    }

    /// Members of the standard library and of Stillpoint's headers are their own business: their names change while their layout does not.
    /// The types that they are made for are compared.
    static bool is_of_a_library(std::string_view name)
    {
        return name.starts_with("std::") || name.starts_with("__gnu_cxx::") || name.starts_with("stillpoint::");
    }

    /// C says "struct item", C++ "item".
    static std::string without_keyword(std::string_view name)
    {
        for (const std::string_view keyword : {"struct ", "union ", "enum ", "class "}) {
            if (name.starts_with(keyword)) {
                name.remove_prefix(keyword.size());
            }
        }
        return std::string(name);
    }

    static std::string without_tabs(std::string name)
    {
        for (char& c : name) {
            c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
        return name;
    }

    ProgramTypes& program_;
    type_text::Types found_;
    std::set<std::pair<std::string, TypeId>> waiting_;
    std::set<TypeId> looked_into_;  ///< of libraries
};

/// The functions that the headers for C++ call for it.
bool finds_objects_by_name(const ElfFile& file)
{
    const auto symbols = file.needed_symbols();
    return std::ranges::any_of(
        symbols, [](const std::string& name) { return name == "sp_root_find" || (name.starts_with("sp_") && name.ends_with("_object")); });
}

template <std::size_t size>
std::string text_in(const char (&field)[size])
{
    return {field, strnlen(field, size)};
}

std::map<std::string, std::string> root_types_in(const ElfFile& program)
{
    std::map<std::string, std::string> found;
    const std::string records = program.contents("sp_root_types");
    for (std::size_t at = 0; at + sizeof(sp_root_record) <= records.size();) {
        sp_root_record record{};
        std::memcpy(&record, records.data() + at, sizeof record);
        if (record.handle[0] == '\0') {
            at += sizeof record.size_bytes;  // The linker may leave zeroes between the records of two objects.
            continue;
        }
        found.emplace(text_in(record.handle), text_in(record.type));
        at += sizeof record;
    }
    return found;
}

/// Empty: there is nothing to say.
std::string describe_types(const std::string& program)
{
    const ElfFile file(program);
    const auto roots = root_types_in(file);
    const Elf64_Shdr variables = file.section("sp_persistent");
    if (roots.empty() && variables.sh_size == 0 && !finds_objects_by_name(file)) {
        return {};
    }
    const auto types = ProgramTypes::open(program);
    if (!types) {
        return {};
    }
    Describer describer(**types);
    for (const auto& [handle, name] : roots) {
        if (const auto type = (*types)->find_type(name)) {
            describer.add_root("root " + handle, *type);
        }
    }
    for (const auto& [name, variable] : (*types)->variables_between(variables.sh_addr, variables.sh_addr + variables.sh_size)) {
        describer.add_root("global " + name, variable.type);
    }
    for (const TypeId type : (*types)->durable_classes()) {
        describer.add_class(type);
    }
    std::string text = describer.text();
    return text.size() <= text_bytes_max ? text : std::string();
}

}  // namespace

std::map<std::string, std::string> stated_root_types(const std::string& program) { return root_types_in(ElfFile(program)); }

void state_types(const std::string& program)
{
    if (const std::string types = program.empty() ? std::string() : describe_types(program); !types.empty()) {
        setenv(types_variable, types.c_str(), 1);
    } else {
        unsetenv(types_variable);
    }
}

}  // namespace stillpoint::tool
