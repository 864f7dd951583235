#include "undo_pool.hpp"

#include <cstdlib>
#include <cstring>

#include "arch/flush.hpp"
#include "arch/checksum.hpp"
#include "undo_machine.hpp"

namespace stillpoint::undo {

namespace {

std::uint64_t geometry_checksum(const Geometry& geometry) noexcept
{
    return checksum64(&geometry, offsetof(Geometry, checksum), geometry.magic);
}

bool within(std::uint64_t offset, std::uint64_t size, std::uint64_t begin, std::uint64_t end) noexcept
{
    return offset >= begin && offset <= end && size <= end - offset;
}

/// One step of a walk over a log.
class LogWalk {
public:
    LogWalk(const Pool& pool, std::uint32_t slot_number) noexcept
        : pool_(pool), seed_(pool.log_seed(slot_number)),
          at_(pool.geometry().slots_offset + slot_number * pool.geometry().slot_bytes + sizeof(SlotHeader)),
          end_(pool.geometry().slots_offset + (slot_number + 1) * pool.geometry().slot_bytes)
    {
    }

    /// The next entry that holds old bytes; NULL at the log's end. An entry whose checksum does not fit was never
    /// fenced, so nothing was stored under it.
    const EntryHeader* next() noexcept
    {
        while (end_ - at_ >= sizeof(EntryHeader)) {
            const auto& entry = *reinterpret_cast<const EntryHeader*>(pool_.at(at_));
            const bool jump = entry.size == jump_mark;
            if (entry.index != index_ || (!jump && entry.size > entry_bytes_max) || entry_bytes(entry.size) > end_ - at_ ||
                entry_checksum(entry, &entry + 1, seed_) != entry.checksum) {
                return nullptr;
            }
            ++index_;
            if (!jump) {
                malformed_ = malformed_ || !pool_.may_be_logged(entry.offset, entry.size);
                at_ += entry_bytes(entry.size);
                return &entry;
            }
            const std::uint64_t first = pool_.geometry().chunks_offset;
            if (entry.offset < first || (entry.offset - first) % chunk_bytes != 0 ||
                !within(entry.offset, chunk_bytes, first, pool_.geometry().size_bytes)) {
                malformed_ = true;
                return nullptr;
            }
            at_ = entry.offset;
            end_ = entry.offset + chunk_bytes;
        }
        return nullptr;
    }
    /// Whether an entry with a right checksum named a place that no log may name.
    [[nodiscard]] bool malformed() const noexcept { return malformed_; }

private:
    const Pool& pool_;
    std::uint64_t seed_;
    std::uint64_t at_;
    std::uint64_t end_;
    std::uint32_t index_ = 0;
    bool malformed_ = false;
};

/// Puts the old bytes back, the latest first: where a byte was logged twice the first entry has what the FASE found.
bool undo_log(const Pool& pool, std::uint32_t slot_number, std::size_t entries) noexcept
{
    const auto** order = static_cast<const EntryHeader**>(std::malloc(entries * sizeof(EntryHeader*)));
    if (order == nullptr) {
        return false;
    }
    LogWalk walk(pool, slot_number);
    for (std::size_t i = 0; i < entries; ++i) {
        order[i] = walk.next();
    }
    for (std::size_t i = entries; i-- > 0;) {
        std::memcpy(pool.at(order[i]->offset), order[i] + 1, order[i]->size);
        (void)arch::flush(machine, pool.at(order[i]->offset), order[i]->size);
    }
    std::free(order);
    if (!removed(Canary::recovery_fence)) {
        machine.fence();
    }
    SlotHeader& slot = pool.slot(slot_number);
    slot.sequence += 1;
    machine.write_back(&slot.sequence);
    machine.fence();
    return true;
}

}  // namespace

std::uint64_t entry_checksum(const EntryHeader& entry, const void* old_bytes, std::uint64_t seed) noexcept
{
    const std::uint64_t shape = std::uint64_t{entry.index} << 32 | entry.size;
    return checksum64(old_bytes, entry.size == jump_mark ? 0 : entry.size, seed ^ mix64(entry.offset, shape));
}

std::uint64_t Pool::log_seed(std::uint32_t slot_number) const noexcept { return mix64(slot(slot_number).sequence, slot_number + 1); }

Geometry Pool::plan(std::uint64_t size_bytes) noexcept
{
    Geometry plan{};
    const bool small = size_bytes < 64u << 20;
    plan.magic = magic;
    plan.version = format_version;
    plan.slots = small ? 16 : 128;
    plan.slot_bytes = small ? 16 * 1024 : 64 * 1024;
    plan.size_bytes = size_bytes / chunk_bytes * chunk_bytes;
    plan.window_base = std::uint64_t{0x4a} << 40;
    plan.table_offset = page_bytes;
    const auto to_page = [](std::uint64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; };
    plan.slots_offset = plan.table_offset + to_page(plan.size_bytes / chunk_bytes * sizeof(std::uint64_t));
    plan.chunks_offset = (plan.slots_offset + plan.slots * plan.slot_bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    plan.chunks = (plan.size_bytes - plan.chunks_offset) / chunk_bytes;
    plan.checksum = geometry_checksum(plan);
    return plan;
}

const char* Pool::check(const Header& header, std::uint64_t size_bytes) noexcept
{
    const Geometry& found = header.geometry;
    if (found.magic != magic) {
        return "not a pool of the layer undo";
    }
    if (found.version != format_version) {
        return "a pool of another version of the layer undo";
    }
    if (found.checksum != geometry_checksum(found)) {
        return "the pool's header is damaged";
    }
    // A pool of a given size has one geometry only, so nothing of a hostile header is followed.
    if (size_bytes < 1u << 20 || found.size_bytes != size_bytes) {
        return "the file is not as long as the pool's header says";
    }
    const Geometry wanted = plan(size_bytes);
    return std::memcmp(&found, &wanted, sizeof found) == 0 ? nullptr : "the pool's header is damaged";
}

bool Pool::may_be_logged(std::uint64_t offset, std::uint64_t size) const noexcept
{
    const Geometry& shape = geometry();
    if (within(offset, size, shape.chunks_offset, shape.size_bytes) ||
        within(offset, size, shape.table_offset, shape.table_offset + shape.chunks * sizeof(std::uint64_t)) ||
        within(offset, size, offsetof(Header, variables.root), offsetof(Header, variables) + sizeof(Variables))) {
        return true;
    }
    if (!within(offset, size, shape.slots_offset, shape.slots_offset + shape.slots * shape.slot_bytes)) {
        return false;
    }
    const std::uint64_t in_slot = (offset - shape.slots_offset) % shape.slot_bytes;
    return within(in_slot, size, offsetof(SlotHeader, free_blocks), sizeof(SlotHeader));
}

bool Pool::is_block(std::uint64_t offset) const noexcept
{
    const Geometry& shape = geometry();
    if (!within(offset, sizeof(BlockHeader), shape.chunks_offset, shape.size_bytes) || offset % 16 != 0) {
        return false;
    }
    const auto& block = *reinterpret_cast<const BlockHeader*>(at(offset));
    return block.mark == block_mark && block.size_class < size_classes && class_bytes(block.size_class) <= shape.size_bytes - offset;
}

const char* Pool::check_contents() const noexcept
{
    const Geometry& shape = geometry();
    for (std::uint64_t chunk = 0; chunk < shape.chunks; ++chunk) {
        if (used(chunk) > chunk_bytes || used(chunk) % 16 != 0) {
            return "the pool's table of chunks is damaged";
        }
    }
    for (std::uint32_t number = 0; number < shape.slots; ++number) {
        for (const std::uint64_t block : slot(number).free_blocks) {
            if (block != 0 && !is_block(block)) {
                return "a list of free blocks of the pool is damaged";
            }
        }
    }
    const Variables& now = variables();
    if (now.root != 0 && (now.root < sizeof(BlockHeader) || !is_block(now.root - sizeof(BlockHeader)))) {
        return "the pool's root is damaged";
    }
    return now.run % 2 == 0 ? nullptr : "the pool's variables are damaged";
}

const char* Pool::recover() const noexcept
{
    for (std::uint32_t number = 0; number < geometry().slots; ++number) {
        LogWalk walk(*this, number);
        while (walk.next() != nullptr) {
        }
        if (walk.malformed()) {
            return "a log of the pool is damaged";
        }
    }
    for (std::uint32_t number = 0; number < geometry().slots; ++number) {
        std::size_t entries = 0;
        for (LogWalk walk(*this, number); walk.next() != nullptr;) {
            ++entries;
        }
        if (entries > 0 && !undo_log(*this, number, entries)) {
            return "no memory to undo a log of the pool";
        }
    }
    return nullptr;
}

}  // namespace stillpoint::undo
