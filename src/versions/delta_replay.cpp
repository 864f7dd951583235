#include "versions/delta_replay.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "os/thread_calls.hpp"

namespace stillpoint::versions {

Result<void> DeltaReplay::reserve(std::uint64_t image_pages, std::uint64_t row_pages)
{
    // A group has a line at least, and a batch a page.
    if (auto done = groups_.reserve(row_pages * lines_per_page, "the log's lines"); !done) {
        return done;
    }
    if (auto done = first_group_of_.reserve(image_pages, "the log's lines"); !done) {
        return done;
    }
    if (auto done = batches_.reserve(row_pages, "the log's batches"); !done) {
        return done;
    }
    if (auto done = first_sum_of_.reserve(row_pages, "the log's batches"); !done) {
        return done;
    }
    if (auto done = sums_.reserve(row_pages, "the log's checksums"); !done) {
        return done;
    }
    if (auto done = lines_.reserve(row_pages * page_bytes, "the log's lines"); !done) {
        return done;
    }
    return is_read_.reserve(row_pages, "the log's lines");
}

Result<std::uint32_t> DeltaReplay::add_batch(const Batch& batch, const std::uint64_t* block_sums)
{
    const std::uint64_t blocks = delta_blocks_for(batch.lines);
    if (batch_count_ == batches_.capacity() || sum_count_ + blocks > sums_.capacity()) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the delta log has more batches than pages; restore the pool from a copy", medium_->path());
    }
    batches_[batch_count_] = batch;
    first_sum_of_[batch_count_] = sum_count_;
    std::copy_n(block_sums, blocks, sums_.data() + sum_count_);
    sum_count_ += blocks;
    return static_cast<std::uint32_t>(batch_count_++);
}

void DeltaReplay::release() noexcept
{
    is_released_.store(true);
    while (applying_.load() != 0) {
        os::yield_cpu();
    }
    first_group_of_.discard_from(0);
    groups_.discard_from(0);
    batches_.discard_from(0);
    first_sum_of_.discard_from(0);
    sums_.discard_from(0);
    lines_.discard_from(0);
    is_read_.discard_from(0);
}

void DeltaReplay::add_group(std::uint32_t batch, std::uint64_t image_page, std::uint64_t mask, std::uint64_t first_line) noexcept
{
    groups_[group_count_] = {mask, batch, static_cast<std::uint32_t>(first_line), first_group_of_[image_page]};
    first_group_of_[image_page] = static_cast<std::uint32_t>(++group_count_);
}

Result<const std::byte*> DeltaReplay::block(const Batch& batch, std::uint64_t first_sum, std::uint64_t number)
{
    constexpr std::uint64_t block_pages = delta_block_bytes / page_bytes;
    const std::uint64_t first_page = batch.first_line_page + number * block_pages;
    std::byte* const bytes = lines_.data() + first_page * page_bytes;
    const std::atomic_ref<std::uint8_t> is_read(is_read_[first_page]);
    if (is_read.load(std::memory_order_acquire) != 0) {
        return bytes;
    }
    const std::lock_guard guard(reading_);
    if (is_read.load(std::memory_order_relaxed) != 0) {
        return bytes;
    }
    const std::uint64_t size = std::min(delta_block_bytes, batch.lines * cache_line_bytes - number * delta_block_bytes);
    if (auto read = row_.read(*medium_, first_page, (size + page_bytes - 1) / page_bytes, bytes); !read) {
        return pass_on(read.error());
    }
    if (checksum64(bytes, size, batch.seed + number) != sums_[first_sum + number] && !is_removed(Canary::delta_block_checksum)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: lines that epoch {} changed, page {} of the delta log, do not match their checksum; run `stillpoint check` and "
                    "restore the pool from a copy",
                    medium_->path(), batch.epoch, first_page);
    }
    is_read.store(1, std::memory_order_release);
    return bytes;
}

Result<void> DeltaReplay::apply(std::uint64_t image_page, std::byte* bytes)
{
    applying_.fetch_add(1);
    const Result<void> outcome = is_released_.load() ? Result<void>{} : apply_groups(image_page, bytes);
    applying_.fetch_sub(1);
    return outcome;
}

Result<void> DeltaReplay::apply_groups(std::uint64_t image_page, std::byte* bytes)
{
    if (!has(image_page)) {
        return {};
    }
    for (std::uint32_t next = first_group_of_[image_page]; next != 0;) {
        const Group& group = groups_[next - 1];
        const Batch& batch = batches_[group.batch];
        std::uint64_t line = group.first_line;
        for (std::uint64_t mask = group.mask; mask != 0; mask &= mask - 1, ++line) {
            const auto found = block(batch, first_sum_of_[group.batch], line / lines_per_block);
            if (!found) {
                return pass_on(found.error());
            }
            std::memcpy(bytes + static_cast<unsigned>(std::countr_zero(mask)) * cache_line_bytes,
                        *found + line % lines_per_block * cache_line_bytes, cache_line_bytes);
        }
        next = group.next;
    }
    return {};
}

}  // namespace stillpoint::versions
