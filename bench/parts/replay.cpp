// The cost of replaying redo logs: records in the order of their timestamps against records along links, one replayer against several.
//
//   build/bin/bench_replay [rounds=N] [writes=N] [logs=N] [replayers=N]
//
// Each log belongs to one of `logs` threads; transactions write random words of a heap. "duplicates" is the share of writes to words that
// the logs also write elsewhere, without one write for each word. All sides work in turn in each round, from another one on in each,
// because machines drift; a ratio is taken within a round, and medians are printed. Times are nanoseconds for each write.
//
//   merge    walk of the logs, a look at the heads of all logs for each record, then replay of the list
//   linked   replay along links, without a list
//   filter   newest first, each word stored once; links are backward
//   all      oldest first, every write stored; links are forward
//
// The second table has the order alone: the list by timestamp, and the list along links.

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

struct Plan {
    std::uint64_t writes;
    unsigned logs;
    unsigned replayers;
    unsigned rounds;
};

/// The logs of several threads, with links.
class Logs {
public:
    Logs(const Load& load, std::uint64_t writes, unsigned logs, LinkDirection direction) : logs_(logs)
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
                const bool forward = direction == LinkDirection::forward;
                header_at(forward ? before : record)->link = (forward ? record : before).position | 1;
            } else {
                linked_.oldest = record;
            }
            before = record;
        }
        linked_ = {direction, linked_.oldest, before, transactions};
        checked(list_.reserve(transactions, "records"));
        checked(ordered_.reserve(transactions, "records"));
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
        const std::span<RecordRef> out = ordered_.resize(linked_.count);
        order_by_timestamp(heads, out);
        return out;
    }
    std::span<const RecordRef> by_links()
    {
        const std::span<RecordRef> out = ordered_.resize(linked_.count);
        if (!follow_links(bytes(), linked_.direction, linked_.oldest, linked_.newest, out)) {
            throw std::runtime_error("a link is wrong");
        }
        return out;
    }
    [[nodiscard]] LogBytes bytes() const { return {pointers_.data(), static_cast<std::uint32_t>(pointers_.size())}; }
    [[nodiscard]] std::uint64_t writes() const { return writes_; }
    [[nodiscard]] std::uint64_t transactions() const { return linked_.count; }
    [[nodiscard]] const LinkedRecords& linked() const { return linked_; }

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
    LinkedRecords linked_{};
    RecordList list_;
    RecordList ordered_;
};

double ns_for_each(std::uint64_t count, const auto& work)
{
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(count);
}

/// One way to replay the logs.
struct Side {
    Logs& logs;
    Replayer& replayer;
    bool linked;
};

double replay_ns(const Side& side, const ReplayTarget& target)
{
    return ns_for_each(side.logs.writes(), [&] {
        const LogBytes bytes = side.logs.bytes();
        if (!(side.linked ? side.replayer.replay_linked(bytes, side.logs.linked(), target)
                          : side.replayer.replay(bytes, side.logs.by_timestamp(), target))) {
            throw std::runtime_error("a replay failed");
        }
    });
}

using Times = std::vector<double>;  ///< by round

double median_ratio(const Times& of, const Times& to)
{
    Times ratios;
    for (std::size_t round = 0; round < of.size(); ++round) {
        ratios.push_back(of[round] / to[round]);
    }
    return median(ratios);
}

void show(const Load& load, const char* mode, const Times* times)
{
    std::printf("%5" PRIu64 " MiB  %-2u  %3u %%  %-6s  %8.1f  %8.1f  %8.1f  %8.1f  %8.2f  %8.2f  %8.2f  %8.2f\n", load.heap_bytes / mib,
                load.writes_each, load.duplicates_percent, mode, median(times[0]), median(times[1]), median(times[2]), median(times[3]),
                median_ratio(times[0], times[1]), median_ratio(times[2], times[3]), median_ratio(times[0], times[2]),
                median_ratio(times[1], times[3]));
    std::fflush(stdout);
}

struct OrderTimes {
    Times by_timestamp;
    Times along_links;
};

void measure(const Load& load, const Plan& plan, OrderTimes& order)
{
    Logs forward(load, plan.writes, plan.logs, LinkDirection::forward);
    Logs backward(load, plan.writes, plan.logs, LinkDirection::backward);
    os::ReservedArray<std::byte> heap;
    checked(heap.reserve(load.heap_bytes, "the heap"));
    std::memset(heap.data(), 1, load.heap_bytes);
    const ReplayTarget target{[](void* base, std::uint64_t page) { return static_cast<std::byte*>(base) + page * page_bytes; },
                              heap.data()};
    const os::NumaNodes nodes = os::NumaNodes::read();
    std::array<Replayer, 4> replayers;
    for (unsigned i = 0; i < 4; ++i) {
        checked(replayers[i].start(load.heap_bytes / page_bytes, {i % 2 == 0 ? 1 : plan.replayers, i < 2, true}, nodes));
    }
    const std::array<Side, 8> sides = {{{backward, replayers[0], false},
                                        {backward, replayers[0], true},
                                        {backward, replayers[1], false},
                                        {backward, replayers[1], true},
                                        {forward, replayers[2], false},
                                        {forward, replayers[2], true},
                                        {forward, replayers[3], false},
                                        {forward, replayers[3], true}}};
    std::array<Times, 8> times;
    for (unsigned round = 0; round <= plan.rounds; ++round) {
        for (unsigned i = 0; i < sides.size(); ++i) {
            const unsigned side = (i + round) % sides.size();
            const double ns = replay_ns(sides[side], target);
            if (round != 0) {  // In the first one memory is touched for the first time.
                times[side].push_back(ns);
            }
        }
        order.by_timestamp.push_back(ns_for_each(forward.transactions(), [&] { forward.by_timestamp(); }));
        order.along_links.push_back(ns_for_each(forward.transactions(), [&] { forward.by_links(); }));
    }
    show(load, "filter", times.data());
    show(load, "all", times.data() + 4);
}

void run(const bench::Settings& settings)
{
    const Plan plan{settings.number("writes", 2'000'000), static_cast<unsigned>(settings.number("logs", 8)),
                    static_cast<unsigned>(settings.number("replayers", 2)), static_cast<unsigned>(settings.number("rounds", 7))};
    const std::string several = fmt::format(" x{}", plan.replayers);
    const auto with = [&](const char* text) { return text + several; };
    std::printf("%-9s  %-2s  %-5s  %-6s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s\n", "heap", "W", "dup", "mode", "merge x1", "linked x1",
                with("merge").c_str(), with("linked").c_str(), "m/l x1", with("m/l").c_str(), "merge 1/n", "linked 1/n");
    std::array<OrderTimes, 2> order;
    for (const std::uint64_t heap_mib : {1U, 64U, 512U}) {
        for (const unsigned writes_each : {1U, 5U}) {
            for (const unsigned duplicates : {20U, 80U}) {
                measure({heap_mib * mib, writes_each, duplicates}, plan, order[writes_each == 1 ? 0 : 1]);
            }
        }
    }
    std::printf("\n%-14s  %-14s  %-14s  %8s\n", "order alone", "by timestamp", "along links", "ratio");
    for (const unsigned i : {0U, 1U}) {
        std::printf("%-14s  %-14.1f  %-14.1f  %8.2f\n", i == 0 ? "1 write" : "5 writes", median(order[i].by_timestamp),
                    median(order[i].along_links), median_ratio(order[i].by_timestamp, order[i].along_links));
    }
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run); }
