// Fuzzer: any span table and any marks, then a program that allocates and frees.
//
// The input: a count of table entries, three bytes each (span, kind, payload); a count of marks, three bytes each (span,
// place, value); the rest are operations of three bytes (what, size). Demanded of a heap that attach() takes: blocks lie in
// the heap, overlap no other block of this run, and keep their bytes. If check() had found the image sound, it does so
// after the operations, and as many blocks are live as were before.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>

#include "heap/heap.hpp"
#include "heap/heap_layout.hpp"
#include "heap/heap_state.hpp"

namespace {

using namespace stillpoint;
using namespace stillpoint::heap;

constexpr std::uint64_t heap_offset = 64 * kib;
constexpr std::uint64_t image_bytes = 1 * mib;
constexpr std::uint64_t image_bytes_max = 2 * mib;

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

/// Takes the input apart; zeroes after its end.
struct Input {
    const std::uint8_t* data;
    std::size_t size;
    std::uint8_t next()
    {
        if (size == 0) {
            return 0;
        }
        --size;
        return *data++;
    }
};

struct Live {
    std::size_t size;
    std::byte fill;
};

std::byte* new_image()
{
    void* const wanted = reinterpret_cast<void*>(window_base);
    static void* const memory = mmap(wanted, image_bytes_max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                                     0);
    demand(memory == wanted);
    madvise(memory, image_bytes_max, MADV_DONTNEED);
    return static_cast<std::byte*>(memory);
}

void fill_tables(std::byte* base, Input& input)
{
    const HeapLayout layout = HeapLayout::of(heap_offset, image_bytes_max, heap::TableFormat::plain);
    auto* const table = reinterpret_cast<std::uint32_t*>(base + layout.span_table_offset);
    const std::uint64_t spans = layout.spans_in(image_bytes_max);
    for (unsigned entries = input.next() % 24; entries > 0; --entries) {
        const std::uint64_t span = input.next() % spans;
        const std::uint8_t kind = input.next();
        const std::uint32_t payload = input.next();
        table[span] = kind % 4 == 3 ? (std::uint32_t{kind} << 24) | payload : (std::uint32_t{kind % 4U} << 30) | payload;
    }
    for (unsigned marks = input.next() % 64; marks > 0; --marks) {
        const std::uint64_t span = input.next() % spans;
        const std::uint8_t place = input.next();
        const auto value = std::byte{input.next()};
        const std::uint32_t size_class = table[span] & 0xffU;
        const heap::SizeClass& known = heap::size_classes[size_class];
        const bool fine = size_class - 1 < class_count && !has_coarse_marks(known);
        const std::uint64_t at = fine ? layout.spans_offset + span * heap::span_bytes + fine_marks_offset(span, known) + place
                                      : layout.coarse_marks_offset + span * heap::coarse_marks_per_span + place % 16;
        base[at] = value;
    }
}

class Program {
public:
    Program(Heap& heap, const std::byte* base) : heap_(heap), base_(base) {}

    void run(Input& input)
    {
        for (unsigned steps = 0; input.size > 0 && steps < 400; ++steps) {
            const std::uint8_t what = input.next();
            const std::size_t size = (std::size_t{input.next()} << (what / 4 % 8)) + input.next() % 16;
            switch (what % 4) {
            case 0: allocated(heap_.allocate(size), size, steps); break;
            case 1: allocated(heap_.allocate_aligned(std::size_t{1} << (what / 32 + 3), size), size, steps); break;
            case 2: reallocate(size, steps); break;
            default: free_one(size);
            }
        }
        while (!live_.empty()) {
            free_one(0);
        }
    }

private:
    void allocated(void* block, std::size_t size, unsigned step)
    {
        if (block == nullptr) {
            demand(!Heap::last_failure().text().empty());
            return;
        }
        auto* const begin = static_cast<std::byte*>(block);
        demand(begin >= base_ + heap_offset && begin + size <= base_ + image_bytes_max);
        demand(heap_.usable_size(block) >= size);
        const auto next = live_.lower_bound(begin);
        demand(next == live_.end() || begin + std::max<std::size_t>(size, 1) <= next->first);
        demand(next == live_.begin() || std::prev(next)->first + std::prev(next)->second.size <= begin);
        const auto fill = std::byte(step + 1);
        std::memset(begin, static_cast<int>(fill), size);
        live_[begin] = {size, fill};
    }
    void demand_kept(std::map<std::byte*, Live>::iterator one) const
    {
        for (std::size_t at = 0; at < one->second.size; at += 61) {
            demand(one->first[at] == one->second.fill);
        }
    }
    std::map<std::byte*, Live>::iterator choose(std::size_t number)
    {
        return std::next(live_.begin(), static_cast<std::ptrdiff_t>(number % live_.size()));
    }
    void reallocate(std::size_t size, unsigned step)
    {
        if (live_.empty()) {
            return;
        }
        const auto one = choose(size);
        demand_kept(one);
        void* const moved = heap_.reallocate(one->first, size);
        if (moved != nullptr) {
            live_.erase(one);
            allocated(moved, size, step);
        }
    }
    void free_one(std::size_t number)
    {
        if (live_.empty()) {
            return;
        }
        const auto one = choose(number);
        demand_kept(one);
        heap_.deallocate(one->first);
        live_.erase(one);
    }

    Heap& heap_;
    const std::byte* base_;
    std::map<std::byte*, Live> live_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    std::byte* const base = new_image();
    Input input{data, size};
    fill_tables(base, input);
    Heap::Options options{.image_base = base,
                          .heap_offset = heap_offset,
                          .image_bytes = image_bytes,
                          .image_bytes_max = image_bytes_max,
                          .grow = [](void* self, std::uint64_t wanted) -> Result<std::uint64_t> {
                              static_cast<Heap::Options*>(self)->image_bytes = wanted;
                              return wanted;
                          },
                          .grow_context = nullptr};
    options.grow_context = &options;
    const auto checked = Heap::check(options);
    auto heap = Heap::attach(options);
    if (!heap) {
        demand(!checked && !heap.error().text().empty());
        return 0;
    }
    const std::uint64_t live_before = checked ? (*heap)->statistics().live_blocks : 0;
    Program(**heap, base).run(input);
    if (checked) {
        demand((*heap)->statistics().live_blocks == live_before);
    }
    (*heap)->flush_thread_cache();
    (*heap)->detach();
    demand(!checked || Heap::check(options).has_value());
    return 0;
}
