#pragma once
// EpochWriter: makes a captured epoch durable by failure-atomic version switching
// [PMThreads §4.2, Algorithm 2].
//
// The order, on every medium: working copies and the table pages that changed, in any order | sync or
// fence | commit record with VER_d + 1 | sync or fence. Until the commit record is there, recovery takes every table page of the
// epoch for unfinished; so, unlike in Algorithm 2, a slot needs no fence of its own before its page.
//
// Where the two media differ is the place of a working copy:
//   block media: the next free pages of the file, so that an epoch is few large writes;
//   byte-addressable media: the one of the page's two homes that is free, where only changed lines are stored.

#include <cstdint>
#include <optional>
#include <span>

#include "core/canary.hpp"
#include "core/result.hpp"
#include "versions/await_room.hpp"
#include "versions/between_pieces.hpp"
#include "versions/delta_log.hpp"
#include "versions/location_allocator.hpp"
#include "versions/page_layout.hpp"
#include "versions/version_table.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::versions {

struct EpochFacts {
    std::uint64_t epoch;
    std::uint64_t image_pages;
    std::uint64_t captured_unix_ns;
    bool clean;
    /// The log, and what it gets of this epoch. nullptr: the pool has none.
    DeltaLog* log = nullptr;
    DeltaBatch deltas = {};
};

/// Threads: the checkpoint thread only; the medium's lock keeps a growing pool apart.
class EpochWriter {
public:
    static constexpr std::uint64_t all_lines = UINT64_MAX;

    struct WriteRules {
        /// A page of zeroes without a durable copy, which means zeroes, is not written unless it is certain that it was.
        bool leaves_out_zero_pages = false;
        /// The medium's lock is never held for more than this, apart from a sync. A multiple of page_bytes.
        std::uint64_t batch_bytes_max = UINT64_MAX;
        /// While commit() works.
        BetweenPieces between_pieces = {};
        AwaitRoom await_room = {};
    };

    EpochWriter(Pool& pool, VersionTable& table, LocationAllocator& locations, os::FutexLock& medium_lock) noexcept
        : EpochWriter(pool, table, locations, medium_lock, WriteRules{})
    {
    }
    EpochWriter(Pool& pool, VersionTable& table, LocationAllocator& locations, os::FutexLock& medium_lock,
                const WriteRules& write_rules) noexcept
        : pool_(pool), table_(table), locations_(locations), medium_lock_(medium_lock), write_rules_(write_rules)
    {
    }

    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max);

    /// By image page, for Loader::Source, so that pages are not written that are as they were loaded.
    [[nodiscard]] std::uint64_t* content_hashes() noexcept { return content_hashes_.data(); }

    /// The page is written the next time, even if it is as its newest copy.
    void forget_content(std::uint64_t image_page) noexcept { content_hashes_[image_page] = 0; }

    void begin(std::uint64_t epoch) noexcept;
    /// Writes the copy of page number `index` of the epoch. The same index may be written again,
    /// with newer bytes. Where the bytes are those of the page's consistent copy nothing is written: a lock was taken and released, a field
    /// got the value that it had. `certain`: the page was stored to. `lines`: those that may differ from the bytes that the last call for
    /// this image page was given and wrote. Neighbouring indexes with neighbouring bytes become one large write.
    /// Returns whether anything is written. Errors: io, no_space, pool_full (no free location: cannot
    /// happen with two data pages for each page).
    [[nodiscard]] Result<bool> write_page(std::uint64_t index, std::uint64_t image_page, const std::byte* bytes, bool certain,
                                          std::uint64_t lines = all_lines);
    /// Hands what write_page gathered to the medium.
    [[nodiscard]] Result<void> flush_gathered();
    /// Switches the roles of all pages written since begin(), and returns when the epoch is durable.
    [[nodiscard]] Result<void> commit(const EpochFacts& facts);

    /// Byte-addressable media, late second copies: one that is not the newest gives its room back if its page has had no new copy for 5
    /// to 10 seconds.
    /// Between commit() and begin(), or while the program rests. Cost: a walk over the image's pages each 10 seconds, in pieces.
    void return_room(std::uint64_t now_ns) noexcept;

private:
    struct Pending {
        std::uint32_t image_page;
        std::uint32_t location;  ///< 0: not written in this epoch
        std::uint32_t checksum;
        std::uint64_t lines;  ///< that may differ from the copy before
    };
    static constexpr std::size_t gathered_max = 1024;
    static constexpr std::uint64_t table_pages_at_once = 64;

    [[nodiscard]] Result<void> take_room();
    [[nodiscard]] Result<std::uint32_t> choose_location(std::uint64_t image_page);
    [[nodiscard]] Result<std::uint32_t> find_location(std::uint64_t image_page);
    /// Byte-addressable media: a free place of the page's own; 0: none.
    [[nodiscard]] Result<std::uint32_t> take_home(std::uint64_t image_page);
    void release_run(std::uint64_t begin, std::uint64_t end) noexcept;
    [[nodiscard]] Result<void> gather(std::uint32_t location, const std::byte* bytes);
    /// Byte-addressable media: what the data page may differ in from the page's bytes. Nothing: this run has not written it.
    [[nodiscard]] std::optional<std::uint64_t> lines_to_store(std::uint64_t image_page, std::uint32_t location,
                                                              std::uint64_t lines) noexcept;
    /// Whether differing lines are looked for, and not known.
    [[nodiscard]] static bool are_compared(std::uint64_t lines) noexcept;
    void prefetch_older_copy(std::uint64_t image_page, std::uint32_t location, std::uint64_t lines) const noexcept;
    void store_lines(std::uint64_t offset, const std::byte* bytes, std::uint64_t lines, Canary write_back);
    /// Returns how many lines differed.
    int store_changed_lines(std::uint64_t offset, const std::byte* bytes, Canary write_back);
    void store_page(std::uint64_t image_page, std::uint32_t location, const std::byte* bytes, std::optional<std::uint64_t> lines);
    [[nodiscard]] Result<void> write_batch(std::span<const BlockWrite> batch);
    void store_table(std::uint64_t epoch) noexcept;
    [[nodiscard]] Result<void> write_table(std::uint64_t epoch);
    [[nodiscard]] Result<void> make_durable();
    [[nodiscard]] Result<void> write_commit_record(const EpochFacts& facts, std::uint64_t pages);

    Pool& pool_;
    VersionTable& table_;
    LocationAllocator& locations_;
    os::FutexLock& medium_lock_;
    os::ReservedArray<Pending> pending_;
    /// The hash of each page's newest copy, by image page; 0: neither written by this run nor told by the loader. 64 bits tell
    /// copies of one page apart; the seed is the pool's, which is unknown to a user who fills memory from outside.
    os::ReservedArray<std::uint64_t> content_hashes_;
    os::ReservedArray<std::uint32_t> superseded_;  ///< locations to free after the commit
    os::ReservedArray<BlockWrite> gathered_;
    std::uint64_t gathered_count_ = 0;
    std::uint64_t pending_end_ = 0;
    std::uint64_t epoch_ = 0;
    LocationAllocator::Run run_{};  ///< of free pages, being used up
    /// By file page, on byte-addressable media: 1 + image page of the copy that this run has stored there last, whole; 0: none. What is
    /// there before is another page's, or lines that a killed process left in the caches, which read as if they were durable.
    os::ReservedArray<std::uint32_t> written_here_;
    /// By image page, on byte-addressable media: the lines in which the newest copy may differ from the one before, which this run has
    /// written to older_location_.
    os::ReservedArray<std::uint64_t> lines_between_;
    os::ReservedArray<std::uint32_t> older_location_;
    /// By image page, on byte-addressable media: how many more times the page is stored whole, since nearly all of its lines differed when
    /// they were compared last. To read what is overwritten costs more than to store what has not changed.
    os::ReservedArray<std::uint8_t> whole_stores_left_;
    os::ReservedBitmap written_lately_;  ///< by image page
    std::uint64_t return_cursor_ = UINT64_MAX;  ///< image page; from the end on: no walk goes on
    std::uint64_t return_begun_ns_ = 0;
    bool is_first_return_ = true;  ///< an earlier run may have left room at any free place
    os::ReservedArray<TablePage> table_pages_;  ///< on their way to the medium
    WriteRules write_rules_;
    std::uint64_t hash_of_zeroes_ = 0;
};

}  // namespace stillpoint::versions
