#pragma once
// One replayer's work: it applies the runs of its own pages and passes over all others [SPHT §3.3].

#include <array>
#include <cstdint>
#include <span>

#include "logs/link_walk.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::logs {

struct ReplayTarget {
    /// The page's bytes, aligned to words, which stay in place until the replay ends; nullptr: there are none, and the replay fails.
    /// Called once for each page that has a run, by the page's replayer: at the same time for different pages. Never malloc.
    std::byte* (*page)(void* context, std::uint64_t image_page);
    void* context;
};

/// Pages whose number is `index` modulo `count`.
struct Shards {
    std::uint32_t index;
    std::uint32_t count;
};

enum class ReplayOrder {
    oldest_first,               ///< every run is stored
    newest_first_without_copies,  ///< each word is stored once: duplicates are filtered
};

/// Threads: one at a time.
class ShardReplay {
public:
    /// Errors: no_memory (no address space).
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max);

    /// `oldest_first` are the records, in either order of replay. False: a page had no bytes, or lies after image_pages_max; then any
    /// part of the records is applied.
    [[nodiscard]] bool run(const LogBytes& bytes, std::span<const RecordRef> oldest_first, const ReplayTarget& target, Shards shards,
                           ReplayOrder order) noexcept;
    /// Replays along links, without a list of the records: with forward links oldest first, with backward links newest first. False also
    /// if a link is wrong or missing; then a replay of the records in the order of their timestamps makes all of it good.
    [[nodiscard]] bool run_linked(const LogBytes& bytes, const LinkedRecords& records, const ReplayTarget& target, Shards shards) noexcept;

    /// The pages that the last run touched.
    [[nodiscard]] std::span<const std::uint32_t> pages() const noexcept { return {touched_.data(), touched_count_}; }

private:
    /// A store that waits until its cache line has come.
    struct WordStore {
        std::uint64_t* word;
        std::uint64_t value;
    };
    /// Records are taken in blocks, so that what one step will touch is on its way during the step before: as many runs at least.
    static constexpr std::uint32_t block_runs = 64;

    /// `source.next()`: the next record in the order of replay; nullptr: there are no more.
    template <ReplayOrder order, class Source>
    void walk(Source source) noexcept;
    void begin(const ReplayTarget& target, Shards shards) noexcept;
    template <ReplayOrder order>
    void collect_runs(const RecordHeader* record) noexcept;
    /// Finds the pages of the collected runs, and has their lines fetched.
    template <ReplayOrder order>
    void open_pages() noexcept;
    void store_all() noexcept;
    void store_missing() noexcept;
    void store_missing_words(const std::uint64_t* run) noexcept;
    void store_missing_bytes(const std::uint64_t* run) noexcept;
    /// Only those bytes that no newer run has stored.
    void store_around_bytes(std::uint64_t word, std::uint64_t value) noexcept;
    [[nodiscard]] std::uint64_t* address_of(std::uint64_t word) const noexcept;
    [[nodiscard]] bool has_bytes_stored(std::uint64_t word) const noexcept;
    [[nodiscard]] bool is_mine(std::uint64_t page) const noexcept;
    [[nodiscard]] bool open_page(std::uint64_t page) noexcept;
    void forget_pages() noexcept;

    ReplayTarget target_{};
    Shards shards_{};
    std::uint32_t shard_mask_ = 0;  ///< count - 1
    bool is_mask_ = true;  ///< count is a power of two
    bool failed_ = false;
    os::ReservedArray<const std::uint64_t*> runs_;  ///< of the block, by their headers, in the order in which they are applied
    std::uint64_t run_count_ = 0;
    std::array<WordStore, block_runs> stores_{};
    os::ReservedArray<std::uintptr_t> bases_;  ///< by page: where its bytes are, and has_bytes; 0: not touched
    os::ReservedArray<std::uint64_t> stored_;  ///< a bit for each word: a newer run has stored all of it. A cache line for each page
    os::ReservedArray<std::uint8_t> byte_masks_;  ///< by word: bytes of it that a newer run has stored. Of pages that say has_bytes
    os::ReservedArray<std::uint32_t> touched_;
    std::uint64_t touched_count_ = 0;
};

}  // namespace stillpoint::logs
