#include "pool/directory.hpp"

#include <algorithm>
#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "core/store_marks.hpp"
#include "pool/corrupt.hpp"
#include "pool/image_layout.hpp"

// Open addressing with linear probing. Invariant: between the slot that a name hashes to and the
// slot it lies in there is no free slot. erase() restores it by shifting back what would be cut off, so no
// tombstones pile up. Every probe is bounded by the capacity: a full or hostile table ends it.

namespace stillpoint {
namespace {

using layout::DirectoryRecord;

std::uint64_t hash_of(std::string_view handle) noexcept
{
    const std::uint64_t hash = checksum64(handle.data(), handle.size(), layout::directory_hash_seed);
    return hash == 0 ? 1 : hash;  // 0 marks a free entry.
}

/// Bounded, so that a record without a terminator does not overrun.
std::string_view name_of(const DirectoryRecord& record) noexcept
{
    return {record.handle, strnlen(record.handle, Directory::handle_bytes_max)};
}

bool tail_is_zero(const DirectoryRecord& record) noexcept
{
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    const std::size_t begin = offsetof(DirectoryRecord, handle) + name_of(record).size();
    return std::all_of(bytes + begin, bytes + sizeof record, [](std::uint8_t byte) { return byte == 0; });
}

/// Before and after each store to a record.
void announce_record_store(const DirectoryRecord& record) noexcept { announce_store(&record, sizeof record); }
void note_record_store(const DirectoryRecord& record) noexcept
{
    if (!is_removed(Canary::directory_store_marks)) {
        note_block_state(&record, sizeof record);
    }
}

}  // namespace

Directory::Directory(std::byte* base, const ImageGeometry& geometry) noexcept : base_(base), geometry_(geometry) {}

DirectoryRecord* Directory::records() const noexcept { return reinterpret_cast<DirectoryRecord*>(base_ + geometry_.directory_offset); }

DirectoryEntry Directory::entry_of(const DirectoryRecord& record) noexcept { return {name_of(record), record.address, record.size}; }

std::uint64_t Directory::home_of(std::uint64_t hash) const noexcept
{
    return hash & (geometry_.directory_capacity - 1);  // The capacity is a power of two.
}

std::uint64_t Directory::next_slot(std::uint64_t slot) const noexcept { return (slot + 1) & (geometry_.directory_capacity - 1); }

bool Directory::valid_handle(std::string_view handle) noexcept
{
    return !handle.empty() && handle.size() <= handle_bytes_max && handle.find('\0') == std::string_view::npos;
}

DirectoryRecord* Directory::locate(std::string_view handle) const noexcept
{
    if (!valid_handle(handle)) {
        return nullptr;
    }
    const std::uint64_t hash = hash_of(handle);
    std::uint64_t slot = home_of(hash);
    for (std::uint64_t probes = 0; probes < geometry_.directory_capacity; ++probes) {
        DirectoryRecord& record = records()[slot];
        if (record.hash == 0) {
            return nullptr;
        }
        if (record.hash == hash && name_of(record) == handle) {
            return &record;
        }
        slot = next_slot(slot);
    }
    return nullptr;
}

std::optional<DirectoryEntry> Directory::find(std::string_view handle) const noexcept
{
    const DirectoryRecord* record = locate(handle);
    return record == nullptr ? std::nullopt : std::optional(entry_of(*record));
}

Result<void> Directory::insert(std::string_view handle, std::uintptr_t address, std::uint64_t size_bytes)
{
    if (!valid_handle(handle)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "handle of {} bytes: it must have 1 to {}, none of them 0", handle.size(), handle_bytes_max);
    }
    if (locate(handle) != nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "handle \"{}\" exists already", handle);
    }
    const std::uint64_t hash = hash_of(handle);
    std::uint64_t slot = home_of(hash);
    for (std::uint64_t probes = 0; probes < geometry_.directory_capacity; ++probes) {
        DirectoryRecord& record = records()[slot];
        if (record.hash == 0) {
            announce_record_store(record);
            record = DirectoryRecord{};
            record.address = address;
            record.size = size_bytes;
            std::memcpy(record.handle, handle.data(), handle.size());
            record.hash = hash;
            note_record_store(record);
            return {};
        }
        slot = next_slot(slot);
    }
    return fail(SP_E_DIRECTORY_FULL, 0,
                "handle \"{}\": all {} entries of the directory are in use; delete a handle, or create "
                "the pool with a larger maximum",
                handle, geometry_.directory_capacity);
}

Result<void> Directory::replace(std::string_view handle, std::uintptr_t address, std::uint64_t size_bytes)
{
    DirectoryRecord* record = locate(handle);
    if (record == nullptr) {
        return fail(SP_E_HANDLE_MISSING, 0, "no durable object has the handle \"{}\"", handle);
    }
    announce_record_store(*record);
    record->address = address;
    record->size = size_bytes;
    note_record_store(*record);
    return {};
}

Result<void> Directory::erase(std::string_view handle)
{
    DirectoryRecord* const found = locate(handle);
    if (found == nullptr) {
        return fail(SP_E_HANDLE_MISSING, 0, "no durable object has the handle \"{}\"", handle);
    }
    const std::uint64_t mask = geometry_.directory_capacity - 1;
    auto hole = static_cast<std::uint64_t>(found - records());
    std::uint64_t slot = hole;
    // In a full table the walk ends when it has come round.
    for (std::uint64_t steps = 1; steps < geometry_.directory_capacity; ++steps) {
        slot = next_slot(slot);
        DirectoryRecord& record = records()[slot];
        if (record.hash == 0) {
            break;
        }
        // The record stays reachable if its home lies after the hole: in (hole, slot], round the end.
        const std::uint64_t from_home = (slot - home_of(record.hash)) & mask;
        const std::uint64_t from_hole = (slot - hole) & mask;
        if (from_home >= from_hole) {
            announce_record_store(records()[hole]);
            records()[hole] = record;
            note_record_store(records()[hole]);
            hole = slot;
        }
    }
    announce_record_store(records()[hole]);
    records()[hole] = DirectoryRecord{};
    note_record_store(records()[hole]);
    return {};
}

std::optional<DirectoryEntry> Directory::find_by_address(std::uintptr_t address) const noexcept
{
    for (std::uint64_t slot = 0; slot < geometry_.directory_capacity; ++slot) {
        const DirectoryRecord& record = records()[slot];
        if (record.hash != 0 && record.address == address) {
            return entry_of(record);
        }
    }
    return std::nullopt;
}

Result<void> Directory::check(std::uint64_t image_bytes, Findings* findings) const
{
    for (std::uint64_t slot = 0; slot < geometry_.directory_capacity; ++slot) {
        if (const auto good = check_record(slot, image_bytes); !good) {
            if (auto told = found(findings, pass_on(good.error())); !told) {
                return told;
            }
        }
    }
    return {};
}

Result<void> Directory::check_record(std::uint64_t slot, std::uint64_t image_bytes) const
{
    const auto& header = *reinterpret_cast<const layout::ImageHeader*>(base_);
    const DirectoryRecord& record = records()[slot];
    if (record.hash == 0) {
        if (record.address != 0 || record.size != 0 || record.handle[0] != '\0' || !tail_is_zero(record)) {
            return corrupt("handle directory, entry {}: hash is 0 but other fields are not", slot);
        }
        return {};
    }
    const std::string_view name = name_of(record);
    if (name.empty()) {
        return corrupt("handle directory, entry {}: handle is empty", slot);
    }
    if (!tail_is_zero(record)) {
        return corrupt("handle directory, entry {}: handle is not terminated, or bytes after it "
                       "are not zero",
                       slot);
    }
    if (record.hash != hash_of(name)) {
        return corrupt("handle directory, entry {} (\"{}\"): hash does not belong to the handle", slot, name);
    }
    // Unsigned subtraction: an address below the base becomes a huge offset.
    const std::uint64_t offset = record.address - header.base_address;
    if (offset < geometry_.heap_offset || offset > image_bytes || record.size > image_bytes - offset) {
        return corrupt("handle directory, entry {} (\"{}\"): address {:#x} + {} bytes is not in "
                       "the heap",
                       slot, name, record.address, record.size);
    }
    // The probe for its own name must end here: a free slot or the same name before it is found.
    if (locate(name) != &record) {
        return corrupt("handle directory, entry {} (\"{}\"): a look-up does not find it: its probe "
                       "run is broken, or the handle is there twice",
                       slot, name);
    }
    return {};
}

}  // namespace stillpoint
