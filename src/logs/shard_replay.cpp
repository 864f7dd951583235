#include "logs/shard_replay.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "arch/prefetch.hpp"

namespace stillpoint::logs {

namespace {

constexpr std::uint64_t page_words = page_bytes / 8;
constexpr std::uint64_t bitmap_words = page_words / 64;
static_assert(bitmap_words * 8 == cache_line_bytes);
constexpr std::uintptr_t has_bytes = 1;  ///< in the low bit of a page's address

/// A thread of the program that reads the word meanwhile sees the old one or the new one.
void store_word(std::uint64_t* word, std::uint64_t value) noexcept { std::atomic_ref(*word).store(value, std::memory_order_relaxed); }

std::uint64_t load_word(const std::uint64_t* word) noexcept
{
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_relaxed);
}

/// Bit i of `mask` becomes byte i, as memory has it.
std::uint64_t bytes_of_mask(std::uint64_t mask) noexcept
{
    static_assert(std::endian::native == std::endian::little);
    const std::uint64_t spread = mask * 0x0101'0101'0101'0101 & 0x8040'2010'0804'0201;
    return ((spread + 0x7f7f'7f7f'7f7f'7f7f) | spread) >> 7 & 0x0101'0101'0101'0101;
}
std::uint64_t word_mask(std::uint64_t byte_mask) noexcept { return bytes_of_mask(byte_mask) * 0xff; }

std::uint64_t mixed(std::uint64_t under, std::uint64_t over, std::uint64_t over_mask) noexcept
{
    return (under & ~over_mask) | (over & over_mask);
}

}  // namespace

Result<void> ShardReplay::reserve(std::uint64_t image_pages_max)
{
    if (auto done = bases_.reserve(image_pages_max, "the pages of a replay"); !done) {
        return done;
    }
    if (auto done = stored_.reserve(image_pages_max * bitmap_words, "the words of a replay"); !done) {
        return done;
    }
    if (auto done = byte_masks_.reserve(image_pages_max * page_words, "the bytes of a replay"); !done) {
        return done;
    }
    if (auto done = run_places_.reserve(record_words_max, "the runs of a record"); !done) {
        return done;
    }
    return touched_.reserve(image_pages_max, "the list of a replay's pages");
}

bool ShardReplay::run(const LogBytes& bytes, std::span<const RecordRef> oldest_first, const ReplayTarget& target, Shards shards,
                      ReplayOrder order) noexcept
{
    target_ = target;
    shards_ = shards;
    shard_mask_ = std::has_single_bit(shards.count) ? shards.count - 1 : 0;
    failed_ = false;
    touched_count_ = 0;
    if (order == ReplayOrder::oldest_first) {
        walk<ReplayOrder::oldest_first>(bytes, oldest_first);
    } else {
        walk<ReplayOrder::newest_first_without_copies>(bytes, oldest_first);
    }
    forget_pages();
    return !failed_;
}

template <ReplayOrder order>
void ShardReplay::walk(const LogBytes& bytes, std::span<const RecordRef> records) noexcept
{
    constexpr std::uint64_t records_ahead = 16;
    const std::uint64_t count = records.size();
    const auto record_of_turn = [&](std::uint64_t turn) {
        return bytes.record_at(records[order == ReplayOrder::oldest_first ? turn : count - 1 - turn].position);
    };
    for (std::uint64_t turn = 0; turn < count && !failed_; ++turn) {
        if (turn + records_ahead < count) {
            arch::prefetch(reinterpret_cast<const std::byte*>(record_of_turn(turn + records_ahead)), cache_line_bytes);
        }
        take_record<order>(record_of_turn(turn));
    }
    for (; pending_count_ != 0; --pending_count_) {
        apply<order>(pending_[pending_next_++ % pending_max]);
    }
}

template <ReplayOrder order>
void ShardReplay::take_record(const RecordHeader* record) noexcept
{
    const std::uint64_t* const payload = payload_of(record);
    const std::uint64_t words = record->words;
    std::uint64_t mine = 0;
    for (std::uint64_t at = 0; at < words;) {
        const Run run = decode_run(payload[at]);
        if (is_mine(run.word / page_words)) {
            if constexpr (order == ReplayOrder::oldest_first) {
                take_run<order>(payload + at);
            } else {
                run_places_[mine++] = static_cast<std::uint16_t>(at);
            }
        }
        at += 1 + run_data_words(run);
    }
    while (mine != 0) {  // The last run of a record is its newest.
        take_run<order>(payload + run_places_[--mine]);
    }
}

template <ReplayOrder order>
void ShardReplay::take_run(const std::uint64_t* header) noexcept
{
    const Run run = decode_run(*header);
    const auto page = static_cast<std::uint32_t>(run.word / page_words);
    if (run.word / page_words >= bases_.capacity() || (bases_[page] == 0 && !open_page(page))) {
        failed_ = true;
        return;
    }
    const std::uint64_t first = run.word % page_words;
    const auto* const base = reinterpret_cast<const std::byte*>(bases_[page] & ~has_bytes);
    __builtin_prefetch(base + first * 8, 1);
    if constexpr (order != ReplayOrder::oldest_first) {
        __builtin_prefetch(&stored_[page * bitmap_words], 1);
    }
    if (pending_count_ == pending_max) {
        apply<order>(pending_[pending_next_++ % pending_max]);
        --pending_count_;
    }
    pending_[(pending_next_ + pending_count_++) % pending_max] = {run.kind == RunKind::zeroes ? nullptr : header + 1, page,
                                                                  static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(run.count),
                                                                  run.kind == RunKind::bytes};
}

template <ReplayOrder order>
void ShardReplay::apply(const Pending& run) noexcept
{
    auto* const page = reinterpret_cast<std::uint64_t*>(bases_[run.page] & ~has_bytes);
    if constexpr (order == ReplayOrder::oldest_first) {
        std::uint64_t* const words = page + run.first;
        if (run.is_bytes) {
            store_word(words, mixed(load_word(words), *run.data, word_mask(run.count)));
            return;
        }
        for (std::uint64_t i = 0; i < run.count; ++i) {
            store_word(words + i, run.data != nullptr ? run.data[i] : 0);
        }
    } else if (run.is_bytes) {
        store_missing_bytes(run, page);
    } else {
        store_missing_words(run, page);
    }
}

void ShardReplay::store_missing_words(const Pending& run, std::uint64_t* page) noexcept
{
    const bool around_bytes = (bases_[run.page] & has_bytes) != 0;
    std::uint64_t* const stored = &stored_[run.page * bitmap_words];
    const std::uint64_t end = std::uint64_t{run.first} + run.count;
    for (std::uint64_t first = run.first; first < end;) {
        const std::uint64_t next = std::min(end, (first / 64 + 1) * 64);
        const std::uint64_t wanted = (~std::uint64_t{0} >> (64 - (next - first))) << (first % 64);
        std::uint64_t missing = wanted & ~stored[first / 64];
        stored[first / 64] |= wanted;
        for (; missing != 0; missing &= missing - 1) {
            const std::uint64_t word = first / 64 * 64 + static_cast<std::uint64_t>(std::countr_zero(missing));
            const std::uint64_t value = run.data != nullptr ? run.data[word - run.first] : 0;
            if (around_bytes) {
                store_word_around_bytes(page + word, run.page * page_words + word, value);
            } else {
                store_word(page + word, value);
            }
        }
        first = next;
    }
}

void ShardReplay::store_word_around_bytes(std::uint64_t* word, std::uint64_t index, std::uint64_t value) noexcept
{
    const std::uint8_t newer = byte_masks_[index];
    store_word(word, newer == 0 ? value : mixed(value, load_word(word), word_mask(newer)));
}

void ShardReplay::store_missing_bytes(const Pending& run, std::uint64_t* page) noexcept
{
    std::uint64_t& stored = stored_[run.page * bitmap_words + run.first / 64];
    const std::uint64_t bit = std::uint64_t{1} << (run.first % 64);
    if ((stored & bit) != 0) {
        return;
    }
    bases_[run.page] |= has_bytes;
    std::uint8_t& newer = byte_masks_[run.page * page_words + run.first];
    const auto missing = static_cast<std::uint8_t>(run.count & ~newer);
    newer |= missing;
    std::uint64_t* const word = page + run.first;
    store_word(word, mixed(load_word(word), *run.data, word_mask(missing)));
    if (newer == UINT8_MAX) {
        stored |= bit;
    }
}

bool ShardReplay::is_mine(std::uint64_t page) const noexcept
{
    const std::uint64_t turn = shard_mask_ != 0 ? page & shard_mask_ : page % shards_.count;
    return shards_.count == 1 || turn == shards_.index;
}

bool ShardReplay::open_page(std::uint32_t page) noexcept
{
    bases_[page] = reinterpret_cast<std::uintptr_t>(target_.page(target_.context, page));
    if (bases_[page] == 0) {
        return false;
    }
    touched_[touched_count_++] = page;
    return true;
}

void ShardReplay::forget_pages() noexcept
{
    for (const std::uint32_t page : pages()) {
        if ((bases_[page] & has_bytes) != 0) {
            std::memset(&byte_masks_[page * page_words], 0, page_words);
        }
        std::memset(&stored_[page * bitmap_words], 0, cache_line_bytes);
        bases_[page] = 0;
    }
}

}  // namespace stillpoint::logs
