// The replay of the same logs in several ways, as JSON, for the figures of a paper (bench/papers).
//
//   build/bin/bench_replay_cell heap_mib=N writes_each=N [duplicates=PERCENT] [writes=N] [logs=N] [rounds=N] [replayers=N]
//   build/bin/bench_replay_cell pool=FILE [rounds=N] [replayers=N]          the logs that a killed program has left; links are forward
//   build/bin/bench_replay_cell ... shard=I shards=N                    one replayer's part alone, once: loads and misses of its cache
//
// A side is an order of records (by timestamp, along links), a way to apply them (all, oldest first; or newest first, each word once) and a
// number of replayers. All sides work in turn in each round, from another one on in each. `shards` are the parts of 2, 4, 8 and 16
// replayers, each run without the others: the slowest takes as long as that many replayers on as many cores, if none slows another down.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "../harness/commands.hpp"
#include "cache_counters.hpp"
#include "logs/replayer.hpp"
#include "os/numa.hpp"
#include "pool_logs.hpp"

namespace {

using namespace stillpoint;
using namespace stillpoint::logs;
using bench::checked;
using bench::ReplayableLogs;

constexpr unsigned shards_measured[] = {2, 4, 8, 16};

/// Keeps its name and its frame: the cache simulation counts what happens inside it (bench/papers/replay_runs.py).
[[gnu::noinline, gnu::used]] bool replay_one_shard(ShardReplay& shard, const ReplayableLogs& logs, const ReplayTarget& target,
                                                   Shards shards)
{
    return shard.run_linked(logs.bytes(), logs.linked(), target, shards);
}

std::uint64_t ns_of(const auto& work)
{
    const auto begin = std::chrono::steady_clock::now();
    if (!work()) {
        throw std::runtime_error("a replay failed");
    }
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
}

struct Side {
    ReplayableLogs* logs;
    bool linked;
    bool filter;
    unsigned replayers;
    Replayer* replayer;
    std::vector<std::uint64_t> ns;  ///< by round
};

/// The memory that is replayed into.
class Heap {
public:
    explicit Heap(std::uint64_t bytes) : pages_(bytes / page_bytes) { checked(memory_.reserve(bytes, "the heap")); }
    [[nodiscard]] std::uint64_t pages() const { return pages_; }
    [[nodiscard]] ReplayTarget target()
    {
        return {[](void* base, std::uint64_t page) { return static_cast<std::byte*>(base) + page * page_bytes; }, memory_.data()};
    }
    /// Touched before anything is measured, where all of it is used.
    void fill() { std::memset(memory_.data(), 1, pages_ * page_bytes); }

private:
    std::uint64_t pages_;
    os::ReservedArray<std::byte> memory_;
};

class Cell {
public:
    Cell(Heap& heap, unsigned rounds) : heap_(heap), rounds_(rounds), nodes_(os::NumaNodes::read()) {}

    void add(ReplayableLogs& logs, bool filter, unsigned replayers)
    {
        for (const unsigned count : {1U, replayers}) {
            auto& replayer = replayers_.emplace_back(std::make_unique<Replayer>());
            checked(replayer->start(heap_.pages(), {count, filter, true}, nodes_));
            for (const bool linked : {false, true}) {
                sides_.push_back({&logs, linked, filter, count, replayer.get(), {}});
            }
        }
    }
    void measure()
    {
        for (unsigned round = 0; round <= rounds_; ++round) {
            for (std::size_t i = 0; i < sides_.size(); ++i) {
                Side& side = sides_[(i + round) % sides_.size()];
                const std::uint64_t ns = ns_of([&] { return replay(side); });
                if (round != 0) {  // In the first one memory is touched for the first time.
                    side.ns.push_back(ns);
                }
            }
        }
    }
    [[nodiscard]] std::string sides_json() const
    {
        std::string json;
        for (const Side& side : sides_) {
            json += fmt::format(R"({}{{"links": {}, "filter": {}, "replayers": {}, "ns": [{}]}})", json.empty() ? "" : ", ", side.linked,
                                side.filter, side.replayers, fmt::join(side.ns, ", "));
        }
        return "[" + json + "]";
    }
    /// For each number of replayers, the time of the slowest along links: each one's is its shortest of several.
    [[nodiscard]] std::string shards_json(ReplayableLogs& logs, bool filter)
    {
        ShardReplay shard;
        checked(shard.reserve(heap_.pages()));
        std::string json;
        for (const unsigned count : shards_measured) {
            std::uint64_t slowest = 0;
            for (unsigned index = 0; index < count; ++index) {
                std::uint64_t shortest = UINT64_MAX;
                for (unsigned round = 0; round < std::max(1U, rounds_ / 2); ++round) {
                    shortest = std::min(shortest, ns_of([&] { return replay_one_shard(shard, logs, heap_.target(), {index, count}); }));
                }
                slowest = std::max(slowest, shortest);
            }
            json += fmt::format(R"({}{{"filter": {}, "replayers": {}, "ns": {}}})", json.empty() ? "" : ", ", filter, count, slowest);
        }
        return json;
    }

private:
    bool replay(const Side& side)
    {
        const LogBytes bytes = side.logs->bytes();
        return side.linked ? side.replayer->replay_linked(bytes, side.logs->linked(), heap_.target())
                           : side.replayer->replay(bytes, side.logs->by_timestamp(), heap_.target());
    }

    Heap& heap_;
    unsigned rounds_;
    os::NumaNodes nodes_;
    std::vector<std::unique_ptr<Replayer>> replayers_;
    std::vector<Side> sides_;
};

void show(const ReplayableLogs& logs, const Cell& cell, const std::string& shards, std::uint64_t links_missing = 0)
{
    std::fputs(fmt::format(R"({{"writes": {}, "transactions": {}, "logs": {}, "links_missing": {}, "sides": {}, "shards": [{}]}})"
                           "\n",
                           logs.writes(), logs.transactions(), logs.logs(), links_missing, cell.sides_json(), shards)
                   .c_str(),
               stdout);
}

void run_shard(ReplayableLogs& logs, Heap& heap, const bench::Settings& settings)
{
    ShardReplay shard;
    checked(shard.reserve(heap.pages()));
    const auto count = static_cast<unsigned>(settings.number("shards", 1));
    const auto index = static_cast<unsigned>(settings.number("shard", 0));
    const bench::CacheCounters counters;
    if (index >= count || !replay_one_shard(shard, logs, heap.target(), {index, count})) {
        throw std::runtime_error("a replay failed");
    }
    const auto counts = counters.read();
    std::fputs(counts ? fmt::format("{{\"loads\": {}, \"misses\": {}}}\n", counts->loads, counts->misses).c_str() : "{}\n", stdout);
}

void run_synthetic(const bench::Settings& settings, unsigned rounds, unsigned replayers)
{
    const bench::SyntheticLoad load{settings.number_from("heap_mib", 1, 65'536) * mib,
                                    static_cast<unsigned>(settings.number_from("writes_each", 1, 5)),
                                    static_cast<unsigned>(settings.number("duplicates", bench::SyntheticLoad::any))};
    const std::uint64_t writes = settings.number("writes", 2'000'000);
    const auto logs = static_cast<unsigned>(settings.number("logs", 64));
    bench::SyntheticLogs forward(load, writes, logs, LinkDirection::forward);
    Heap heap(load.heap_bytes);
    heap.fill();
    if (settings.has("shard")) {
        run_shard(forward, heap, settings);
        return;
    }
    bench::SyntheticLogs backward(load, writes, logs, LinkDirection::backward);
    Cell cell(heap, rounds);
    cell.add(forward, false, replayers);
    cell.add(backward, true, replayers);
    cell.measure();
    show(forward, cell, cell.shards_json(forward, false) + ", " + cell.shards_json(backward, true));
}

void run_pool(const std::string& path, const bench::Settings& settings, unsigned rounds, unsigned replayers)
{
    bench::PoolLogs logs(path);
    Heap heap(logs.heap_bytes());
    if (settings.has("shard")) {
        run_shard(logs, heap, settings);
        return;
    }
    Cell cell(heap, rounds);
    cell.add(logs, false, replayers);
    cell.measure();
    show(logs, cell, cell.shards_json(logs, false), logs.links_missing());
}

void run(const bench::Settings& settings)
{
    const auto rounds = static_cast<unsigned>(settings.number("rounds", 7));
    const auto replayers = static_cast<unsigned>(settings.number("replayers", 2));
    if (settings.has("pool")) {
        run_pool(settings.text("pool"), settings, rounds, replayers);
    } else {
        run_synthetic(settings, rounds, replayers);
    }
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run); }
