#pragma once
// The image's own tables (header, directory, synchronisation objects): ordinary memory in the process, two copies of each page in the file.
// They are written seldom and by code that knows of no logged variables; so a page is the unit, and copies take turns.

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/respct/respct_layout.hpp"
#include "pool/image.hpp"
#include "pool/pool.hpp"

namespace stillpoint::respct {

/// The seed of the checksums of a pool's table pages.
[[nodiscard]] std::uint64_t table_seed(const Uuid& uuid) noexcept;
[[nodiscard]] std::uint64_t checksum_of_copy(std::uint64_t seed, const std::byte* page, std::uint64_t number, std::uint64_t epoch) noexcept;
/// The page's part of CommitRecord::table_digest.
[[nodiscard]] std::uint64_t digest_of_record(std::uint64_t page, const CopyRecord& record) noexcept;

class TableCopies {
public:
    /// The contents of the commit record.
    struct Committed {
        std::uint64_t epoch;
        std::uint64_t digest;
    };
    /// Reads the newest committed copies into `image`, of which the table pages are zero. Errors: pool_corrupt (told to `findings`, if
    /// there are any, and passed over), io, no_memory.
    [[nodiscard]] Result<void> load(const Pool& pool, const ImageGeometry& geometry, const Committed& committed, std::byte* image,
                                    Findings* findings = nullptr);

    /// The tables' stores: any thread, inside a FASE. `address` lies in the tables of the image that was loaded.
    void note(const void* address, std::size_t size_bytes) noexcept;
    [[nodiscard]] bool changed() const noexcept { return changed_.load(std::memory_order_relaxed); }

    /// In the stop: takes the pages that were changed since the last capture. No malloc.
    void capture() noexcept;
    /// Hands what was captured to the medium, as copies of `epoch`; the first time also records that a crash left uncommitted copies in, or
    /// their epochs would look committed one day. Durable with the next fence or sync. Errors: io, no_space.
    [[nodiscard]] Result<void> write(Pool& pool, std::uint64_t epoch);
    /// For the epoch's commit record: over the records of the newest copies. Without it a damaged record would lead to an older copy.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

private:
    [[nodiscard]] std::uint64_t checksum_of(const std::byte* page, std::uint64_t number, std::uint64_t epoch) const noexcept
    {
        return checksum_of_copy(seed_, page, number, epoch);
    }
    [[nodiscard]] Result<void> load_page(const Pool& pool, std::uint64_t page, std::uint64_t durable);
    [[nodiscard]] Result<void> write_page(Pool& pool, std::uint64_t page, const std::byte* bytes, std::uint64_t epoch);
    [[nodiscard]] Result<void> write_record_page(Pool& pool, std::uint64_t record_page);
    [[nodiscard]] CopyRecord& record(std::uint64_t page) noexcept;
    /// This page's part of digest_.
    [[nodiscard]] std::uint64_t digest_of(std::uint64_t page) noexcept { return digest_of_record(page, record(page)); }

    ImageGeometry geometry_{};
    std::byte* image_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t digest_ = 0;
    std::vector<std::atomic<bool>> dirty_;  ///< by page
    std::vector<std::uint64_t> captured_pages_;  ///< reserved for all
    std::vector<std::byte> captured_storage_;
    std::byte* captured_ = nullptr;  ///< page aligned, in captured_storage_
    std::vector<std::byte> record_storage_;
    std::byte* records_ = nullptr;  ///< as in the file; page aligned
    std::vector<bool> stale_record_pages_;  ///< in which load() has forgotten uncommitted copies
    std::atomic<bool> changed_{false};
};

}  // namespace stillpoint::respct
