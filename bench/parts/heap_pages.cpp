// How many 4 KiB pages random frees and replacements dirty: what a checkpoint must write. Counts, not times.
//
// The image is write-protected; the first store to a page faults and is counted. "links" is how
// many pages the freed blocks themselves lie on: what an allocator dirties that threads its free
// list through them, before the bytes of any header.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "heap/heap.hpp"
#include "heap_workloads.hpp"

namespace stillpoint::bench {
namespace {

constexpr std::uint64_t image_bytes = 512 * mib;
constexpr std::size_t live_bytes = 64 * mib;
constexpr std::size_t operations = 1000;

std::byte* image = nullptr;
std::size_t pages_dirtied = 0;

void count_fault(int, siginfo_t* info, void*)
{
    const auto page = reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page_bytes - 1);
    if (page < window_base || page >= window_base + image_bytes) {
        std::abort();
    }
    ++pages_dirtied;
    mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE);
}

void start_counting()
{
    pages_dirtied = 0;
    mprotect(image, image_bytes, PROT_READ);
}

std::size_t pages_of(const std::vector<void*>& blocks)
{
    std::set<std::uintptr_t> pages;
    for (const void* block : blocks) {
        pages.insert(reinterpret_cast<std::uintptr_t>(block) / page_bytes);
    }
    return pages.size();
}

void measure_size(Heap& heap, std::size_t size_bytes)
{
    std::vector<void*> live(live_bytes / size_bytes);
    for (void*& block : live) {
        block = heap.allocate(size_bytes);
        std::memset(block, 1, size_bytes);
    }
    Random random(size_bytes);
    std::vector<void*> freed;
    std::vector<std::size_t> holes;
    start_counting();
    while (freed.size() < operations) {
        const std::size_t index = random.next() % live.size();
        if (live[index] != nullptr) {
            freed.push_back(live[index]);
            heap.deallocate(std::exchange(live[index], nullptr));
            holes.push_back(index);
        }
    }
    const std::size_t by_free = pages_dirtied;
    start_counting();
    for (const std::size_t index : holes) {
        live[index] = heap.allocate(size_bytes);
        std::memset(live[index], 2, size_bytes);
    }
    std::printf("%7zu %10zu %12zu %12zu %14zu\n", size_bytes, live.size(), by_free, pages_of(freed), pages_dirtied);
    mprotect(image, image_bytes, PROT_READ | PROT_WRITE);
    for (void* block : live) {
        heap.deallocate(block);
    }
}

}  // namespace
}  // namespace stillpoint::bench

int main()
{
    using namespace stillpoint;
    using namespace stillpoint::bench;
    struct sigaction action = {};
    action.sa_sigaction = count_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    void* memory = mmap(reinterpret_cast<void*>(window_base), image_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    image = static_cast<std::byte*>(memory);
    const auto attached =
        Heap::attach({.image_base = image,
                      .heap_offset = page_bytes,
                      .image_bytes = image_bytes,
                      .image_bytes_max = image_bytes,
                      .grow = [](void*, std::uint64_t) -> Result<std::uint64_t> { return fail(SP_E_POOL_FULL, 0, "full"); },
                      .grow_context = nullptr});
    if (memory == MAP_FAILED || !attached) {
        std::fprintf(stderr, "heap_pages: no heap\n");
        return 1;
    }
    std::printf("pages dirtied by %zu random frees in %llu MiB of live blocks, then by as many allocations that are written\n", operations,
                static_cast<unsigned long long>(live_bytes / mib));
    std::printf("%7s %10s %12s %12s %14s\n", "size", "live", "frees", "links would", "allocations");
    for (const std::size_t size_bytes : std::initializer_list<std::size_t>{16, 64, 256, 1024, 4096, 16384}) {
        measure_size(**attached, size_bytes);
    }
    return 0;
}
