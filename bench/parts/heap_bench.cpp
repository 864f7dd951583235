// Stillpoint's heap against glibc malloc, on glibc's own patterns: time of one allocate-free pair, as a
// ratio within this run. Slices of the contenders alternate; the figures are medians over the rounds.
//
//   heap_bench [rounds [slice_ms [part of a workload's name]]]
//
// "heap" is the allocator alone; "+FASE" adds what sp_malloc and sp_free add, a FASE of its own for each
// call, in line as there. CPU time is what to compare on a machine that is not idle; elapsed time shows waiting.

#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <string>
#include <sys/mman.h>
#include <thread>

#include "core/units.hpp"
#include "heap/heap.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "heap_workloads.hpp"

namespace stillpoint::bench {
namespace {

Heap* heap = nullptr;

struct Glibc {
    void* allocate(std::size_t size_bytes) { return std::malloc(size_bytes); }
    void release(void* block) { std::free(block); }
};
struct Bare {
    void* allocate(std::size_t size_bytes) { return heap->allocate(size_bytes); }
    void release(void* block) { heap->deallocate(block); }
};
struct WithFase {
    void* allocate(std::size_t size_bytes)
    {
        const fase::InlineGuard guard;
        return heap->allocate(size_bytes);
    }
    void release(void* block)
    {
        const fase::InlineGuard guard;
        heap->deallocate(block);
    }
};

/// An image in plain memory, at its full size: growth is not what is measured here.
void attach_heap()
{
    constexpr std::uint64_t bytes = 2 * gib;
    void* memory = mmap(reinterpret_cast<void*>(window_base), bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    const auto attached =
        Heap::attach({.image_base = static_cast<std::byte*>(memory),
                      .heap_offset = page_bytes,
                      .image_bytes = bytes,
                      .image_bytes_max = bytes,
                      .grow = [](void*, std::uint64_t) -> Result<std::uint64_t> { return fail(SP_E_POOL_FULL, 0, "full"); },
                      .grow_context = nullptr});
    if (memory == MAP_FAILED || !attached) {
        std::fprintf(stderr, "heap_bench: no heap: %s\n", attached ? "the window is taken" : attached.error().message);
        std::exit(1);
    }
    heap = *attached;
}

/// One slice on `threads` threads; one thread means the main thread, where glibc knows that the
/// process has no other and leaves its locks out.
template <class Allocator, class Make>
Cost slice(unsigned threads, const Make& make, double slice_seconds)
{
    if (threads == 1) {
        return measure(Allocator{}, make(0), slice_seconds);
    }
    std::vector<Cost> costs(threads);
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            costs[t] = measure(Allocator{}, make(t), slice_seconds);
            heap->flush_thread_cache();
        });
    }
    Cost sum{};
    for (unsigned t = 0; t < threads; ++t) {
        running[t].join();
        sum.cpu_ns += costs[t].cpu_ns / threads;
        sum.wall_ns += costs[t].wall_ns / threads;
    }
    return sum;
}

struct Settings {
    int rounds = 5;
    double slice_seconds = 0.1;
    std::string only;  ///< empty: every workload
};

std::vector<double> worst_ratios;

template <class Make>
void compare(const Settings& settings, const std::string& name, unsigned threads, const Make& make)
{
    if (name.find(settings.only) == std::string::npos) {
        return;
    }
    std::vector<double> glibc_ns, heap_ns, heap_ratio, fase_ratio, fase_wall_ratio;
    for (int round = 0; round < settings.rounds; ++round) {
        const Cost glibc = slice<Glibc>(threads, make, settings.slice_seconds);
        const Cost bare = slice<Bare>(threads, make, settings.slice_seconds);
        const Cost fase = slice<WithFase>(threads, make, settings.slice_seconds);
        glibc_ns.push_back(glibc.cpu_ns);
        heap_ns.push_back(bare.cpu_ns);
        heap_ratio.push_back(bare.cpu_ns / glibc.cpu_ns);
        fase_ratio.push_back(fase.cpu_ns / glibc.cpu_ns);
        fase_wall_ratio.push_back(fase.wall_ns / glibc.wall_ns);
    }
    worst_ratios.push_back(median(fase_ratio));
    std::printf("%-28s %7u %9.1f %9.1f %7.2f %7.2f %9.2f\n", name.c_str(), threads, median(glibc_ns), median(heap_ns), median(heap_ratio),
                median(fase_ratio), median(fase_wall_ratio));
    std::fflush(stdout);
}

void run_all(const Settings& settings)
{
    std::printf("%-28s %7s %9s %9s %7s %7s %9s\n", "", "", "glibc", "heap", "heap", "+FASE", "+FASE");
    std::printf("%-28s %7s %9s %9s %7s %7s %9s\n", "workload", "threads", "cpu ns", "cpu ns", "ratio", "ratio", "elapsed");
    for (const unsigned threads : {1u, 2u}) {
        for (const std::size_t blocks : std::initializer_list<std::size_t>{25, 100, 400, 1600}) {
            for (const std::size_t size : std::initializer_list<std::size_t>{16, 64, 256, 1024, 4096}) {
                compare(settings, "simple " + std::to_string(size) + " B x " + std::to_string(blocks), threads,
                        [=](unsigned) { return Simple(size, blocks); });
            }
        }
        compare(settings, "thread 4 B to 32 KiB, 1/s^2", threads, [](unsigned t) { return Churn(4, 32768, true, t + 1); });
        compare(settings, "churn 16 B to 4 KiB, uniform", threads, [](unsigned t) { return Churn(16, 4096, false, t + 1); });
    }
    if (worst_ratios.empty()) {
        std::fprintf(stderr, "heap_bench: no workload has \"%s\" in its name\n", settings.only.c_str());
        std::exit(1);
    }
    double log_sum = 0;
    for (const double ratio : worst_ratios) {
        log_sum += std::log(ratio);
    }
    std::printf("\nratio to glibc with a FASE per call: geometric mean %.2f, worst %.2f\n",
                std::exp(log_sum / static_cast<double>(worst_ratios.size())), *std::max_element(worst_ratios.begin(), worst_ratios.end()));
}

}  // namespace
}  // namespace stillpoint::bench

int main(int count, char** arguments)
{
    stillpoint::bench::Settings settings;
    if (count > 1) {
        settings.rounds = std::max(1, std::atoi(arguments[1]));
    }
    if (count > 2) {
        settings.slice_seconds = std::max(1, std::atoi(arguments[2])) / 1000.0;
    }
    if (count > 3) {
        settings.only = arguments[3];
    }
    if (const auto active = stillpoint::fase_activate(); !active) {
        std::fprintf(stderr, "heap_bench: %s\n", active.error().message);
        return 1;
    }
    // Without this glibc returns memory to the system in each round of a large pattern and takes it
    // back: the ratios would flatter the heap by a factor of 100.
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    mallopt(M_TOP_PAD, 64 << 20);
    stillpoint::bench::attach_heap();
    stillpoint::bench::run_all(settings);
    return 0;
}
