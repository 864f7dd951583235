#include "program_types.hpp"

#include <algorithm>
#include <charconv>
#include <deque>
#include <dwarf.h>

#include "dwarf_index.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr unsigned steps_max = 64;  ///< of typedefs, qualifiers, pointers and dimensions
constexpr std::size_t members_max = 4096;
constexpr std::size_t enumerators_max = 65536;
constexpr std::uint64_t size_max = std::uint64_t{1} << 40;  ///< no more than the window of durable addresses
constexpr std::uint64_t pointer_bytes = 8;

constexpr std::string_view locks[] = {"pthread_mutex_t",      "pthread_cond_t",  "pthread_rwlock_t",  "pthread_spinlock_t",
                                      "pthread_barrier_t",    "std::mutex",      "std::shared_mutex", "std::condition_variable",
                                      "std::recursive_mutex", "std::timed_mutex"};

bool is_qualifier(int tag)
{
    return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type || tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type ||
           tag == DW_TAG_immutable_type;
}

bool is_record(int tag) { return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type; }

bool is_pointer(int tag) { return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type; }

TypeKind kind_of_base(Dwarf_Die& die, std::uint64_t size)
{
    switch (number_of(die, DW_AT_encoding, 0)) {
    case DW_ATE_boolean: return TypeKind::boolean;
    case DW_ATE_float: return TypeKind::floating;
    case DW_ATE_signed: return TypeKind::signed_number;
    case DW_ATE_unsigned: return TypeKind::unsigned_number;
    case DW_ATE_signed_char:
    case DW_ATE_unsigned_char: return size == 1 ? TypeKind::character : TypeKind::unsigned_number;
    case DW_ATE_UTF: return TypeKind::unsigned_number;
    default: return TypeKind::opaque;
    }
}

std::string word_of_tag(int tag) { return tag == DW_TAG_union_type ? "union " : tag == DW_TAG_enumeration_type ? "enum " : "struct "; }

/// A struct, union or enum of a language that has the word in its name.
bool is_tagged_in_c(Dwarf_Die& die)
{
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_structure_type && tag != DW_TAG_union_type && tag != DW_TAG_enumeration_type) {
        return false;
    }
    Dwarf_Die unit;
    const int language = dwarf_diecu(&die, &unit, nullptr, nullptr) != nullptr ? dwarf_srclang(&unit) : -1;
    return language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 || language == DW_LANG_C11;
}

}  // namespace

struct ProgramTypes::Reader {
    struct Entry {
        Dwarf_Die die;
        ProgramType type;
        bool is_complete;
    };

    explicit Reader(std::unique_ptr<DwarfIndex> opened) : index(std::move(opened))
    {
        entries.push_back({{}, {.kind = TypeKind::nothing, .name = "void"}, true});
    }

    TypeId add(ProgramType type)
    {
        entries.push_back({{}, std::move(type), true});
        return static_cast<TypeId>(entries.size() - 1);
    }

    TypeId id_of_target(Dwarf_Die& die)
    {
        Dwarf_Die target;
        return referred(die, DW_AT_type, target) ? id_of(target) : 0;
    }

    /// The definition of a type of which `die` is the name alone.
    Dwarf_Die defined(Dwarf_Die die)
    {
        Dwarf_Die unit;
        if (dwarf_hasattr(&die, DW_AT_signature) != 0 && referred(die, DW_AT_signature, unit)) {
            return unit;
        }
        if (!is_record(dwarf_tag(&die)) || !has_flag(die, DW_AT_declaration)) {
            return die;
        }
        std::string name(index->qualified_name(die));
        const char* const own = dwarf_diename(&die);
        if (name.empty() && own != nullptr) {
            name = own;
        }
        const Dwarf_Die* const found = name.empty() ? nullptr : index->type_named(name);
        return found == nullptr ? die : *found;
    }

    /// The type below its typedefs and qualifiers.
    TypeId id_of(Dwarf_Die die)
    {
        std::string alias;
        for (unsigned step = 0; step < steps_max; ++step) {
            const int tag = dwarf_tag(&die);
            if (tag != DW_TAG_typedef && !is_qualifier(tag)) {
                return id_of_plain(die, alias);
            }
            if (tag == DW_TAG_typedef && dwarf_diename(&die) != nullptr) {
                alias = dwarf_diename(&die);
                if (std::ranges::find(locks, alias) != std::end(locks)) {
                    return lock_of(die, alias);
                }
            }
            Dwarf_Die target;
            if (!referred(die, DW_AT_type, target)) {
                return 0;
            }
            die = target;
        }
        return opaque(die);
    }

    TypeId opaque(Dwarf_Die& die) { return add({.kind = TypeKind::opaque, .name = name_of(die, 0)}); }

    TypeId lock_of(Dwarf_Die& die, const std::string& name)
    {
        if (const auto found = by_die.find(die.addr); found != by_die.end()) {
            return found->second;
        }
        const TypeId id = add({.kind = TypeKind::lock, .name = name, .size = size_of(die, 0)});
        by_die.emplace(die.addr, id);
        return id;
    }

    TypeId id_of_plain(Dwarf_Die die, const std::string& alias)
    {
        die = defined(die);
        if (const auto found = by_die.find(die.addr); found != by_die.end()) {
            return found->second;
        }
        entries.push_back({die, {}, false});
        const auto id = static_cast<TypeId>(entries.size() - 1);
        by_die.emplace(die.addr, id);
        ProgramType& type = entries.back().type;
        type.name = name_of(die, 0);
        if (!alias.empty() && dwarf_diename(&die) == nullptr) {
            type.name = alias;
        }
        return id;
    }

    /// Bytes of an object of the type; 0: not known.
    std::uint64_t size_of(Dwarf_Die die, unsigned depth)
    {
        if (depth == steps_max) {
            return 0;
        }
        const std::uint64_t said = number_of(die, DW_AT_byte_size, not_said);
        const int tag = dwarf_tag(&die);
        if (said != not_said) {
            return said <= size_max ? said : 0;
        }
        if (is_pointer(tag)) {
            return pointer_bytes;
        }
        Dwarf_Die target;
        if (tag == DW_TAG_ptr_to_member_type) {
            return referred(die, DW_AT_type, target) && dwarf_tag(&target) == DW_TAG_subroutine_type ? 2 * pointer_bytes : pointer_bytes;
        }
        if ((tag != DW_TAG_typedef && tag != DW_TAG_array_type && tag != DW_TAG_enumeration_type && !is_qualifier(tag)) ||
            !referred(die, DW_AT_type, target)) {
            return 0;
        }
        std::uint64_t size = size_of(target, depth + 1);
        if (tag == DW_TAG_array_type) {
            for (const std::uint64_t count : dimensions_of(die)) {
                if (__builtin_mul_overflow(size, count == not_said ? 0 : count, &size) || size > size_max) {
                    return 0;
                }
            }
        }
        return size;
    }

    static std::vector<std::uint64_t> dimensions_of(Dwarf_Die& die)
    {
        std::vector<std::uint64_t> counts;
        for_each_child(die, [&counts](Dwarf_Die& child) {
            if (dwarf_tag(&child) == DW_TAG_subrange_type) {
                const std::uint64_t last = number_of(child, DW_AT_upper_bound, not_said);
                const std::uint64_t count = number_of(child, DW_AT_count, last == not_said ? not_said : last + 1);
                counts.push_back(count <= size_max ? count : count == not_said ? not_said : 0);
            }
            return counts.size() < steps_max;
        });
        return counts;
    }

    std::string name_of_target(Dwarf_Die& die, unsigned depth)
    {
        Dwarf_Die target;
        return referred(die, DW_AT_type, target) ? name_of(target, depth + 1) : "void";
    }

    /// As the source would write it.
    std::string name_of(Dwarf_Die die, unsigned depth)
    {
        die = defined(die);
        const int tag = dwarf_tag(&die);
        if (depth == steps_max) {
            return "?";
        }
        if (is_qualifier(tag)) {
            const std::string_view word = tag == DW_TAG_const_type ? "const " : tag == DW_TAG_volatile_type ? "volatile " : "";
            return std::string(word) + name_of_target(die, depth);
        }
        if (is_pointer(tag)) {
            const std::string target = name_of_target(die, depth);
            return target + (target.ends_with("*") ? "" : " ") + (tag == DW_TAG_pointer_type ? "*" : "&");
        }
        if (tag == DW_TAG_array_type) {
            std::string text = name_of_target(die, depth);
            for (const std::uint64_t count : dimensions_of(die)) {
                text += count == not_said ? "[]" : text_of("[{}]", count);
            }
            return text;
        }
        if (tag == DW_TAG_subroutine_type) {
            return "function";
        }
        if (tag == DW_TAG_ptr_to_member_type) {
            return "pointer to member";
        }
        const char* const own = dwarf_diename(&die);
        const std::string_view full = index->qualified_name(die);
        if (own == nullptr) {
            const std::string word = word_of_tag(tag);
            return word.substr(0, word.size() - 1);
        }
        return (is_tagged_in_c(die) ? word_of_tag(tag) : "") + (full.empty() ? own : std::string(full));
    }

    void complete(TypeId id)
    {
        Entry& entry = entries[id];
        if (entry.is_complete) {
            return;
        }
        entry.is_complete = true;
        ProgramType& type = entry.type;
        Dwarf_Die& die = entry.die;
        const int tag = dwarf_tag(&die);
        type.size = size_of(die, 0);
        if (is_pointer(tag)) {
            type.kind = TypeKind::pointer;
            type.target = id_of_target(die);
        } else if (is_record(tag)) {
            const bool is_lock = std::ranges::find(locks, type.name) != std::end(locks);
            type.kind = has_flag(die, DW_AT_declaration) ? TypeKind::opaque : is_lock ? TypeKind::lock : TypeKind::record;
            type.is_union = tag == DW_TAG_union_type;
            read_members(die, type);
        } else if (tag == DW_TAG_array_type) {
            read_array(die, type);
        } else if (tag == DW_TAG_enumeration_type) {
            read_enumeration(die, type);
        } else if (tag == DW_TAG_base_type) {
            type.kind = kind_of_base(die, type.size);
        } else {
            type.kind = tag == DW_TAG_subroutine_type ? TypeKind::nothing : TypeKind::opaque;
        }
    }

    void read_array(Dwarf_Die& die, ProgramType& type)
    {
        const std::vector<std::uint64_t> counts = dimensions_of(die);
        TypeId element = id_of_target(die);
        complete(element);
        for (std::size_t dimension = counts.size(); dimension > 1; --dimension) {
            element = array_of(element, counts[dimension - 1] == not_said ? 0 : counts[dimension - 1]);
        }
        type.kind = TypeKind::array;
        type.target = element;
        type.is_unbounded = counts.empty() || counts.front() == not_said;
        type.count = type.is_unbounded ? 0 : counts.front();
    }

    TypeId array_of(TypeId element, std::uint64_t count)
    {
        complete(element);
        const ProgramType& one = entries[element].type;
        std::uint64_t size = 0;
        if (__builtin_mul_overflow(one.size, count, &size) || size > size_max) {
            return add({.kind = TypeKind::opaque, .name = one.name});
        }
        return add({.kind = TypeKind::array, .name = text_of("{}[{}]", one.name, count), .size = size, .target = element, .count = count});
    }

    void read_enumeration(Dwarf_Die& die, ProgramType& type)
    {
        type.kind = TypeKind::enumeration;
        for_each_child(die, [&type](Dwarf_Die& child) {
            const char* const name = dwarf_diename(&child);
            if (dwarf_tag(&child) == DW_TAG_enumerator && name != nullptr) {
                type.enumerators.emplace_back(static_cast<std::int64_t>(number_of(child, DW_AT_const_value, 0)), name);
            }
            return type.enumerators.size() < enumerators_max;
        });
    }

    void read_members(Dwarf_Die& die, ProgramType& type)
    {
        for_each_child(die, [&](Dwarf_Die& child) {
            const int tag = dwarf_tag(&child);
            if (tag == DW_TAG_template_type_parameter) {
                type.arguments.push_back(id_of_target(child));
            }
            const bool is_static = has_flag(child, DW_AT_external) || has_flag(child, DW_AT_declaration);
            if ((tag == DW_TAG_member && !is_static) || tag == DW_TAG_inheritance) {
                if (auto member = read_member(child, tag == DW_TAG_inheritance)) {
                    type.members.push_back(std::move(*member));
                }
            } else if (tag == DW_TAG_variant_part && type.variants.empty()) {
                read_variants(child, type);
            }
            return type.members.size() < members_max;
        });
    }

    void read_variants(Dwarf_Die& part, ProgramType& type)
    {
        Dwarf_Die discriminant;
        if (referred(part, DW_AT_discr, discriminant) && offset_of(discriminant) != not_said) {
            const TypeId number = id_of_target(discriminant);
            complete(number);
            type.discriminant_offset = offset_of(discriminant);
            type.discriminant_bytes = std::min(entries[number].type.size, sizeof(std::uint64_t));
        }
        for_each_child(part, [&](Dwarf_Die& variant) {
            Dwarf_Die child;
            // A list of values is for compilers of other languages.
            const bool is_read = dwarf_tag(&variant) == DW_TAG_variant && dwarf_hasattr(&variant, DW_AT_discr_list) == 0 &&
                                 dwarf_child(&variant, &child) == 0 && dwarf_tag(&child) == DW_TAG_member;
            if (auto member = is_read ? read_member(child, false) : std::nullopt) {
                const bool has_value = dwarf_hasattr(&variant, DW_AT_discr_value) != 0;
                type.variants.push_back(
                    {std::move(*member), has_value ? std::optional(number_of(variant, DW_AT_discr_value, 0)) : std::nullopt});
            }
            return type.variants.size() < members_max;
        });
    }

    /// nullopt: its place depends on the object.
    std::optional<TypeMember> read_member(Dwarf_Die& child, bool is_base)
    {
        TypeMember member;
        member.is_base = is_base;
        const char* const name = dwarf_diename(&child);
        member.name = name == nullptr ? "" : name;
        member.type = id_of_target(child);
        member.type_name = name_of_target(child, 0);
        if (member.type_name.empty() || member.type_name == "struct" || member.type_name == "union") {
            member.type_name = entries[member.type].type.name;
        }
        member.offset = offset_of(child);
        if (member.offset == not_said) {
            return std::nullopt;
        }
        const std::uint64_t bits = number_of(child, DW_AT_bit_size, 0);
        if (bits != 0 && bits <= 64) {
            complete(member.type);
            const std::uint64_t unit = number_of(child, DW_AT_byte_size, entries[member.type].type.size);
            const std::uint64_t from_end = number_of(child, DW_AT_bit_offset, not_said);
            std::uint64_t first = number_of(child, DW_AT_data_bit_offset, not_said);
            if (first == not_said) {
                const std::uint64_t unused = unit * 8 - bits - (from_end == not_said ? 0 : from_end);
                first = member.offset * 8 + (unused <= unit * 8 ? unused : 0);
            }
            member.offset = first / 8;
            member.bit_offset = static_cast<std::uint32_t>(first % 8);
            member.bits = static_cast<std::uint32_t>(bits);
        }
        return member;
    }

    std::unique_ptr<DwarfIndex> index;
    std::deque<Entry> entries;  ///< references stay valid as it grows
    std::unordered_map<const void*, TypeId> by_die;
};

ProgramTypes::ProgramTypes(std::string path) : path_(std::move(path)) {}
ProgramTypes::~ProgramTypes() = default;

tl::expected<std::unique_ptr<ProgramTypes>, ProgramError> ProgramTypes::open(const std::string& path)
{
    auto index = DwarfIndex::open(path);
    if (!index) {
        return tl::unexpected<ProgramError>(index.error());
    }
    std::unique_ptr<ProgramTypes> types(new ProgramTypes(path));
    types->reader_ = std::make_unique<Reader>(std::move(*index));
    return types;
}

std::optional<TypeId> ProgramTypes::find_type(std::string_view name)
{
    while (name.ends_with(' ')) {
        name.remove_suffix(1);
    }
    if (name.ends_with('*')) {
        const auto target = find_type(name.substr(0, name.size() - 1));
        return target ? std::optional(
                            reader_->add({.kind = TypeKind::pointer, .name = std::string(name), .size = pointer_bytes, .target = *target}))
                      : std::nullopt;
    }
    if (const std::size_t open = name.rfind('['); name.ends_with(']') && open != std::string_view::npos) {
        std::uint64_t count = 0;
        const char* const end = name.data() + name.size() - 1;
        const auto [rest, error] = std::from_chars(name.data() + open + 1, end, count);
        const auto element = error == std::errc() && rest == end ? find_type(name.substr(0, open)) : std::nullopt;
        return element ? std::optional(reader_->array_of(*element, count)) : std::nullopt;
    }
    Dwarf_Die* const found = reader_->index->type_named(name);
    return found == nullptr ? std::nullopt : std::optional(reader_->id_of(*found));
}

std::optional<TypeId> ProgramTypes::find_instance(std::string_view beginning)
{
    Dwarf_Die* const found = reader_->index->instance_named(beginning);
    return found == nullptr ? std::nullopt : std::optional(reader_->id_of(*found));
}

std::vector<std::string> ProgramTypes::similar_types(std::string_view name) const { return reader_->index->names_with(name); }

std::optional<ProgramVariable> ProgramTypes::find_variable(std::string_view name, std::string_view file)
{
    const auto* const found = reader_->index->variables_named(name);
    if (found == nullptr) {
        return std::nullopt;
    }
    const auto base_name = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
    const auto chosen = std::ranges::find_if(*found,
                                             [&](const auto& one) { return file.empty() || base_name(one.file) == base_name(file); });
    if (chosen == found->end() && found->size() != 1) {
        return std::nullopt;
    }
    const DwarfIndex::Variable& variable = chosen == found->end() ? found->front() : *chosen;
    Dwarf_Die die = variable.die;
    const auto address = address_of(die);
    return address ? std::optional(ProgramVariable{reader_->id_of_target(die), reader_->name_of_target(die, 0), *address, variable.file})
                   : std::nullopt;
}

std::vector<std::pair<std::string, ProgramVariable>> ProgramTypes::variables_between(std::uint64_t begin, std::uint64_t end)
{
    std::vector<std::pair<std::string, ProgramVariable>> found;
    reader_->index->for_each_variable([&](const std::string& name, const DwarfIndex::Variable& variable) {
        Dwarf_Die die = variable.die;
        if (const auto address = address_of(die); address && *address >= begin && *address < end) {
            found.emplace_back(name, ProgramVariable{reader_->id_of_target(die), reader_->name_of_target(die, 0), *address, variable.file});
        }
    });
    return found;
}

std::set<TypeId> ProgramTypes::durable_classes()
{
    std::set<TypeId> found;
    std::ranges::for_each(reader_->index->durable_classes(), [&](const Dwarf_Die& die) { found.insert(reader_->id_of(die)); });
    return found;
}

const ProgramType& ProgramTypes::type(TypeId id)
{
    reader_->complete(id);
    return reader_->entries[id].type;
}

TypeId ProgramTypes::array_of(TypeId element, std::uint64_t count) { return reader_->array_of(element, count); }

}  // namespace stillpoint::tool
