#include "engines/breeze/types.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/canary.hpp"
#include "engines/breeze/type_comparison.hpp"
#include "engines/breeze/type_descriptions.hpp"

namespace stillpoint::breeze {

namespace {

struct Registry {
    os::FutexLock lock;
    std::vector<std::shared_ptr<const Type>> types;
};
Registry& registry()
{
    static Registry* const made = new Registry;  // Used by constructors and destructors of the program.
    return *made;
}

/// Errors: object_type.
Result<void> keep(std::shared_ptr<const Type> type)
{
    Registry& known = registry();
    const std::lock_guard hold(known.lock);
    const auto other = std::ranges::find(known.types, type->id, [](const auto& registered) { return registered->id; });
    if (other == known.types.end()) {
        known.types.push_back(std::move(type));
        return {};
    }
    const std::string differs = (*other)->name == type->name ? difference(**other, *type, "there", "here")
                                                             : "choose another name, this one's number is taken";
    if (!differs.empty()) {
        return fail(SP_E_OBJECT_TYPE, 0, "type {} is registered twice, with different fields: {}", type->name, differs);
    }
    if (!(*other)->is_complete) {
        *other = std::move(type);
    }
    return {};
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
    if (type.name == nullptr || *type.name == '\0' || std::strlen(type.name) >= name_bytes) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a type's name has 1 to {} bytes", name_bytes - 1);
    }
    std::vector<nvm_field> entries;
    if (type.field_count == 0 || type.fields[0].kind != NVM_FIELD_TYPE) {
        nvm_field& begin = entries.emplace_back();
        std::strncpy(begin.name, type.name, name_bytes - 1);
        begin.kind = NVM_FIELD_TYPE;
        begin.count = type.size_bytes;
    }
    entries.insert(entries.end(), type.fields, type.fields + type.field_count);
    auto described = types_of_entries(entries, &find);
    if (!described) {
        return pass_on(described.error());
    }
    for (const DescribedType& each : *described) {
        if (auto kept = keep(each.type); !kept) {
            return kept;
        }
    }
    if (described->back().type->name != type.name) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "type {}: its description is that of {}", type.name, described->back().type->name);
    }
    type.id = described->back().type->id;
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
    for (std::uint64_t place = 0; place < used || used > types_bytes_max;) {
        const auto bytes = used > types_bytes_max ? Result<std::uint64_t>(fail(SP_E_POOL_CORRUPT, 0, "")) : load_record(place, used);
        if (!bytes) {
            return fail(SP_E_POOL_CORRUPT, 0, "{}: the type record at byte {} of the image is damaged: the pool's pointers cannot be found",
                        memory.medium().path(), types_offset + place);
        }
        place += *bytes;
    }
    for (const auto& type : registered_types::all()) {
        const Type* const there = find(type->id);
        const std::string differs = there != nullptr ? difference(*there, *type, "there", "here") : "";
        if (!differs.empty()) {
            return fail(SP_E_OBJECT_TYPE, 0,
                        "{}: type {} is another one in the pool than in this program: {}; `stillpoint convert` makes a pool for this "
                        "program; or open the pool with the program that made it, or give the type another name",
                        memory.medium().path(), type->name, differs);
        }
    }
    return {};
}

Result<void> PoolTypes::load_whole(PoolMemory& memory, Findings& findings)
{
    memory_ = &memory;
    const std::uint64_t used = load_word(memory.header().types_bytes);
    bool ends_with_record = used == 0;
    bool is_told = false;
    // A record is durable before the word that counts it: one that lies after it is whole, or its checksum says that it is not.
    for (std::uint64_t place = 0; place < types_bytes_max;) {
        if (const auto bytes = load_record(place, types_bytes_max); bytes) {
            const std::byte* const record = &memory.at<std::byte>(types_offset + place);
            whole_records_.insert(whole_records_.end(), record, record + *bytes);
            place += *bytes;
            ends_with_record = ends_with_record || place == used;
            is_told = false;
            continue;
        }
        if (!is_told && place < used) {
            is_told = true;
            findings.damage(fail(SP_E_POOL_CORRUPT, 0,
                                 "{}: the type record at byte {} of the image is damaged: objects of its type are lost",
                                 memory.medium().path(), types_offset + place)
                                .value());
        }
        place += sizeof(std::uint64_t);
    }
    if (!ends_with_record && !is_told) {
        findings.damage(fail(SP_E_POOL_CORRUPT, 0, "{}: the size of the type records is damaged: it says {}, where no record ends",
                             memory.medium().path(), used)
                            .value());
    }
    return {};
}

/// Reads the record at that place; its bytes. Errors: pool_corrupt, invalid_argument: without the place.
Result<std::uint64_t> PoolTypes::load_record(std::uint64_t place, std::uint64_t used)
{
    const auto damaged = [] { return fail(SP_E_POOL_CORRUPT, 0, "a damaged type record"); };
    TypeRecord head;
    if (used - place < sizeof head) {
        return damaged();
    }
    std::memcpy(&head, &memory_->at<std::byte>(types_offset + place), sizeof head);
    const std::uint64_t bytes = sizeof head + std::uint64_t{head.field_count} * sizeof(FieldRecord);
    if (head.field_count > fields_max || bytes > used - place) {
        return damaged();
    }
    const std::byte* const begin = &memory_->at<std::byte>(types_offset + place);
    std::vector<std::byte> record(begin, begin + bytes);
    if (!is_whole_record(record)) {
        return damaged();
    }
    auto made = type_of_record(std::move(record), [this](std::uint32_t id) { return shared(id); });
    if (!made) {
        return pass_on(made.error());
    }
    // A second record of a type is its complete description, where the first one was not.
    const Type* const before = find(head.id);
    const bool is_allowed = before == nullptr ? types_.size() < types_max
                                              : (*made)->is_complete && !before->is_complete && difference(*before, **made, "", "").empty();
    if (!is_allowed) {
        return damaged();
    }
    insert(std::move(*made));
    return bytes;
}

void PoolTypes::adopt_complete_descriptions()
{
    for (const auto& type : registered_types::all()) {
        const Type* const there = find(type->id);
        if (there != nullptr && !there->is_complete && type->is_complete && !add_with_nested(type)) {
            return;  // No room: the pool goes on with what it has.
        }
    }
}

std::shared_ptr<const Type> PoolTypes::shared(std::uint32_t id) const noexcept
{
    const auto found = std::ranges::find(types_, id, [](const auto& type) { return type->id; });
    return found == types_.end() ? nullptr : *found;
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
    for (const Type* there = nullptr; (there = by_id_[i].load(std::memory_order_relaxed)) != nullptr && there->id != type->id;) {
        i = (i + 1) % places;
    }
    has_pinned_.store(has_pinned() || type->is_pinned, std::memory_order_release);
    by_id_[i].store(type.get(), std::memory_order_release);
    const auto before = std::ranges::find(types_, type->id, [](const auto& known) { return known->id; });
    if (before == types_.end()) {
        types_.push_back(std::move(type));
    } else {
        replaced_.push_back(std::exchange(*before, std::move(type)));
    }
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
    if (const Type* const there = find(type->id); there != nullptr && (there->is_complete || !type->is_complete)) {
        return {};
    }
    // Nested structures first: their records come before it.
    for (const Field& field : type->fields) {
        if (field.nested != nullptr) {
            if (auto added = add_with_nested(field.nested); !added) {
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
