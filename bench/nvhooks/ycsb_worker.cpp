// The measured process of the benchmark of NVHooks: YCSB's load phase on a store, then its workloads A and B in slices.
//
// Linked with one implementation of store.h. The store alone is compiled by what is measured; this file and the
// harness are compiled once, uninstrumented, and are the same in every configuration.
//
// Usage: ycsb_worker POOL POOL_MIB ENTRIES THREADS. Commands on standard input, answers on standard output:
//
//   load OPERATIONS WALL_NS CPU_NS SETTLE_CPU_NS   once, when every key is inserted; then
//   ready
//   run UPDATE_PERCENT SLICE_NS  ->  OPERATIONS WALL_NS CPU_NS SETTLE_CPU_NS
//
// At the end of its input it checks the structure, and exits with 1 where it is not sound or a key was missing.

#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sysexits.h>
#include <vector>

#include "../harness/worker.hpp"
#include "store.h"

// Present where the layer is pmthreads: its stores become durable later, and no slice may pay for another's.
extern "C" {
__attribute__((weak)) std::uint64_t sp_epoch();
__attribute__((weak)) int sp_wait_durable(std::uint64_t epoch, std::int64_t timeout_ms);
}

namespace bench {
namespace {

constexpr unsigned threads_max = 64;

void settle_store()
{
    if (sp_epoch != nullptr && sp_wait_durable != nullptr) {
        (void)sp_wait_durable(sp_epoch(), 10'000);
    }
}

/// Keys are spread over 64 bits, as YCSB hashes its record numbers.
std::uint64_t key_number(std::uint64_t number) noexcept { return (number + 1) * 0x9e3779b97f4a7c15u; }

void make_value(unsigned char (&value)[STORE_VALUE_BYTES], std::uint64_t seed)
{
    for (std::size_t at = 0; at < sizeof value; at += sizeof seed) {
        std::memcpy(value + at, &seed, sizeof seed);
    }
}

void must(int failed, const char* what)
{
    if (failed != 0) {
        std::fprintf(stderr, "ycsb_worker: %s: %s: %s\n", what, std::strerror(failed), store_error());
        std::exit(EXIT_FAILURE);
    }
}

/// YCSB's request distribution: Zipf with the constant 0.99 [Gray et al., SIGMOD 1994], drawn in advance.
std::vector<std::uint32_t> draw_zipf(std::uint64_t entries, std::size_t count)
{
    constexpr double theta = 0.99;
    double zeta = 0;
    for (std::uint64_t i = 1; i <= entries; ++i) {
        zeta += 1.0 / std::pow(static_cast<double>(i), theta);
    }
    const double zeta2 = 1.0 + std::pow(0.5, theta);
    const double alpha = 1.0 / (1.0 - theta);
    const double eta = (1.0 - std::pow(2.0 / static_cast<double>(entries), 1.0 - theta)) / (1.0 - zeta2 / zeta);
    Random random(7);
    std::vector<std::uint32_t> drawn(count);
    for (std::uint32_t& number : drawn) {
        const double u = static_cast<double>(random.next() >> 11) * 0x1p-53;
        const double rank = u * zeta < 1.0 ? 0.0
            : u * zeta < zeta2             ? 1.0
                                           : static_cast<double>(entries) * std::pow(eta * u - eta + 1.0, alpha);
        const auto scattered = (static_cast<std::uint64_t>(rank) + 1) * 0xc6a4a7935bd1e995u;
        number = static_cast<std::uint32_t>((scattered >> 16) % entries);
    }
    return drawn;
}

/// Inserts every key once, the threads taking turns of 16.
class Load final : public TurnWorkload {
public:
    explicit Load(std::uint64_t entries) : entries_(entries) {}
    std::uint64_t perform(unsigned, Random&) override
    {
        constexpr std::uint64_t turn = 16;
        const std::uint64_t first = next_.fetch_add(turn);
        std::uint64_t number = first;
        for (; number < first + turn && number < entries_; ++number) {
            unsigned char value[STORE_VALUE_BYTES];
            make_value(value, key_number(number));
            must(store_put(key_number(number), value), "an insert failed");
        }
        return number > first ? number - first : 0;
    }
    void settle() override { settle_store(); }
    [[nodiscard]] bool done() const { return next_ >= entries_; }

private:
    std::uint64_t entries_;
    std::atomic<std::uint64_t> next_{0};
};

class Requests final : public TurnWorkload {
public:
    explicit Requests(std::uint64_t entries) : numbers_(draw_zipf(entries, 1u << 18)) {}
    std::uint64_t perform(unsigned thread, Random& random) override
    {
        constexpr unsigned turn = 64;
        std::uint32_t at = places_[thread].at;
        for (unsigned i = 0; i < turn; ++i, ++at) {
            const std::uint64_t key = key_number(numbers_[(thread * 30'011 + at) % numbers_.size()]);
            unsigned char value[STORE_VALUE_BYTES];
            if (random.below(100) < update_percent) {
                make_value(value, random.next());
                must(store_put(key, value), "an update failed");
            } else if (!store_get(key, value)) {
                ++missing_;
            }
        }
        places_[thread].at = at;
        return turn;
    }
    void settle() override { settle_store(); }
    [[nodiscard]] std::uint64_t missing() const { return missing_; }

    std::uint64_t update_percent = 50;  ///< written between slices only

private:
    struct alignas(64) Place {
        std::uint32_t at = 0;
    };
    std::vector<std::uint32_t> numbers_;
    Place places_[threads_max];
    std::atomic<std::uint64_t> missing_{0};
};

template <class Work>
void report(const char* word, Work&& work)
{
    const std::uint64_t cpu_before = process_cpu_ns();
    const SliceThreads::Slice slice = work();
    const std::uint64_t cpu_after = process_cpu_ns();
    settle_store();
    std::printf("%s%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", word, slice.operations, slice.wall_ns,
                cpu_after - cpu_before, process_cpu_ns() - cpu_after);
    std::fflush(stdout);
}

void load_all(std::uint64_t entries, unsigned threads)
{
    Load load(entries);
    TurnThreads slices(load, threads);
    report("load ", [&] {
        SliceThreads::Slice all{0, 0};
        while (!load.done()) {
            const SliceThreads::Slice slice = slices.run(1'000'000);
            all.operations += slice.operations;
            all.wall_ns += slice.wall_ns;
        }
        return all;
    });
}

void serve_requests(Requests& requests, unsigned threads)
{
    TurnThreads slices(requests, threads);
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    std::uint64_t slice_ns = 0;
    while (std::fgets(line, sizeof line, stdin) != nullptr &&
           std::sscanf(line, "run %" SCNu64 " %" SCNu64, &requests.update_percent, &slice_ns) == 2) {
        report("", [&] { return slices.run(slice_ns); });
    }
}

}  // namespace
}  // namespace bench

int main(int count, char** words)
{
    using namespace bench;
    std::uint64_t pool_mib = 0;
    std::uint64_t entries = 0;
    std::uint64_t threads = 0;
    if (count != 5 || !parse(words[2], 1, 1u << 20, pool_mib) || !parse(words[3], 16, 1u << 30, entries) ||
        !parse(words[4], 1, threads_max, threads)) {
        std::fputs("Usage: ycsb_worker POOL POOL_MIB ENTRIES THREADS\n", stderr);
        return EX_USAGE;
    }
    must(store_open(words[1], pool_mib << 20), "the pool cannot be opened");
    load_all(entries, static_cast<unsigned>(threads));
    Requests requests(entries);
    serve_requests(requests, static_cast<unsigned>(threads));
    const long found = store_check();
    const bool sound = found == static_cast<long>(entries) && requests.missing() == 0;
    if (!sound) {
        std::fprintf(stderr, "ycsb_worker: %s: %ld keys of %" PRIu64 ", %" PRIu64 " reads found nothing\n", store_name(), found,
                     entries, requests.missing());
    }
    store_close();
    return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}
