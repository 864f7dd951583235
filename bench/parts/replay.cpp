// The cost of replaying redo logs: their order by timestamp against links, one replayer against several.
//
//   build/bin/bench_replay [rounds=N] [writes=N] [logs=N] [replayers=N]
//
// Each log belongs to one of `logs` threads; transactions write random words of a heap. "duplicates" is the share of writes that are to
// a word that the logs write more than once, without one write of each. Sides alternate in each round, because machines drift; a ratio is
// taken within a round, and medians are printed. Columns are nanoseconds for each write, or ratios.
//
//   by timestamp   walk of the logs, look at the heads of all logs for each record
//   links          follow the links
//   1, 2 filter    replay with so many replayers, newest first, duplicates filtered
//   1, 2 all       replay oldest first, every write stored

#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <stdexcept>
#include <vector>

#include "../harness/commands.hpp"
#include "../harness/random.hpp"
#include "logs/log_walk.hpp"
#include "logs/replay_order.hpp"
#include "logs/replayer.hpp"
#include "os/numa.hpp"

namespace {

using namespace stillpoint;
using namespace stillpoint::logs;

struct Load {
    std::uint64_t heap_bytes;
    unsigned writes_each;  ///< of a transaction
    unsigned duplicates_percent;
};

template <class T>
T checked(Result<T> result)
{
    if (!result) {
        throw std::runtime_error(std::string(result.error().text()));
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// The logs of several threads, with forward links.
class Logs {
public:
    Logs(const Load& load, std::uint64_t writes, unsigned logs) : logs_(logs)
    {
        const std::vector<std::uint64_t> words = words_of(load, writes);
        writes_ = words.size();
        const std::uint64_t transactions = writes_ / load.writes_each;
        const std::uint64_t record_bytes = record_bytes_for(std::uint64_t{2} * load.writes_each);
        const std::uint64_t chunks = transactions * record_bytes / (chunk_bytes - 4096) + 2 * logs;
        checked(memory_.reserve(chunks * chunk_bytes, "logs"));
        for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
            pointers_.push_back(memory_.data() + chunk * chunk_bytes);
        }
        bench::Random random{5};
        RecordRef before{};
        for (std::uint64_t i = 0; i < transactions; ++i) {
            const RecordRef record = write(logs_[random.below(logs)], i + 1,
                                           std::span(words).subspan(i * load.writes_each, load.writes_each));
            if (i != 0) {
                header_at(before)->link = record.position | 1;
            } else {
                oldest_ = record;
            }
            before = record;
        }
        newest_ = before;
        checked(list_.reserve(transactions, "records"));
        checked(ordered_.reserve(transactions, "records"));
        transactions_ = transactions;
    }

    std::span<const RecordRef> by_timestamp()
    {
        list_.clear();
        std::vector<LogHead> heads;
        for (const Log& log : logs_) {
            const std::uint64_t first = list_.count();
            for (LogPiece piece : log.pieces) {
                if (!walk_piece(bytes(), piece, timestamp_max, list_)) {
                    throw std::runtime_error("the list of records is too short");
                }
            }
            heads.emplace_back(list_.records().subspan(first));
        }
        const std::span<RecordRef> out = ordered_.resize(transactions_);
        order_by_timestamp(heads, out);
        return out;
    }
    std::span<const RecordRef> by_links()
    {
        const std::span<RecordRef> out = ordered_.resize(transactions_);
        if (!follow_links(bytes(), LinkDirection::forward, oldest_, newest_, out)) {
            throw std::runtime_error("a link is wrong");
        }
        return out;
    }
    [[nodiscard]] LogBytes bytes() const { return {pointers_.data(), static_cast<std::uint32_t>(pointers_.size())}; }
    [[nodiscard]] std::uint64_t writes() const { return writes_; }

private:
    struct Log {
        std::vector<LogPiece> pieces;
    };

    /// Each of the words once, and again as often as the share of duplicates says, shuffled.
    static std::vector<std::uint64_t> words_of(const Load& load, std::uint64_t writes)
    {
        const std::uint64_t heap_words = load.heap_bytes / 8;
        const std::uint64_t distinct = std::min(heap_words, writes * (100 - load.duplicates_percent) / 100);
        bench::Random random{3};
        std::vector<std::uint64_t> words(distinct * 100 / (100 - load.duplicates_percent) / 5 * 5);
        const std::uint64_t step = heap_words / distinct;
        for (std::uint64_t i = 0; i < words.size(); ++i) {
            words[i] = (i < distinct ? i : random.below(distinct)) * step;
            std::swap(words[i], words[random.below(i + 1)]);
        }
        return words;
    }
    RecordRef write(Log& log, Timestamp timestamp, std::span<const std::uint64_t> words)
    {
        const std::uint64_t size = record_bytes_for(words.size() * 2);
        if (log.pieces.empty() || log.pieces.back().end + size > header_copy_offset) {
            log.pieces.push_back({next_chunk_++, sizeof(ChunkHeader), sizeof(ChunkHeader)});
        }
        LogPiece& piece = log.pieces.back();
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
    RecordHeader* header_at(const RecordRef& record) { return reinterpret_cast<RecordHeader*>(memory_.data() + record.position); }

    os::ReservedArray<std::byte> memory_;
    std::vector<const std::byte*> pointers_;
    std::vector<Log> logs_;
    std::uint32_t next_chunk_ = 0;
    std::uint64_t writes_ = 0;
    std::uint64_t transactions_ = 0;
    RecordRef oldest_{};
    RecordRef newest_{};
    RecordList list_;
    RecordList ordered_;
};

double ns_for_each(std::uint64_t count, const auto& work)
{
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(count);
}

struct Figures {
    std::vector<double> by_timestamp, links;
    std::array<std::vector<double>, 4> replay;  ///< one and several with filter, one and several without
    std::array<std::vector<double>, 2> linked_gain, several_gain, several_gain_replay;
};

void measure(const Load& load, std::uint64_t writes, unsigned log_count, unsigned several, unsigned rounds)
{
    Logs logs(load, writes, log_count);
    os::ReservedArray<std::byte> heap;
    checked(heap.reserve(load.heap_bytes, "the heap"));
    std::memset(heap.data(), 1, load.heap_bytes);
    const ReplayTarget target{[](void* base, std::uint64_t page) { return static_cast<std::byte*>(base) + page * page_bytes; },
                              heap.data()};
    const os::NumaNodes nodes = os::NumaNodes::read();
    std::array<Replayer, 4> replayers;
    for (unsigned i = 0; i < 4; ++i) {
        checked(replayers[i].start(load.heap_bytes / page_bytes, {i % 2 == 0 ? 1 : several, i < 2, true}, nodes));
    }
    Figures figures;
    const LogBytes bytes = logs.bytes();
    for (unsigned round = 0; round <= rounds; ++round) {
        std::span<const RecordRef> records;
        const double timestamps_ns = ns_for_each(logs.writes(), [&] { records = logs.by_timestamp(); });
        const double links_ns = ns_for_each(logs.writes(), [&] { records = logs.by_links(); });
        std::array<double, 4> replay_ns{};
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned side = (i + round) % 4;
            replay_ns[side] = ns_for_each(logs.writes(), [&] {
                if (!replayers[side].replay(bytes, records, target)) {
                    throw std::runtime_error("a replay failed");
                }
            });
        }
        if (round == 0) {
            continue;  // Memory is touched for the first time.
        }
        figures.by_timestamp.push_back(timestamps_ns);
        figures.links.push_back(links_ns);
        for (unsigned i = 0; i < 4; ++i) {
            figures.replay[i].push_back(replay_ns[i]);
        }
        for (unsigned i = 0; i < 2; ++i) {
            figures.linked_gain[i].push_back((timestamps_ns + replay_ns[i]) / (links_ns + replay_ns[i]));
            figures.several_gain[i].push_back((links_ns + replay_ns[2 * i]) / (links_ns + replay_ns[2 * i + 1]));
            figures.several_gain_replay[i].push_back(replay_ns[2 * i] / replay_ns[2 * i + 1]);
        }
    }
    std::printf("%5" PRIu64 " MiB  %-3u %3u %%  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f\n",
                load.heap_bytes / mib, load.writes_each, load.duplicates_percent, median(figures.by_timestamp), median(figures.links),
                median(figures.replay[0]), median(figures.replay[1]), median(figures.replay[2]), median(figures.replay[3]),
                median(figures.linked_gain[0]), median(figures.linked_gain[1]), median(figures.several_gain[0]),
                median(figures.several_gain_replay[0]), median(figures.several_gain[1]), median(figures.several_gain_replay[1]));
    std::fflush(stdout);
}

void run(const bench::Settings& settings)
{
    const auto rounds = static_cast<unsigned>(settings.number("rounds", 7));
    const std::uint64_t writes = settings.number("writes", 2'000'000);
    const auto logs = static_cast<unsigned>(settings.number("logs", 8));
    const auto several = static_cast<unsigned>(settings.number("replayers", 2));
    std::printf("%-9s  %-3s %-5s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s\n", "heap", "W", "dup", "by time", "links",
                "1 filter", fmt::format("{} filter", several).c_str(), "1 all", fmt::format("{} all", several).c_str(), "link x 1",
                "link x n", "n/1 f", "alone", "n/1 all", "alone");
    for (const std::uint64_t heap_mib : {1U, 64U, 512U}) {
        for (const unsigned writes_each : {1U, 5U}) {
            for (const unsigned duplicates : {20U, 80U}) {
                measure({heap_mib * mib, writes_each, duplicates}, writes, logs, several, rounds);
            }
        }
    }
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run); }
