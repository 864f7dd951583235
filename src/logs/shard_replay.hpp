#pragma once
// One replayer's work: it applies the runs of its own pages and passes over all others [SPHT §3.3].

#include <array>
#include <cstdint>
#include <span>

#include "logs/log_bytes.hpp"
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

    /// The pages that the last run touched.
    [[nodiscard]] std::span<const std::uint32_t> pages() const noexcept { return {touched_.data(), touched_count_}; }

private:
    /// A run that was found in a record and is not applied yet: until then the CPU fetches what it will touch.
    struct Pending {
        const std::uint64_t* data;  ///< nullptr: zeroes
        std::uint32_t page;
        std::uint16_t first;  ///< word of the page
        std::uint16_t count;  ///< of words; of `bytes`: the mask
        bool is_bytes;
    };
    static constexpr std::uint32_t pending_max = 32;

    template <ReplayOrder order>
    void walk(const LogBytes& bytes, std::span<const RecordRef> records) noexcept;
    template <ReplayOrder order>
    void take_record(const RecordHeader* record) noexcept;
    template <ReplayOrder order>
    void take_run(const std::uint64_t* run) noexcept;
    template <ReplayOrder order>
    void apply(const Pending& run) noexcept;
    void store_missing_words(const Pending& run, std::uint64_t* page) noexcept;
    void store_missing_bytes(const Pending& run, std::uint64_t* page) noexcept;
    /// Only those bytes that no newer run has stored.
    void store_word_around_bytes(std::uint64_t* word, std::uint64_t index, std::uint64_t value) noexcept;
    [[nodiscard]] bool is_mine(std::uint64_t page) const noexcept;
    [[nodiscard]] bool open_page(std::uint32_t page) noexcept;
    void forget_pages() noexcept;

    ReplayTarget target_{};
    Shards shards_{};
    std::uint32_t shard_mask_ = 0;  ///< count - 1 where that is a mask
    bool failed_ = false;
    std::array<Pending, pending_max> pending_{};
    std::uint32_t pending_next_ = 0;   ///< the next to be applied
    std::uint32_t pending_count_ = 0;
    os::ReservedArray<std::uintptr_t> bases_;    ///< by page: where its bytes are, and has_bytes; 0: not touched
    os::ReservedArray<std::uint64_t> stored_;    ///< a bit for each word: a newer run has stored all of it. A cache line for each page
    os::ReservedArray<std::uint8_t> byte_masks_; ///< by word: bytes of it that a newer run has stored. Of pages that say has_bytes
    os::ReservedArray<std::uint16_t> run_places_;  ///< of the record that is being taken
    os::ReservedArray<std::uint32_t> touched_;
    std::uint64_t touched_count_ = 0;
};

}  // namespace stillpoint::logs
