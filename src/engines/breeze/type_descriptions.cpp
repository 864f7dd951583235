#include "engines/breeze/type_descriptions.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "arch/checksum.hpp"
#include "core/formatted.hpp"
#include "engines/breeze/type_comparison.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t checksum_seed = 0x4252455a54595045;
constexpr std::size_t runs_max = 4096;  ///< of a type, nested structures resolved
constexpr std::uint64_t type_bytes_max = std::uint64_t{1} << 32;
constexpr std::uint32_t value_bytes_max = 1U << 24;
constexpr std::size_t leaves_max = 16384;

template <class... Args>
auto refuse(std::string_view name, fmt::format_string<Args...> format, Args&&... args)
{
    const std::string text = formatted(format, std::forward<Args>(args)...);
    return fail(SP_E_INVALID_ARGUMENT, 0, "type {}: {}", name, text);
}

/// The value's encoding exists, and fits its size.
bool is_sound_value(std::uint32_t encoding, std::uint64_t bytes) noexcept
{
    const bool is_word = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    switch (encoding & 0xff) {
    case NVM_DATA_BYTES: return encoding == NVM_DATA_BYTES && bytes != 0 && bytes <= value_bytes_max;
    case NVM_DATA_SIGNED:
    case NVM_DATA_UNSIGNED:
    case NVM_DATA_BOOL:
    case NVM_DATA_ENUM_SIGNED:
    case NVM_DATA_ENUM_UNSIGNED: return encoding <= 0xff && is_word;
    case NVM_DATA_FLOAT: return encoding <= 0xff && ((is_word && bytes != 1) || bytes == 12);
    case NVM_DATA_CHARACTER: return encoding <= 0xff && bytes == 1;
    case NVM_DATA_ADDRESS: return encoding <= 0xff && (bytes == 8 || bytes == 16);
    case NVM_DATA_BITS_SIGNED:
    case NVM_DATA_BITS_UNSIGNED: {
        const std::uint32_t first = first_bit_of(encoding);
        const std::uint32_t bits = bits_of(encoding);
        return encoding >> 24 == 0 && first < 8 && bits != 0 && bits <= 64 && (first + bits + 7) / 8 == bytes;
    }
    default: return false;
    }
}

Field field_of(const FieldRecord& record, const std::shared_ptr<const Type>& nested)
{
    Field field{
        record.name,       record.kind,      record.offset, record.count, 1, NVM_DATA_BYTES, static_cast<std::uint8_t>(record.tag_bytes),
        record.tag_offset, record.tag_value, nested};
    switch (record.kind) {
    case NVM_FIELD_POINTER: field.element_bytes = sizeof(void*); break;
    case NVM_FIELD_WEAK: field.element_bytes = sizeof(nvm_weak); break;
    case NVM_FIELD_STRUCT: field.element_bytes = nested->size; break;
    default:
        if (record.nested != 0) {  // A tail of an older description is bytes.
            field.element_bytes = static_cast<std::uint32_t>(record.nested);
            field.encoding = static_cast<std::uint32_t>(record.nested >> 32);
        }
    }
    return field;
}

/// Adds the pointers of a structure's type, for each element of the field.
Result<void> add_nested_runs(Type& type, const Field& field)
{
    const Type& nested = *field.nested;
    if (nested.has_tail) {
        return refuse(type.name, "field {} is a structure with a tail", field.name);
    }
    if (nested.runs.size() > runs_max || (!nested.runs.empty() && field.count > runs_max)) {
        return refuse(type.name, "it has more than {} runs of pointers", runs_max);
    }
    for (std::uint64_t index = 0; index < field.count && !nested.runs.empty(); ++index) {
        for (PointerRun run : nested.runs) {
            if (run.tag_bytes != 0 && field.tag_bytes != 0) {
                return refuse(type.name, "field {} depends on two tags", field.name);
            }
            const std::uint64_t begin = field.offset + index * field.element_bytes;
            const bool is_tagged = field.tag_bytes != 0;
            run.offset += begin;
            run.tag_offset = is_tagged ? field.tag_offset : run.tag_offset + begin;
            run.tag_value = is_tagged ? field.tag_value : run.tag_value;
            run.tag_bytes = is_tagged ? field.tag_bytes : run.tag_bytes;
            run.name = field.count == 1 ? formatted("{}.{}", field.name, run.name) : formatted("{}[{}].{}", field.name, index, run.name);
            type.runs.push_back(std::move(run));
        }
        if (type.runs.size() > runs_max) {
            return refuse(type.name, "it has more than {} runs of pointers", runs_max);
        }
    }
    return {};
}

/// A nested structure has a tagged field itself; nothing can depend on two tags.
bool has_tags(const Type& type) noexcept
{
    return std::ranges::any_of(
        type.fields, [](const Field& field) { return field.tag_bytes != 0 || (field.nested != nullptr && has_tags(*field.nested)); });
}

Result<void> check_place(const Type& type, const Field& field)
{
    const bool has_pointers = field.kind == NVM_FIELD_POINTER || field.kind == NVM_FIELD_WEAK ||
                              (field.kind == NVM_FIELD_STRUCT && !field.nested->runs.empty());
    const bool may_be_tail = field.kind == NVM_FIELD_POINTER || field.kind == NVM_FIELD_TAIL;
    const bool is_inside =
        field.offset <= type.size &&
        (field.is_tail() ? may_be_tail : field.kind != NVM_FIELD_TAIL && field.count <= (type.size - field.offset) / field.element_bytes);
    if (!is_inside || (has_pointers && field.offset % sizeof(std::uint64_t) != 0) ||
        (has_pointers && field.count > 1 && field.element_bytes % sizeof(std::uint64_t) != 0)) {
        return refuse(type.name, "field {} does not lie in its {} bytes, or not at a multiple of 8", field.name, type.size);
    }
    const std::uint8_t tag = field.tag_bytes;
    const bool tag_fits = tag == 0 || ((tag == 1 || tag == 2 || tag == 4 || tag == 8) && field.tag_offset <= type.size &&
                                       tag <= type.size - field.tag_offset);
    if (!tag_fits || (field.is_tail() && tag != 0)) {
        return refuse(type.name, "the tag of field {} is no integer member", field.name);
    }
    if (tag != 0 && field.nested != nullptr && has_tags(*field.nested)) {
        return refuse(type.name, "field {} depends on two tags", field.name);
    }
    return {};
}

/// Adds one field. `nested`: its type, of kind structure.
Result<void> add_field(Type& type, const FieldRecord& record, const std::shared_ptr<const Type>& nested)
{
    if (record.kind == NVM_FIELD_PINNED || record.kind == NVM_FIELD_COMPLETE) {
        (record.kind == NVM_FIELD_PINNED ? type.is_pinned : type.is_complete) = true;
        return {};
    }
    const bool is_known = record.kind >= NVM_FIELD_POINTER && record.kind <= NVM_FIELD_DATA;
    if (!is_known || (record.kind == NVM_FIELD_STRUCT && nested == nullptr) || record.tag_bytes > sizeof(std::uint64_t)) {
        return refuse(type.name, "field {} has an unknown kind, or a structure that is not described", record.name);
    }
    Field field = field_of(record, nested);
    if (field.kind == NVM_FIELD_TAIL) {
        field.count = 0;  // An older description may say something else, which never counted.
    }
    const bool is_bits = (field.encoding & 0xff) == NVM_DATA_BITS_SIGNED || (field.encoding & 0xff) == NVM_DATA_BITS_UNSIGNED;
    if (!is_sound_value(field.encoding, field.nested != nullptr ? 1 : field.element_bytes) || field.name.empty() ||
        (is_bits && (field.count != 1 || field.kind != NVM_FIELD_DATA))) {
        return refuse(type.name, "field {} has no name, or values of an unknown form", field.name);
    }
    if (auto checked = check_place(type, field); !checked) {
        return checked;
    }
    type.has_tail = type.has_tail || field.is_tail();
    if (field.kind == NVM_FIELD_STRUCT) {
        if (auto added = add_nested_runs(type, field); !added) {
            return added;
        }
    } else if (field.kind == NVM_FIELD_POINTER || field.kind == NVM_FIELD_WEAK) {
        type.runs.push_back({field.offset, field.count, static_cast<std::uint32_t>(field.element_bytes),
                             field.kind == NVM_FIELD_WEAK ? PointerKind::weak : PointerKind::strong, field.tag_bytes, field.tag_offset,
                             field.tag_value, field.name});
    }
    type.leaves += field.nested != nullptr ? field.nested->leaves : 1;
    if (type.leaves > leaves_max) {
        return refuse(type.name, "it has more than {} fields, those of nested structures counted too", leaves_max);
    }
    type.fields.push_back(std::move(field));
    return {};
}

/// The text of a fixed place; false: it does not end there.
bool read_text(const char (&from)[name_bytes], std::string& text)
{
    const std::size_t length = strnlen(from, name_bytes);
    text.assign(from, length);
    return length < name_bytes;
}

Result<FieldRecord> record_of_entry(const nvm_field& entry, const std::string& type)
{
    FieldRecord field{};
    std::string name;
    std::string other;
    if (!read_text(entry.name, name) || !read_text(entry.other, other)) {
        return refuse(type, "a field's name has more than {} bytes", name_bytes - 1);
    }
    std::memcpy(field.name, name.data(), name.size());
    field.kind = entry.kind;
    field.tag_bytes = entry.tag_bytes;
    field.offset = entry.offset_bytes;
    field.count = entry.count;
    field.tag_offset = entry.tag_offset_bytes;
    field.tag_value = entry.tag_value;
    if (entry.kind == NVM_FIELD_STRUCT) {
        field.nested = type_id_of(other);
    } else if (entry.kind == NVM_FIELD_DATA || entry.kind == NVM_FIELD_TAIL) {
        field.nested = entry.element_bytes | std::uint64_t{entry.encoding} << 32;
    }
    return field;
}

std::vector<std::byte> record_of(const std::string& name, std::uint64_t size, std::span<const FieldRecord> fields)
{
    std::vector<std::byte> record(sizeof(TypeRecord) + fields.size_bytes());
    TypeRecord head{};
    head.id = type_id_of(name);
    head.field_count = static_cast<std::uint32_t>(fields.size());
    head.size = size;
    std::memcpy(head.name, name.data(), name.size());
    if (!fields.empty()) {
        std::memcpy(record.data() + sizeof head, fields.data(), fields.size_bytes());
    }
    std::memcpy(record.data(), &head, sizeof head);
    head.checksum = checksum64(record.data() + sizeof head.checksum, record.size() - sizeof head.checksum, checksum_seed);
    std::memcpy(record.data(), &head, sizeof head);
    return record;
}

/// One type of a list; `entries`: all of its own, the first of which begins it.
Result<DescribedType> type_of_entries(std::span<const nvm_field> entries, const FindType& find)
{
    DescribedType described;
    std::string name;
    if (!read_text(entries.front().name, name) || name.empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a type's name has 1 to {} bytes", name_bytes - 1);
    }
    std::vector<FieldRecord> fields;
    for (const nvm_field& entry : entries.subspan(1)) {
        const auto field = record_of_entry(entry, name);
        if (!field) {
            return pass_on(field.error());
        }
        switch (entry.kind) {
        case NVM_FIELD_RENAMED: described.renamed.push_back({entry.name, entry.other}); break;
        case NVM_FIELD_DEFAULT: described.defaults.push_back({entry.name, entry.tag_value}); break;
        case NVM_FIELD_BY_COMPILER:
            return refuse(name, "its fields are not described yet: compile the program with `stillpoint cc --runtime=breeze`, or describe "
                                "them with NVM_TYPE");
        case NVM_FIELD_TAGGED:
        case NVM_FIELD_VOLATILE:
            return refuse(name, "NVM_TAGGED and NVM_IS_VOLATILE belong to NVM_AUTO_TYPE; NVM_TYPE takes NVM_HAS_PTR_IF, and NVM_HAS_DATA");
        default: fields.push_back(*field);
        }
    }
    if (fields.size() > fields_max) {
        return refuse(name, "it has more than {} fields", fields_max);
    }
    auto type = type_of_record(record_of(name, entries.front().count, fields), find);
    if (!type) {
        return pass_on(type.error());
    }
    described.type = std::move(*type);
    return described;
}

bool begins_type(const nvm_field& entry) noexcept { return entry.kind == NVM_FIELD_TYPE && entry.tag_value == NVM_TYPE_MAGIC; }

}  // namespace

std::uint32_t type_id_of(std::string_view name) noexcept
{
    const auto id = static_cast<std::uint32_t>(checksum64(name.data(), name.size(), checksum_seed) & 0x7fffffff);
    return id == 0 ? 1 : id;
}

bool is_whole_record(std::span<const std::byte> record) noexcept
{
    TypeRecord head;
    std::memcpy(&head, record.data(), sizeof head);
    return checksum64(record.data() + sizeof head.checksum, record.size() - sizeof head.checksum, checksum_seed) == head.checksum;
}

Result<std::shared_ptr<Type>> type_of_record(std::vector<std::byte> record, const FindType& find)
{
    TypeRecord head;
    std::memcpy(&head, record.data(), sizeof head);
    auto type = std::make_shared<Type>();
    head.name[name_bytes - 1] = '\0';
    type->name = head.name;
    type->id = head.id;
    type->size = head.size;
    if (type->name.empty() || head.id != type_id_of(type->name) || head.size == 0 || head.size > type_bytes_max) {
        return refuse(type->name, "it has no name, or {} bytes", head.size);
    }
    for (std::uint32_t i = 0; i < head.field_count; ++i) {
        FieldRecord field;
        std::memcpy(&field, record.data() + sizeof head + i * sizeof field, sizeof field);
        field.name[name_bytes - 1] = '\0';
        const bool is_nested = field.kind == NVM_FIELD_STRUCT && field.nested != 0;
        const std::shared_ptr<const Type> nested = is_nested ? find(static_cast<std::uint32_t>(field.nested)) : nullptr;
        if (auto added = add_field(*type, field, nested); !added) {
            return pass_on(added.error());
        }
    }
    type->record = std::move(record);
    return type;
}

Result<std::vector<DescribedType>> types_of_entries(std::span<const nvm_field> entries, const FindType& find)
{
    std::vector<DescribedType> types;
    const FindType find_here = [&](std::uint32_t id) -> std::shared_ptr<const Type> {
        const auto found = std::ranges::find(types, id, [](const DescribedType& known) { return known.type->id; });
        return found != types.end() ? found->type : find(id);
    };
    for (std::size_t begin = 0; begin < entries.size();) {
        std::size_t end = begin + 1;
        while (end < entries.size() && !begins_type(entries[end])) {
            ++end;
        }
        auto type = type_of_entries(entries.subspan(begin, end - begin), find_here);
        if (!type) {
            return pass_on(type.error());
        }
        types.push_back(std::move(*type));
        begin = end;
    }
    return types;
}

Result<std::vector<DescribedType>> types_of_section(std::string_view section)
{
    constexpr std::size_t step = 16;  // Arrays begin at multiples of it.
    std::vector<nvm_field> entries;
    for (std::size_t place = 0; place + sizeof(nvm_field) <= section.size();) {
        nvm_field entry;
        std::memcpy(&entry, section.data() + place, sizeof entry);
        if (begins_type(entry) && entry.element_bytes != sizeof entry) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "the types are described in the form of another version of Stillpoint: compile it again");
        }
        const bool is_entry = entry.kind != 0 && (begins_type(entry) || !entries.empty());
        if (is_entry) {
            entries.push_back(entry);
        }
        place += is_entry ? sizeof entry : step;
    }
    auto all = types_of_entries(entries, [](std::uint32_t) { return nullptr; });
    if (!all) {
        return all;
    }
    std::vector<DescribedType> types;
    for (DescribedType& type : *all) {
        const auto same = std::ranges::find(types, type.type->id, [](const DescribedType& known) { return known.type->id; });
        if (same == types.end()) {
            types.push_back(std::move(type));
            continue;
        }
        if (const std::string differs = difference(*same->type, *type.type, "in one file", "in another"); !differs.empty()) {
            return fail(SP_E_OBJECT_TYPE, 0, "type {} is described twice, and differently: {}", type.type->name, differs);
        }
        if (!same->type->is_complete) {
            same->type = type.type;
        }
        same->renamed.insert(same->renamed.end(), type.renamed.begin(), type.renamed.end());
        same->defaults.insert(same->defaults.end(), type.defaults.begin(), type.defaults.end());
    }
    return types;
}

}  // namespace stillpoint::breeze
