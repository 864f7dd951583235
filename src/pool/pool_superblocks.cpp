#include "pool/pool.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/canary.hpp"
#include "pool/growth.hpp"
#include "pool/superblock.hpp"

// How an update of the superblocks survives a crash at any point: the copy that is not in
// force is written and synced, then the other is written and synced. At every moment at most
// one copy has a write under way, which may be torn at 512-byte sectors; its checksum then fails and
// the other, durable, copy is in force. After the first sync the new copy has the larger
// sequence number. record_opening() syncs before it writes: a process that was killed may have left a
// copy in the page cache, or in the CPU's, that is good to read but not yet durable, and overwriting the other
// one then would put both at risk in a power cut. Where a sync of its failed the copy is clean in the page cache,
// and would not be written by another: so it is written again before that sync.

namespace stillpoint {

/// The copy in force, as it was found. After a sync that failed it may be in the page cache alone, and clean there: a later sync would
/// not write it, and the update of the other copy would put both at risk. Where the other copy is damaged an update of that one was cut
/// off, so this one was durable: it stays alone.
Result<void> Pool::write_found_superblock_again()
{
    if (facts_.superblock_damaged || is_removed(Canary::superblock_written_again)) {
        return {};
    }
    const std::uint64_t generation = std::exchange(superblock_->generation, superblock_->generation - 1);
    seal_superblock(*superblock_);
    const BlockWrite write{(1 - first_copy_) * page_bytes, reinterpret_cast<const std::byte*>(superblock_.get()), page_bytes};
    auto written = medium_->write({&write, 1});
    superblock_->generation = generation;
    return written;
}

Result<void> Pool::record_opening()
{
    if (!opening_unrecorded_) {
        return {};
    }
    if (!is_removed(Canary::opening_sync)) {
        if (medium_->byte_addressable()) {
            medium_->write_back(0, layout::superblock_copies * page_bytes);
        } else if (auto written = write_found_superblock_again(); !written) {
            frozen_ = true;
            return written;
        }
        if (auto synced = medium_->sync(); !synced) {  // The head of this file says why.
            frozen_ = true;
            return synced;
        }
    }
    if (is_removed(Canary::opening_record)) {
        return {};
    }
    if (auto appended = append_planned_segments(); !appended) {
        return appended;
    }
    if (auto written = write_superblocks(); !written) {
        return written;
    }
    opening_unrecorded_ = false;
    facts_.superblock_repaired = facts_.superblock_damaged;
    return {};
}

Result<bool> Pool::is_unfinished(const Medium& medium)
{
    if (medium.size_bytes() >= layout::superblock_copies * page_bytes) {
        SuperblockState states[layout::superblock_copies];
        for (std::size_t copy = 0; copy < layout::superblock_copies; ++copy) {
            layout::Superblock block;
            if (auto read = medium.read(copy * page_bytes, std::as_writable_bytes(std::span(&block, 1))); !read) {
                return pass_on(read.error());
            }
            states[copy] = judge_superblock(block);
        }
        if (states[0] == SuperblockState::unfinished) {
            return states[1] != SuperblockState::good;
        }
        if (states[0] != SuperblockState::zero || states[1] != SuperblockState::zero) {
            return false;
        }
    }
    // Some other file may begin with zeroes: each byte counts.
    std::vector<std::byte> bytes(mib);
    for (std::uint64_t offset = 0; offset < medium.size_bytes(); offset += bytes.size()) {
        const std::span<std::byte> part(bytes.data(), std::min<std::uint64_t>(bytes.size(), medium.size_bytes() - offset));
        if (auto read = medium.read(offset, part); !read) {
            return pass_on(read.error());
        }
        if (std::ranges::any_of(part, [](std::byte byte) { return byte != std::byte{0}; })) {
            return false;
        }
    }
    return true;
}

Result<void> Pool::write_superblocks()
{
    ++superblock_->sequence;
    seal_superblock(*superblock_);
    const std::size_t order[layout::superblock_copies] = {first_copy_, 1 - first_copy_};
    for (const std::size_t copy : order) {
        const BlockWrite write{copy * page_bytes, reinterpret_cast<const std::byte*>(superblock_.get()), page_bytes};
        auto done = medium_->write({&write, 1});
        const bool no_sync = is_removed(copy == order[0] ? Canary::first_superblock_sync : Canary::second_superblock_sync);
        if (done && !no_sync) {
            done = medium_->sync();
        }
        if (!done) {
            frozen_ = true;
            return done;
        }
    }
    take_facts();
    return {};
}

Result<void> Pool::raise_maximum(std::uint64_t image_bytes_max)
{
    if (read_only_ || frozen_) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{}: its maximum cannot be raised: {}", medium_->path(),
                    read_only_ ? "the pool is open for reading only" : "an earlier write of its superblock failed");
    }
    const std::uint64_t present = superblock_->image_bytes_max;
    if (image_bytes_max <= present || image_bytes_max % page_bytes != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: the maximum is {} MiB: {} MiB is not more", medium_->path(), present / mib,
                    image_bytes_max / mib);
    }
    const std::uint64_t room = window_bytes - (superblock_->base_address - window_base);
    if (image_bytes_max > room) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{}: from its address, {:#x}, on there is room for {} MiB of durable memory; ask for no more than that",
                    medium_->path(), superblock_->base_address, room / mib);
    }
    // The next start appends a segment for the tables, and what is left is for the way to the maximum.
    const std::size_t needed = superblock_->segment_count + 1 + growth::segments_to_maximum(superblock_->image_bytes, image_bytes_max);
    if (needed > segments_max) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{}: it has {} segments of at most {}, too many for so large a maximum; copy its data into a new pool", medium_->path(),
                    superblock_->segment_count, segments_max);
    }
    if (auto recorded = record_opening(); !recorded) {
        return recorded;
    }
    superblock_->image_bytes_first_max = first_maximum(*superblock_);
    superblock_->feature_bits |= layout::feature_raised_maximum;
    superblock_->image_bytes_max = image_bytes_max;
    return write_superblocks();
}

}  // namespace stillpoint
