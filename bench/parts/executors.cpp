// The executors of spht's transactions against each other, on the same programs.
//
//   build/bin/bench_executors [executors=A,B,...] [threads=N] [rounds=N] [slice_ms=N] [pool=PATH] [medium=memory|file]
//   build/bin/bench_executors only=A load=N transactions=N      one executor, a fixed number of transactions: to count instructions
//
// Each executor has a process with a pool of its own, of durability process. They work in turn in each round, from another
// one on in each, because machines drift; a ratio is taken within a round, against the first executor, and medians are printed.
//
//   map R:U    an ordered map with 64 Ki of 128 Ki keys; R look-ups for U insertions or removals
//   vacation   four maps of 16 Ki keys; six look-ups, three of whose values are written, and one of a customer

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "../engines/spht/spht_memory.hpp"
#include "../harness/commands.hpp"
#include "../harness/ending.hpp"
#include "../harness/random.hpp"
#include "../transactions/tree.hpp"
#include "stillpoint/stillpoint.h"

namespace {

using bench::Random;
using bench::SphtMemory;
using Map = bench::transactional::Tree<std::uint64_t>;

constexpr std::array<const char*, 4> load_names = {"map 9:1", "map 1:1", "map 1:9", "vacation"};
constexpr std::uint64_t map_keys = 128 * 1024;
constexpr std::uint64_t offers = 16 * 1024;
constexpr std::size_t offer_maps = 3;

struct State {
    Map map;
    std::array<Map, offer_maps> offers_of;
    Map customers;
};

void fill(Map& map, std::uint64_t keys, std::uint64_t step)
{
    constexpr std::uint64_t keys_at_once = 64;
    for (std::uint64_t first = 0; first < keys; first += keys_at_once * step) {
        SphtMemory::atomically([&](auto& tx) {
            for (std::uint64_t i = 0; i < keys_at_once; ++i) {
                map.insert(tx, first + i * step, first + i);
            }
        });
    }
}

void use_map(State& state, Random& random, unsigned reads_of_ten)
{
    const std::uint64_t key = random.below(map_keys);
    if (random.below(10) < reads_of_ten) {
        SphtMemory::read_atomically([&](auto& tx) {
            const std::uint64_t* const value = state.map.find(tx, key);
            return value != nullptr ? tx.read(*value) : 0;
        });
    } else if (random.below(2) == 0) {
        SphtMemory::atomically([&](auto& tx) { state.map.insert(tx, key, key); });
    } else {
        SphtMemory::atomically([&](auto& tx) { static_cast<void>(state.map.remove(tx, key)); });
    }
}

void reserve(State& state, Random& random)
{
    const std::uint64_t customer = random.below(offers);
    std::array<std::array<std::uint64_t, 2>, offer_maps> keys{};
    for (auto& both : keys) {
        both = {random.below(offers), random.below(offers)};
    }
    SphtMemory::atomically([&](auto& tx) {
        std::uint64_t price = 0;
        for (std::size_t i = 0; i < offer_maps; ++i) {
            std::uint64_t* const one = state.offers_of[i].find(tx, keys[i][0]);
            std::uint64_t* const other = state.offers_of[i].find(tx, keys[i][1]);
            std::uint64_t* const best = tx.read(*one) < tx.read(*other) ? one : other;
            price += tx.read(*best);
            tx.write(*best, tx.read(*best) + 1);
        }
        std::uint64_t* const bill = state.customers.find(tx, customer);
        tx.write(*bill, tx.read(*bill) + price);
    });
}

void transact(std::size_t load, State& state, Random& random)
{
    constexpr std::array<unsigned, 3> reads_of_ten = {9, 5, 1};
    if (load < reads_of_ten.size()) {
        use_map(state, random, reads_of_ten[load]);
    } else {
        reserve(state, random);
    }
}

struct Place {
    std::string pool;
    std::string medium;
};

State& open_state(const Place& place, const std::string& executor)
{
    const std::string& pool = place.pool;
    unlink(pool.c_str());
    const std::string options = "quiet engine=spht durability=process pool_size_mb=256 medium=" + place.medium +
                                (executor.empty() ? "" : " executor=" + executor);
    if (sp_open(pool.c_str(), options.c_str()) != SP_OK) {
        bench::give_up(sp_last_error());
    }
    State& state = *SphtMemory::named<State>("state");
    fill(state.map, map_keys, 2);
    for (Map& map : state.offers_of) {
        fill(map, offers, 1);
    }
    fill(state.customers, offers, 1);
    return state;
}

struct Slice {
    std::uint64_t load;
    std::uint64_t threads;  ///< 0: the end
    std::uint64_t ns;
};

/// Transactions in a second.
double work(State& state, const Slice& slice, std::uint64_t seed)
{
    std::atomic<std::uint64_t> done{0};
    std::atomic<bool> ends{false};
    std::vector<std::thread> threads;
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < slice.threads; ++i) {
        threads.emplace_back([&, own = Random(seed * 64 + i + 1)]() mutable {
            std::uint64_t count = 0;
            for (; !ends.load(std::memory_order_relaxed); ++count) {
                transact(slice.load, state, own);
            }
            done += count;
        });
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(slice.ns));
    ends = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    SphtMemory::settle();
    return static_cast<double>(done.load()) / seconds.count();
}

/// A process with its pool, that works when it is told.
class Side {
public:
    Side(const Place& place, std::string executor) : name_(std::move(executor))
    {
        std::array<int, 2> to{};
        std::array<int, 2> from{};
        if (pipe(to.data()) != 0 || pipe(from.data()) != 0) {
            bench::give_up("no pipe");
        }
        const Place own{place.pool + "." + name_, place.medium};
        child_ = fork();
        if (child_ == 0) {
            close(to[1]);
            close(from[0]);
            serve(own, to[0], from[1]);
        }
        close(to[0]);
        close(from[1]);
        to_ = to[1];
        from_ = from[0];
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    ~Side()
    {
        const Slice end{};
        if (write(to_, &end, sizeof end) == sizeof end) {
            waitpid(child_, nullptr, 0);
        }
        close(to_);
        close(from_);
    }

    double rate(const Slice& slice) const
    {
        double result = 0;
        if (write(to_, &slice, sizeof slice) != sizeof slice || read(from_, &result, sizeof result) != sizeof result) {
            bench::give_up("the process of executor " + name_ + " has ended");
        }
        return result;
    }
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    [[noreturn]] void serve(const Place& place, int commands, int answers) const
    {
        State& state = open_state(place, name_);
        Slice slice{};
        for (std::uint64_t seed = 1; read(commands, &slice, sizeof slice) == sizeof slice && slice.threads != 0; ++seed) {
            const double result = work(state, slice, seed);
            if (write(answers, &result, sizeof result) != sizeof result) {
                break;
            }
        }
        sp_close();
        unlink(place.pool.c_str());
        _exit(0);
    }

    std::string name_;
    pid_t child_ = 0;
    int to_ = -1;
    int from_ = -1;
};

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void compare(const std::vector<std::unique_ptr<Side>>& sides, std::uint64_t threads, std::uint64_t rounds, std::uint64_t slice_ns)
{
    std::printf("%-10s  %-8s  %-12s  %12s  %8s\n", "load", "threads", "executor", "per second", "ratio");
    for (std::size_t load = 0; load < load_names.size(); ++load) {
        std::vector<std::vector<double>> rates(sides.size());
        for (std::uint64_t round = 0; round <= rounds; ++round) {
            for (std::size_t i = 0; i < sides.size(); ++i) {
                const std::size_t side = (i + round) % sides.size();
                const double rate = sides[side]->rate({load, threads, slice_ns});
                if (round != 0) {  // The first one warms up.
                    rates[side].push_back(rate);
                }
            }
        }
        for (std::size_t side = 0; side < sides.size(); ++side) {
            std::vector<double> ratios;
            for (std::size_t i = 0; i < rounds; ++i) {
                ratios.push_back(rates[side][i] / rates[0][i]);
            }
            std::printf("%-10s  %-8" PRIu64 "  %-12s  %12.0f  %8.3f\n", load_names[load], threads, sides[side]->name().c_str(),
                        median(rates[side]), median(ratios));
            std::fflush(stdout);
        }
    }
}

void run(const bench::Settings& settings)
{
    const Place place{settings.text("pool", "/dev/shm/bench_executors." + std::to_string(getpid())), settings.text("medium", "memory")};
    if (settings.has("only")) {
        State& state = open_state(place, settings.text("only"));
        Random random(1);
        for (std::uint64_t left = settings.number("transactions", 100'000); left != 0; --left) {
            transact(settings.number("load", 0) % load_names.size(), state, random);
        }
        sp_close();
        unlink(place.pool.c_str());
        return;
    }
    std::vector<std::unique_ptr<Side>> sides;
    std::string names = settings.text("executors", "software") + ",";
    for (std::size_t end = names.find(','); end != std::string::npos; end = names.find(',')) {
        sides.push_back(std::make_unique<Side>(place, names.substr(0, end)));
        names.erase(0, end + 1);
    }
    compare(sides, settings.number("threads", 2), settings.number("rounds", 5), settings.number("slice_ms", 200) * 1'000'000);
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run); }
