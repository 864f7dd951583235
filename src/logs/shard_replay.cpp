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

/// Records of a list.
template <ReplayOrder order>
struct ListSource {
    const LogBytes& bytes;
    std::span<const RecordRef> oldest_first;
    std::uint64_t turn = 0;

    [[nodiscard]] const RecordHeader* record_of(std::uint64_t at) const noexcept
    {
        return bytes.record_at(oldest_first[order == ReplayOrder::oldest_first ? at : oldest_first.size() - 1 - at].position);
    }
    const RecordHeader* next() noexcept
    {
        constexpr std::uint64_t records_ahead = 32;
        if (turn + records_ahead < oldest_first.size()) {
            arch::prefetch(reinterpret_cast<const std::byte*>(record_of(turn + records_ahead)), 2 * cache_line_bytes);
        }
        return turn < oldest_first.size() ? record_of(turn++) : nullptr;
    }
};

/// Records along their links.
struct LinkSource {
    LinkWalk walk;
    const LinkedRecords& records;
    bool& is_whole;
    std::uint64_t taken = 0;

    const RecordHeader* next() noexcept
    {
        if (taken == records.count) {
            return nullptr;
        }
        if (taken != 0) {
            walk.advance();
        }
        if (walk.record() != nullptr && ++taken == records.count) {
            is_whole = records.ends_with(walk.ref());
        }
        return walk.record();
    }
};

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
    if (auto done = runs_.reserve(block_runs + record_words_max + 1, "the runs of a replay"); !done) {
        return done;
    }
    return touched_.reserve(image_pages_max, "the list of a replay's pages");
}

bool ShardReplay::run(const LogBytes& bytes, std::span<const RecordRef> oldest_first, const ReplayTarget& target, Shards shards,
                      ReplayOrder order) noexcept
{
    begin(target, shards);
    if (order == ReplayOrder::oldest_first) {
        walk<ReplayOrder::oldest_first>(ListSource<ReplayOrder::oldest_first>{bytes, oldest_first});
    } else {
        walk<ReplayOrder::newest_first_without_copies>(ListSource<ReplayOrder::newest_first_without_copies>{bytes, oldest_first});
    }
    return !failed_;
}

bool ShardReplay::run_linked(const LogBytes& bytes, const LinkedRecords& records, const ReplayTarget& target, Shards shards) noexcept
{
    begin(target, shards);
    bool is_whole = false;
    const LinkSource source{LinkWalk(bytes, records.direction, records.start()), records, is_whole};
    if (records.direction == LinkDirection::forward) {
        walk<ReplayOrder::oldest_first>(source);
    } else {
        walk<ReplayOrder::newest_first_without_copies>(source);
    }
    return !failed_ && is_whole;
}

void ShardReplay::begin(const ReplayTarget& target, Shards shards) noexcept
{
    target_ = target;
    shards_ = shards;
    shard_mask_ = shards.count - 1;
    is_mask_ = std::has_single_bit(shards.count);
    failed_ = false;
    touched_count_ = 0;
}

template <ReplayOrder order, class Source>
void ShardReplay::walk(Source source) noexcept
{
    const RecordHeader* record = source.next();
    while (record != nullptr && !failed_) {
        for (run_count_ = 0; record != nullptr && run_count_ < block_runs; record = source.next()) {
            collect_runs<order>(record);
        }
        open_pages<order>();
        if (failed_) {
            break;
        }
        if constexpr (order == ReplayOrder::oldest_first) {
            store_all();
        } else {
            store_missing();
        }
    }
    forget_pages();
}

template <ReplayOrder order>
void ShardReplay::collect_runs(const RecordHeader* record) noexcept
{
    const std::uint64_t* const payload = payload_of(record);
    const std::uint64_t words = record->words;
    const std::uint64_t first = run_count_;
    for (std::uint64_t at = 0; at < words;) {
        const Run run = decode_run(payload[at]);
        // No branch: which replayer a run belongs to is as good as random.
        runs_[run_count_] = payload + at;
        run_count_ += is_mine(run.word / page_words) ? 1U : 0U;
        at += 1 + run_data_words(run);
    }
    if (order != ReplayOrder::oldest_first && run_count_ - first > 1) {  // The last run of a record is its newest.
        std::reverse(runs_.data() + first, runs_.data() + run_count_);
    }
}

template <ReplayOrder order>
void ShardReplay::open_pages() noexcept
{
    for (std::uint64_t i = 0; i < run_count_; ++i) {
        const std::uint64_t word = decode_run(*runs_[i]).word;
        const std::uint64_t page = word / page_words;
        if (page >= bases_.capacity() || (bases_[page] == 0 && !open_page(page))) {
            failed_ = true;
            return;
        }
        if constexpr (order == ReplayOrder::oldest_first) {
            __builtin_prefetch(address_of(word), 1);
        } else {
            __builtin_prefetch(&stored_[word / 64], 1);
        }
    }
}

void ShardReplay::store_all() noexcept
{
    for (std::uint64_t i = 0; i < run_count_; ++i) {
        const std::uint64_t* const data = runs_[i] + 1;
        const Run run = decode_run(*runs_[i]);
        std::uint64_t* const words = address_of(run.word);
        if (run.kind == RunKind::bytes) {
            store_word(words, mixed(load_word(words), *data, word_mask(run.count)));
        } else if (run.kind == RunKind::words) {
            for (std::uint64_t k = 0; k < run.count; ++k) {
                store_word(words + k, data[k]);
            }
        } else {
            for (std::uint64_t k = 0; k < run.count; ++k) {
                store_word(words + k, 0);
            }
        }
    }
}

void ShardReplay::store_missing() noexcept
{
    std::uint64_t none = 0;
    for (std::uint64_t begin = 0; begin < run_count_; begin += block_runs) {
        std::uint64_t stores = 0;
        for (std::uint64_t i = begin; i < std::min(begin + block_runs, run_count_); ++i) {
            const Run run = decode_run(*runs_[i]);
            if (run.kind != RunKind::words || run.count != 1 || has_bytes_stored(run.word)) {
                run.kind == RunKind::bytes ? store_missing_bytes(runs_[i]) : store_missing_words(runs_[i]);
                continue;
            }
            // The usual run. No branch: whether a word was stored before is as good as random. The store can wait, since no older
            // run will store to this word.
            std::uint64_t& stored = stored_[run.word / 64];
            const std::uint64_t bit = std::uint64_t{1} << (run.word % 64);
            const bool is_missing = (stored & bit) == 0;
            stored |= bit;
            std::uint64_t* const word = address_of(run.word);
            __builtin_prefetch(is_missing ? word : &none, 1);
            stores_[stores] = {word, runs_[i][1]};
            stores += is_missing ? 1U : 0U;
        }
        for (std::uint64_t i = 0; i < stores; ++i) {
            store_word(stores_[i].word, stores_[i].value);
        }
    }
}

void ShardReplay::store_missing_words(const std::uint64_t* header) noexcept
{
    const Run run = decode_run(*header);
    const bool around_bytes = has_bytes_stored(run.word);
    const std::uint64_t end = run.word + run.count;
    for (std::uint64_t first = run.word; first < end;) {
        const std::uint64_t next = std::min(end, (first / 64 + 1) * 64);
        const std::uint64_t wanted = (~std::uint64_t{0} >> (64 - (next - first))) << (first % 64);
        std::uint64_t missing = wanted & ~stored_[first / 64];
        stored_[first / 64] |= wanted;
        for (; missing != 0; missing &= missing - 1) {
            const std::uint64_t word = first / 64 * 64 + static_cast<std::uint64_t>(std::countr_zero(missing));
            const std::uint64_t value = run.kind == RunKind::words ? header[1 + word - run.word] : 0;
            if (around_bytes) {
                store_around_bytes(word, value);
            } else {
                store_word(address_of(word), value);
            }
        }
        first = next;
    }
}

void ShardReplay::store_around_bytes(std::uint64_t word, std::uint64_t value) noexcept
{
    std::uint64_t* const target = address_of(word);
    const std::uint8_t newer = byte_masks_[word];
    store_word(target, newer == 0 ? value : mixed(value, load_word(target), word_mask(newer)));
}

void ShardReplay::store_missing_bytes(const std::uint64_t* header) noexcept
{
    const Run run = decode_run(*header);
    std::uint64_t& stored = stored_[run.word / 64];
    const std::uint64_t bit = std::uint64_t{1} << (run.word % 64);
    if ((stored & bit) != 0) {
        return;
    }
    bases_[run.word / page_words] |= has_bytes;
    std::uint8_t& newer = byte_masks_[run.word];
    const auto missing = static_cast<std::uint8_t>(run.count & ~newer);
    newer |= missing;
    std::uint64_t* const word = address_of(run.word);
    store_word(word, mixed(load_word(word), header[1], word_mask(missing)));
    if (newer == UINT8_MAX) {
        stored |= bit;
    }
}

std::uint64_t* ShardReplay::address_of(std::uint64_t word) const noexcept
{
    return reinterpret_cast<std::uint64_t*>(bases_[word / page_words] & ~has_bytes) + word % page_words;
}

bool ShardReplay::has_bytes_stored(std::uint64_t word) const noexcept { return (bases_[word / page_words] & has_bytes) != 0; }

bool ShardReplay::is_mine(std::uint64_t page) const noexcept
{
    return (is_mask_ ? page & shard_mask_ : page % shards_.count) == shards_.index;
}

bool ShardReplay::open_page(std::uint64_t page) noexcept
{
    bases_[page] = reinterpret_cast<std::uintptr_t>(target_.page(target_.context, page));
    if (bases_[page] == 0) {
        return false;
    }
    touched_[touched_count_++] = static_cast<std::uint32_t>(page);
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
