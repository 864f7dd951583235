// The cost of replaying redo logs: records in the order of their timestamps against records along links, one replayer against several.
//
//   build/bin/bench_replay [rounds=N] [writes=N] [logs=N] [replayers=N]
//
// The logs are made up (SyntheticLogs). All sides work in turn in each round, from another one on in each,
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
#include "logs/replayer.hpp"
#include "os/numa.hpp"
#include "replayable_logs.hpp"

namespace {

using namespace stillpoint;
using namespace stillpoint::logs;
using bench::checked;
using bench::SyntheticLoad;
using bench::SyntheticLogs;

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

double ns_for_each(std::uint64_t count, const auto& work)
{
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(count);
}

/// One way to replay the logs.
struct Side {
    SyntheticLogs& logs;
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

void show(const SyntheticLoad& load, const char* mode, const Times* times)
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

void measure(const SyntheticLoad& load, const Plan& plan, OrderTimes& order)
{
    SyntheticLogs forward(load, plan.writes, plan.logs, LinkDirection::forward);
    SyntheticLogs backward(load, plan.writes, plan.logs, LinkDirection::backward);
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
