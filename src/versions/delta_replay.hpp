#pragma once
// DeltaReplay: lays the lines of the live batches over the copies of pages that recovery loads.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"
#include "versions/delta_row.hpp"

namespace stillpoint::versions {

/// Filled by DeltaLog::load(). Lines are read, and their checksums compared, when the first page that has some of their block is loaded.
/// Threads: apply() and has() by any number at once, after load().
class DeltaReplay {
public:
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages, std::uint64_t row_pages);

    /// The batches come from the newest to the oldest, so that a page's list begins with its oldest lines.
    struct Batch {
        std::uint64_t epoch;
        std::uint64_t seed;  ///< of the checksums of its blocks
        std::uint64_t first_line_page;  ///< in the row
        std::uint64_t lines;
    };
    [[nodiscard]] Result<std::uint32_t> add_batch(const Batch& batch, const std::uint64_t* block_sums);
    void add_group(std::uint32_t batch, std::uint64_t image_page, std::uint64_t mask, std::uint64_t first_line) noexcept;

    [[nodiscard]] bool has(std::uint64_t image_page) const noexcept
    {
        return image_page < first_group_of_.capacity() && first_group_of_[image_page] != 0;
    }
    /// Lays the page's lines over the bytes of its copy. Errors: pool_corrupt, pool_truncated, io.
    [[nodiscard]] Result<void> apply(std::uint64_t image_page, std::byte* bytes);
    /// Every page is loaded: the memory goes back to the system. A thread may yet be in apply(), for a page that another has loaded
    /// meanwhile: what it makes of those bytes does not matter.
    void release() noexcept;

    void begin(const Medium& medium, const DeltaRow& row) noexcept
    {
        medium_ = &medium;
        row_ = row;
    }

private:
    struct Group {
        std::uint64_t mask;
        std::uint32_t batch;
        std::uint32_t first_line;
        std::uint32_t next;  ///< 1 + index; 0: the last
    };
    static constexpr std::uint64_t lines_per_block = delta_block_bytes / cache_line_bytes;

    [[nodiscard]] Result<void> apply_groups(std::uint64_t image_page, std::byte* bytes);
    [[nodiscard]] Result<const std::byte*> block(const Batch& batch, std::uint64_t first_sum, std::uint64_t number);

    const Medium* medium_ = nullptr;
    DeltaRow row_;
    os::ReservedArray<std::uint32_t> first_group_of_;  ///< by image page: 1 + index of its oldest group
    os::ReservedArray<Group> groups_;
    os::ReservedArray<Batch> batches_;
    os::ReservedArray<std::uint64_t> first_sum_of_;  ///< by batch
    os::ReservedArray<std::uint64_t> sums_;
    os::ReservedArray<std::byte> lines_;  ///< by page of the row
    os::ReservedArray<std::uint8_t> is_read_;  ///< by page of the row, of a block's first page
    os::FutexLock reading_;
    std::atomic<std::uint32_t> applying_{0};
    std::atomic<bool> is_released_{false};
    std::uint64_t group_count_ = 0;
    std::uint64_t batch_count_ = 0;
    std::uint64_t sum_count_ = 0;
};

}  // namespace stillpoint::versions
