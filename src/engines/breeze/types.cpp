#include "engines/breeze/types.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t checksum_seed = 0x4252455a54595045;
constexpr std::size_t fields_max = 256;
constexpr std::size_t runs_max = 4096;  ///< of a type, nested structures resolved
constexpr std::uint64_t type_bytes_max = std::uint64_t{1} << 32;

std::uint32_t id_of(std::string_view name) noexcept
{
    const auto id = static_cast<std::uint32_t>(checksum64(name.data(), name.size(), checksum_seed) & 0x7fffffff);
    return id == 0 ? 1 : id;
}

template <class... Args>
std::string formatted(fmt::format_string<Args...> format, Args&&... args)
{
    char text[256];
    const auto end = fmt::format_to_n(text, sizeof text, format, std::forward<Args>(args)...);
    return {text, end.out};
}

template <class... Args>
auto refuse(std::string_view name, fmt::format_string<Args...> format, Args&&... args)
{
    const std::string text = formatted(format, std::forward<Args>(args)...);
    return fail(SP_E_INVALID_ARGUMENT, 0, "type {}: {}", name, text);
}

std::uint64_t bytes_of_element(const FieldRecord& field, const Type* nested) noexcept
{
    switch (field.kind) {
    case NVM_FIELD_POINTER: return sizeof(void*);
    case NVM_FIELD_WEAK: return sizeof(nvm_weak);
    case NVM_FIELD_STRUCT: return nested->size;
    default: return 1;
    }
}

/// Adds the pointers of one field. `nested`: its type, of kind structure.
Result<void> add_field(Type& type, const FieldRecord& field, const Type* nested)
{
    if (field.kind == NVM_FIELD_PINNED) {
        type.is_pinned = true;
        return {};
    }
    const bool is_tail = field.kind == NVM_FIELD_TAIL || (field.kind == NVM_FIELD_POINTER && field.count == 0);
    if (field.kind < NVM_FIELD_POINTER || field.kind > NVM_FIELD_TAIL || (field.kind == NVM_FIELD_STRUCT && nested == nullptr)) {
        return refuse(type.name, "field {} has an unknown kind, or a structure that is not described", field.name);
    }
    const std::uint64_t element = bytes_of_element(field, nested);
    if (field.offset > type.size || (!is_tail && (field.count == 0 || field.count > (type.size - field.offset) / element)) ||
        (field.kind != NVM_FIELD_TAIL && field.offset % sizeof(std::uint64_t) != 0)) {
        return refuse(type.name, "field {} does not lie in its {} bytes, or not at a multiple of 8", field.name, type.size);
    }
    const bool tag_fits = field.tag_bytes == 0 ||
                          ((field.tag_bytes == 1 || field.tag_bytes == 2 || field.tag_bytes == 4 || field.tag_bytes == 8) &&
                           field.tag_offset <= type.size && field.tag_bytes <= type.size - field.tag_offset);
    if (!tag_fits || (is_tail && field.tag_bytes != 0)) {
        return refuse(type.name, "the tag of field {} is no integer member", field.name);
    }
    type.has_tail = type.has_tail || is_tail;
    const auto tag_bytes = static_cast<std::uint8_t>(field.tag_bytes);
    if (field.kind == NVM_FIELD_TAIL) {
        return {};
    }
    if (field.kind != NVM_FIELD_STRUCT) {
        type.runs.push_back({field.offset, field.count, static_cast<std::uint32_t>(element),
                             field.kind == NVM_FIELD_WEAK ? PointerKind::weak : PointerKind::strong, tag_bytes, field.tag_offset,
                             field.tag_value, field.name});
        return {};
    }
    if (nested->has_tail) {
        return refuse(type.name, "field {} is a structure with a tail", field.name);
    }
    for (std::uint64_t index = 0; index < field.count; ++index) {
        for (PointerRun run : nested->runs) {
            if (run.tag_bytes != 0 && tag_bytes != 0) {
                return refuse(type.name, "field {} depends on two tags", field.name);
            }
            const std::uint64_t begin = field.offset + index * element;
            run.offset += begin;
            run.tag_offset = tag_bytes != 0 ? field.tag_offset : run.tag_offset + begin;
            run.tag_value = tag_bytes != 0 ? field.tag_value : run.tag_value;
            run.tag_bytes = tag_bytes != 0 ? tag_bytes : run.tag_bytes;
            run.name = field.count == 1 ? formatted("{}.{}", field.name, run.name) : formatted("{}[{}].{}", field.name, index, run.name);
            type.runs.push_back(std::move(run));
        }
        if (type.runs.size() > runs_max) {
            return refuse(type.name, "it has more than {} runs of pointers", runs_max);
        }
    }
    return {};
}

/// The type that a record describes, validated. `find`: gives the types of nested structures.
template <class Find>
Result<std::shared_ptr<Type>> type_of(std::vector<std::byte> record, Find&& find)
{
    TypeRecord head;
    std::memcpy(&head, record.data(), sizeof head);
    auto type = std::make_shared<Type>();
    head.name[name_bytes - 1] = '\0';
    type->name = head.name;
    type->id = head.id;
    type->size = head.size;
    if (type->name.empty() || head.id != id_of(type->name) || head.size == 0 || head.size > type_bytes_max) {
        return refuse(type->name, "it has no name, or {} bytes", head.size);
    }
    for (std::uint32_t i = 0; i < head.field_count; ++i) {
        FieldRecord field;
        std::memcpy(&field, record.data() + sizeof head + i * sizeof field, sizeof field);
        field.name[name_bytes - 1] = '\0';
        const std::shared_ptr<const Type> nested = field.nested != 0 ? find(static_cast<std::uint32_t>(field.nested)) : nullptr;
        if (auto added = add_field(*type, field, nested.get()); !added) {
            return pass_on(added.error());
        }
    }
    type->record = std::move(record);
    return type;
}

void copy_name(char (&to)[name_bytes], const char* from) noexcept { std::strncpy(to, from, name_bytes - 1); }

/// The record of what the program describes.
Result<std::vector<std::byte>> record_of(const nvm_type& described)
{
    if (described.name == nullptr || *described.name == '\0' || std::strlen(described.name) >= name_bytes) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a type's name has 1 to {} bytes", name_bytes - 1);
    }
    if (described.field_count > fields_max) {
        return refuse(described.name, "it has more than {} fields", fields_max);
    }
    std::vector<std::byte> record(sizeof(TypeRecord) + described.field_count * sizeof(FieldRecord));
    TypeRecord head{};
    head.id = id_of(described.name);
    head.field_count = static_cast<std::uint32_t>(described.field_count);
    head.size = described.size_bytes;
    copy_name(head.name, described.name);
    for (std::size_t i = 0; i < described.field_count; ++i) {
        const nvm_field& from = described.fields[i];
        FieldRecord field{};
        if (from.name == nullptr || std::strlen(from.name) >= name_bytes) {
            return refuse(described.name, "the name of field {} has 1 to {} bytes", i, name_bytes - 1);
        }
        copy_name(field.name, from.name);
        field.kind = from.kind;
        field.tag_bytes = from.tag_bytes;
        field.offset = from.offset_bytes;
        field.count = from.count;
        field.tag_offset = from.tag_offset_bytes;
        field.tag_value = from.tag_value;
        field.nested = from.kind == NVM_FIELD_STRUCT && from.nested != nullptr ? from.nested->id : 0;
        std::memcpy(record.data() + sizeof head + i * sizeof field, &field, sizeof field);
    }
    std::memcpy(record.data(), &head, sizeof head);
    head.checksum = checksum64(record.data() + sizeof head.checksum, record.size() - sizeof head.checksum, checksum_seed);
    std::memcpy(record.data(), &head, sizeof head);
    return record;
}

/// The first difference, for a message.
std::string difference(const Type& in_pool, const Type& in_program)
{
    if (in_pool.size != in_program.size) {
        return formatted("there it has {} bytes, here {}", in_pool.size, in_program.size);
    }
    for (std::size_t i = 0; i < std::max(in_pool.runs.size(), in_program.runs.size()); ++i) {
        if (i >= in_pool.runs.size()) {
            return formatted("here it has a pointer {}, which is new", in_program.runs[i].name);
        }
        if (i >= in_program.runs.size()) {
            return formatted("there it has a pointer {}, which is gone", in_pool.runs[i].name);
        }
        const PointerRun& there = in_pool.runs[i];
        const PointerRun& here = in_program.runs[i];
        if (there.name != here.name || there.offset != here.offset || there.count != here.count) {
            return formatted("there it has a pointer {} at byte {}, here {} at byte {}", there.name, there.offset, here.name, here.offset);
        }
    }
    return "its fields are described in another way";
}

struct Registry {
    os::FutexLock lock;
    std::vector<std::shared_ptr<const Type>> types;
};
Registry& registry()
{
    static Registry* const made = new Registry;  // Used by constructors and destructors of the program.
    return *made;
}

}  // namespace

std::uint64_t Type::tag_at(const std::byte* place, std::uint8_t bytes) noexcept
{
    std::uint64_t value = 0;
    std::memcpy(&value, place, bytes);
    return value;
}

namespace registered_types {

Result<void> add(nvm_type& type)
{
    type.id = 0;
    auto record = record_of(type);
    if (!record) {
        return pass_on(record.error());
    }
    auto made = type_of(std::move(*record), [](std::uint32_t id) { return find(id); });
    if (!made) {
        return pass_on(made.error());
    }
    Registry& known = registry();
    const std::lock_guard hold(known.lock);
    for (const auto& other : known.types) {
        if (other->id == (*made)->id && other->record != (*made)->record) {
            return fail(SP_E_OBJECT_TYPE, 0, "type {} is registered twice, with different fields: {}", (*made)->name,
                        other->name == (*made)->name ? difference(*other, **made) : "choose another name, this one's number is taken");
        }
        if (other->id == (*made)->id) {
            type.id = other->id;
            return {};
        }
    }
    type.id = (*made)->id;
    known.types.push_back(std::move(*made));
    return {};
}

std::shared_ptr<const Type> find(std::uint32_t id)
{
    Registry& known = registry();
    const std::lock_guard hold(known.lock);
    const auto found = std::ranges::find(known.types, id, [](const auto& type) { return type->id; });
    return found == known.types.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<const Type>> all()
{
    Registry& known = registry();
    const std::lock_guard hold(known.lock);
    return known.types;
}

}  // namespace registered_types

Result<void> PoolTypes::load(PoolMemory& memory)
{
    memory_ = &memory;
    const std::uint64_t used = load_word(memory.header().types_bytes);
    const auto damaged = [&](std::uint64_t place) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the type record at byte {} of the image is damaged: the pool's pointers cannot be found",
                    memory.medium().path(), types_offset + place);
    };
    if (used > types_bytes_max) {
        return damaged(0);
    }
    for (std::uint64_t place = 0; place < used;) {
        TypeRecord head;
        if (used - place < sizeof head) {
            return damaged(place);
        }
        std::memcpy(&head, &memory.at<std::byte>(types_offset + place), sizeof head);
        const std::uint64_t bytes = sizeof head + head.field_count * sizeof(FieldRecord);
        if (head.field_count > fields_max || bytes > used - place || types_.size() == types_max) {
            return damaged(place);
        }
        const std::byte* const begin = &memory.at<std::byte>(types_offset + place);
        std::vector<std::byte> record(begin, begin + bytes);
        if (checksum64(record.data() + sizeof head.checksum, record.size() - sizeof head.checksum, checksum_seed) != head.checksum ||
            find(head.id) != nullptr) {
            return damaged(place);
        }
        auto made = type_of(std::move(record), [this](std::uint32_t id) -> std::shared_ptr<const Type> {
            const auto found = std::ranges::find(types_, id, [](const auto& type) { return type->id; });
            return found == types_.end() ? nullptr : *found;
        });
        if (!made) {
            return damaged(place);
        }
        insert(std::move(*made));
        place += bytes;
    }
    for (const auto& type : registered_types::all()) {
        const Type* const there = find(type->id);
        if (there != nullptr && there->record != type->record) {
            return fail(
                SP_E_OBJECT_TYPE, 0,
                "{}: type {} is another one in the pool than in this program: {}; open the pool with the program that made it, or make "
                "the type under another name",
                memory.medium().path(), type->name, difference(*there, *type));
        }
    }
    return {};
}

const Type* PoolTypes::find(std::uint32_t id) const noexcept
{
    for (std::size_t i = id % places;; i = (i + 1) % places) {
        const Type* const type = by_id_[i].load(std::memory_order_acquire);
        if (type == nullptr || type->id == id) {
            return type;
        }
    }
}

void PoolTypes::insert(std::shared_ptr<const Type> type)
{
    std::size_t i = type->id % places;
    while (by_id_[i].load(std::memory_order_relaxed) != nullptr) {
        i = (i + 1) % places;
    }
    types_.push_back(type);
    has_pinned_.store(has_pinned() || type->is_pinned, std::memory_order_release);
    by_id_[i].store(type.get(), std::memory_order_release);
}

Result<const Type*> PoolTypes::find_or_add(std::uint32_t id)
{
    if (const Type* const known = find(id); known != nullptr) {
        return known;
    }
    const auto type = registered_types::find(id);
    if (type == nullptr) {
        return fail(SP_E_OBJECT_TYPE, 0, "no type has the number {}: describe it with NVM_TYPE", id);
    }
    const std::lock_guard hold(lock_);
    if (auto added = add_with_nested(type); !added) {
        return pass_on(added.error());
    }
    return find(id);
}

Result<void> PoolTypes::add_with_nested(const std::shared_ptr<const Type>& type)
{
    if (find(type->id) != nullptr) {
        return {};
    }
    // Nested structures first: their records come before it.
    TypeRecord head;
    std::memcpy(&head, type->record.data(), sizeof head);
    for (std::uint32_t i = 0; i < head.field_count; ++i) {
        FieldRecord field;
        std::memcpy(&field, type->record.data() + sizeof head + i * sizeof field, sizeof field);
        if (field.nested != 0) {
            if (auto added = add_with_nested(registered_types::find(static_cast<std::uint32_t>(field.nested))); !added) {
                return added;
            }
        }
    }
    if (auto added = append(*type); !added) {
        return added;
    }
    insert(type);
    return {};
}

Result<void> PoolTypes::append(const Type& type)
{
    PoolHeader& header = memory_->header();
    const std::uint64_t used = load_word(header.types_bytes);
    if (type.record.size() > types_bytes_max - used || types_.size() == types_max) {
        return fail(SP_E_POOL_FULL, 0, "{}: no room for the record of type {}", memory_->medium().path(), type.name);
    }
    std::byte& place = memory_->at<std::byte>(types_offset + used);
    std::memcpy(&place, type.record.data(), type.record.size());
    if (!is_removed(Canary::type_record_order)) {
        memory_->persist(&place, type.record.size());
    }
    memory_->persist_word(header.types_bytes, used + type.record.size());
    return {};
}

}  // namespace stillpoint::breeze
