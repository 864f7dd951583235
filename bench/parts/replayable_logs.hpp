#pragma once
// Redo logs that are replayed over and over, in the order of their timestamps or along links: made up (SyntheticLogs), or those that a
// program's transactions have left in a pool (pool_logs.hpp).

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../harness/random.hpp"
#include "logs/log_walk.hpp"
#include "logs/replay_order.hpp"
#include "os/reserved_array.hpp"

namespace bench {

template <class R>
typename R::value_type checked(R result)
{
    if (!result) {
        throw std::runtime_error(std::string(result.error().text()));
    }
    if constexpr (!std::is_void_v<typename R::value_type>) {
        return std::move(*result);
    }
}

class ReplayableLogs {
public:
    using Log = std::vector<stillpoint::logs::LogPiece>;

    /// As the classical systems do: a walk over the logs, and a look at the heads of all for each record. The list lies here.
    std::span<const stillpoint::logs::RecordRef> by_timestamp()
    {
        using namespace stillpoint::logs;
        list_.clear();
        std::vector<LogHead> heads;
        for (const Log& log : logs_) {
            const std::uint64_t first = list_.count();
            for (LogPiece piece : log) {
                if (!walk_piece(bytes(), piece, timestamp_max, list_)) {
                    throw std::runtime_error("the list of records is too short");
                }
            }
            heads.emplace_back(list_.records().subspan(first));
        }
        const std::span<RecordRef> out = ordered_.resize(linked_.count);
        if (order_by_timestamp(heads, out) != linked_.count) {
            throw std::runtime_error("records are missing");
        }
        return out;
    }
    std::span<const stillpoint::logs::RecordRef> by_links()
    {
        const std::span<stillpoint::logs::RecordRef> out = ordered_.resize(linked_.count);
        if (!stillpoint::logs::follow_links(bytes(), linked_.direction, linked_.oldest, linked_.newest, out)) {
            throw std::runtime_error("a link is wrong");
        }
        return out;
    }
    [[nodiscard]] stillpoint::logs::LogBytes bytes() const { return {pointers_.data(), static_cast<std::uint32_t>(pointers_.size())}; }
    [[nodiscard]] std::uint64_t writes() const { return writes_; }  ///< words
    [[nodiscard]] std::uint64_t transactions() const { return linked_.count; }
    [[nodiscard]] std::size_t logs() const { return logs_.size(); }
    [[nodiscard]] std::uint64_t heap_bytes() const { return heap_bytes_; }
    [[nodiscard]] const stillpoint::logs::LinkedRecords& linked() const { return linked_; }

protected:
    ReplayableLogs() = default;
    ~ReplayableLogs() = default;
    ReplayableLogs(ReplayableLogs&&) = default;
    ReplayableLogs& operator=(ReplayableLogs&&) = default;

    void reserve_lists(std::uint64_t records)
    {
        checked(list_.reserve(records, "records"));
        checked(ordered_.reserve(records, "records"));
    }

    std::vector<const std::byte*> pointers_;
    std::vector<Log> logs_;
    std::uint64_t writes_ = 0;
    std::uint64_t heap_bytes_ = 0;
    stillpoint::logs::LinkedRecords linked_{};
    stillpoint::logs::RecordList list_;
    stillpoint::logs::RecordList ordered_;
};

struct SyntheticLoad {
    std::uint64_t heap_bytes;
    unsigned writes_each;  ///< of a transaction
    /// The share of writes to words that the logs also write elsewhere, without one write for each word; `any`: words are drawn at random.
    unsigned duplicates_percent;
    static constexpr unsigned any = 100;
};

/// Each log belongs to one of `logs` threads; transactions write random words of a heap, and the log of each is drawn too.
class SyntheticLogs : public ReplayableLogs {
public:
    SyntheticLogs(const SyntheticLoad& load, std::uint64_t writes, unsigned logs, stillpoint::logs::LinkDirection direction)
    {
        using namespace stillpoint::logs;
        logs_.resize(logs);
        heap_bytes_ = load.heap_bytes;
        const std::vector<std::uint64_t> words = words_of(load, writes);
        writes_ = words.size();
        const std::uint64_t transactions = writes_ / load.writes_each;
        const std::uint64_t record_bytes = record_bytes_for(std::uint64_t{2} * load.writes_each);
        const std::uint64_t chunks = transactions * record_bytes / (chunk_bytes - 4096) + 2 * logs;
        checked(memory_.reserve(chunks * chunk_bytes, "logs"));
        for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
            pointers_.push_back(memory_.data() + chunk * chunk_bytes);
        }
        Random random{5};
        RecordRef before{};
        for (std::uint64_t i = 0; i < transactions; ++i) {
            const RecordRef record = write(logs_[random.below(logs)], i + 1,
                                           std::span(words).subspan(i * load.writes_each, load.writes_each));
            if (i != 0) {
                const bool forward = direction == LinkDirection::forward;
                header_at(forward ? before : record)->link = (forward ? record : before).position | 1;
            } else {
                linked_.oldest = record;
            }
            before = record;
        }
        linked_ = {direction, linked_.oldest, before, transactions};
        reserve_lists(transactions);
    }

private:
    /// With a share of duplicates: each of the words once, and again as often as the share says, shuffled.
    static std::vector<std::uint64_t> words_of(const SyntheticLoad& load, std::uint64_t writes)
    {
        const std::uint64_t heap_words = load.heap_bytes / 8;
        Random random{3};
        if (load.duplicates_percent == SyntheticLoad::any) {
            std::vector<std::uint64_t> words(writes / 5 * 5);
            std::generate(words.begin(), words.end(), [&] { return random.below(heap_words); });
            return words;
        }
        const std::uint64_t distinct = std::min(heap_words, writes * (100 - load.duplicates_percent) / 100);
        std::vector<std::uint64_t> words(distinct * 100 / (100 - load.duplicates_percent) / 5 * 5);
        const std::uint64_t step = heap_words / distinct;
        for (std::uint64_t i = 0; i < words.size(); ++i) {
            words[i] = (i < distinct ? i : random.below(distinct)) * step;
            std::swap(words[i], words[random.below(i + 1)]);
        }
        return words;
    }
    stillpoint::logs::RecordRef write(Log& log, stillpoint::logs::Timestamp timestamp, std::span<const std::uint64_t> words)
    {
        using namespace stillpoint::logs;
        const std::uint64_t size = record_bytes_for(words.size() * 2);
        if (log.empty() || log.back().end + size > header_copy_offset) {
            log.push_back({next_chunk_++, sizeof(ChunkHeader), sizeof(ChunkHeader)});
        }
        LogPiece& piece = log.back();
        const RecordRef record{timestamp, position_of(piece.chunk, piece.end)};
        RecordHeader* const header = header_at(record);
        *header = {timestamp << 1 | 1, static_cast<std::uint32_t>(words.size() * 2), 0, 0, 0};
        auto* payload = reinterpret_cast<std::uint64_t*>(header + 1);
        for (const std::uint64_t word : words) {
            *payload++ = encode_run({RunKind::words, 1, word});
            *payload++ = timestamp;
        }
        piece.end += static_cast<std::uint32_t>(size);
        return record;
    }
    stillpoint::logs::RecordHeader* header_at(const stillpoint::logs::RecordRef& record)
    {
        return reinterpret_cast<stillpoint::logs::RecordHeader*>(memory_.data() + record.position);
    }

    stillpoint::os::ReservedArray<std::byte> memory_;
    std::uint32_t next_chunk_ = 0;
};

}  // namespace bench
