#pragma once
// The logs that a program's transactions have left in a pool of spht, when it was killed.
//
// Transactions of two threads may have one timestamp, and links then leave out one of them: a replay of the engine sorts. Here every record
// gets its rank as its timestamp, and a link to the next one, so that both ways to replay have the same records in the same order.

#include <memory>
#include <string>

#include "engines/spht/log_recovery.hpp"
#include "logs/offline_chunks.hpp"
#include "media/open.hpp"
#include "replayable_logs.hpp"
#include "versions/offline.hpp"

namespace bench {

class PoolLogs : public ReplayableLogs {
public:
    /// The program was told to leave forward links.
    explicit PoolLogs(const std::string& path)
    {
        using namespace stillpoint;
        MediumOptions options;
        options.path = path;
        const auto pool = checked(Pool::open(checked(open_medium_read_only(options, false)), EngineFormat{}, true));
        checked(chunks_.read(pool));
        const logs::LogBytes bytes = chunks_.bytes();
        pointers_.assign(bytes.chunks, bytes.chunks + bytes.count);
        heap_bytes_ = pool.facts().image_bytes_max;
        const auto found = checked(spht::read_logs(pool, checked(versions::inspect_pool(pool)).epoch, bytes, nullptr));
        for (const logs::ScannedLog& log : found.index.logs) {
            add(log, bytes);
        }
        if (found.index.live_records == 0) {
            throw std::runtime_error(path + ": its logs have no transactions");
        }
        linked_.count = found.index.live_records;
        reserve_lists(linked_.count);
        link_by_rank();
    }
    /// Records whose own link did not lead to the next one.
    [[nodiscard]] std::uint64_t links_missing() const { return links_missing_; }

private:
    void link_by_rank()
    {
        using namespace stillpoint::logs;
        const std::span<const RecordRef> found = by_timestamp();
        const std::vector<RecordRef> ordered(found.begin(), found.end());
        const auto header_of = [this](const RecordRef& record) { return const_cast<RecordHeader*>(bytes().record_at(record.position)); };
        for (std::uint64_t rank = 0; rank < ordered.size(); ++rank) {
            const std::uint64_t next = rank + 1 < ordered.size() ? ordered[rank + 1].position | 1 : 0;
            RecordHeader* const header = header_of(ordered[rank]);
            links_missing_ += next != 0 && header->link != next ? 1U : 0U;
            header->link = next;
            header->timestamp = (rank + 1) << 1 | 1;
        }
        linked_ = {LinkDirection::forward, {1, ordered.front().position}, {ordered.size(), ordered.back().position}, ordered.size()};
    }
    void add(const stillpoint::logs::ScannedLog& log, const stillpoint::logs::LogBytes& bytes)
    {
        using namespace stillpoint::logs;
        Log pieces;
        for (const RecordRef& record : log.records) {
            const RecordHeader* const header = bytes.record_at(record.position);
            const auto chunk = static_cast<std::uint32_t>(chunk_of(record.position));
            const auto begin = static_cast<std::uint32_t>(offset_in_chunk(record.position));
            if (pieces.empty() || pieces.back().chunk != chunk) {
                pieces.push_back({chunk, begin, begin});
            }
            pieces.back().end = begin + static_cast<std::uint32_t>(record_bytes_for(header->words));
            writes_ += words_of(header);
        }
        if (!pieces.empty()) {
            logs_.push_back(std::move(pieces));
        }
    }
    static std::uint64_t words_of(const stillpoint::logs::RecordHeader* record)
    {
        using namespace stillpoint::logs;
        std::uint64_t words = 0;
        for (std::uint64_t at = 0; at < record->words;) {
            const Run run = decode_run(payload_of(record)[at]);
            words += run.kind == RunKind::bytes ? 1 : run.count;
            at += 1 + run_data_words(run);
        }
        return words;
    }

    stillpoint::logs::OfflineChunks chunks_;
    std::uint64_t links_missing_ = 0;
};

}  // namespace bench
