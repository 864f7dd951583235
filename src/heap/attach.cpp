// Attaching to an image, and letting go of it.

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "heap/span_table_view.hpp"
#include "heap/thread_cache.hpp"

namespace stillpoint {

using namespace heap;

namespace {

/// The heaps of the process by number. The first is static; others are mapped when they are first wanted, and never unmapped. The lock is
/// taken alone.
constinit HeapState first_heap{0};
constinit std::array<HeapState*, Heap::heaps_max> heaps = {&first_heap};
constinit os::FutexLock heaps_lock;

bool overlap(const Heap::Options& one, const Heap::Options& other) noexcept
{
    return one.image_base < other.image_base + other.image_bytes_max && other.image_base < one.image_base + one.image_bytes_max;
}

/// An unused state, which is the new heap's from here on.
Result<HeapState*> take_state(const Heap::Options& options) noexcept
{
    const std::lock_guard hold(heaps_lock);
    for (const HeapState* const other : heaps) {
        if (other != nullptr && other->is_attached && overlap(other->options, options)) {
            return fail(SP_E_ALREADY_OPEN, 0, "the image at {} has a heap attached already", static_cast<const void*>(options.image_base));
        }
    }
    const auto place = std::find_if(heaps.begin(), heaps.end(),
                                    [](const HeapState* each) noexcept { return each == nullptr || !each->is_attached; });
    if (place == heaps.end()) {
        return fail(SP_E_NO_MEMORY, 0, "this process has {} heaps attached, the maximum: close a pool before the next is opened",
                    Heap::heaps_max);
    }
    if (*place == nullptr) {
        void* memory = mmap(nullptr, sizeof(HeapState), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return fail(SP_E_NO_MEMORY, errno, "no memory for the {} KiB of another heap's lists", sizeof(HeapState) / kib);
        }
        *place = new (memory) HeapState(static_cast<std::size_t>(place - heaps.begin()));
    }
    (*place)->options = options;
    (*place)->is_attached = true;
    return *place;
}

/// Address space for the DRAM tables of a heap of the maximum size; pages come as they are used.
Result<void> map_dram_tables(HeapState& state) noexcept
{
    const std::uint64_t spans = state.layout.spans_max;
    const std::uint64_t info_bytes = round_up(spans * sizeof(std::uint64_t), page_bytes);
    const std::uint64_t link_bytes = round_up(spans * sizeof(SpanLink), page_bytes);
    const std::uint64_t bits_bytes = round_up(spans * sizeof(FreeBits), page_bytes);
    const std::uint64_t free_bytes = round_up((spans + 63) / 64 * sizeof(std::uint64_t), page_bytes);
    state.dram_bytes = info_bytes + link_bytes + bits_bytes + free_bytes + page_bytes;
    void* memory = mmap(nullptr, state.dram_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(
            SP_E_NO_MEMORY, errno,
            "no address space for the allocator's {} MiB of tables: raise the limit (ulimit -v), or make a pool with a smaller pool_max_mb",
            state.dram_bytes / mib);
    }
    state.dram = memory;
    auto* at = static_cast<std::byte*>(memory);
    state.info = reinterpret_cast<std::atomic<std::uint64_t>*>(at);
    at += info_bytes;
    state.links = reinterpret_cast<SpanLink*>(at);
    at += link_bytes;
    state.free_bits = reinterpret_cast<FreeBits*>(at);
    at += bits_bytes;
    state.free_spans = reinterpret_cast<std::uint64_t*>(at);
    return {};
}

/// Gives up what the heap had. The state itself is kept for the next.
void forget(HeapState& state) noexcept
{
    drop_all_caches(state);
    if (state.dram != nullptr) {
        munmap(state.dram, state.dram_bytes);
    }
    state.dram = nullptr;
    state.spans_base = nullptr;
    state.spans_max = 0;
    state.span_count.store(0, std::memory_order_relaxed);
    std::fill_n(state.class_by_tag.begin() + typed_tag, typed_count_max, SizeClass{});
    state.typed_count.store(0, std::memory_order_relaxed);
    state.delayed_runs = os::ReservedArray<DelayedRun>();
    state.delayed_first = 0;
    state.delayed_end = 0;
    state.known_spans = os::ReservedBitmap();
    state.tables_are_logged = false;
    state.table_run_bytes = 0;
    state.free_memory_is_unknown = false;
    for (auto& home : state.central) {
        for (Central& central : home) {
            central.partial = no_span;
            central.empty_spans = 0;
            central.partial_spans.store(0, std::memory_order_relaxed);
        }
    }
    for (UnknownSpans& unknown : state.unknown) {
        unknown.first = no_span;
    }
    const std::lock_guard hold(heaps_lock);
    state.is_attached = false;
}

Result<void> build(HeapState& state) noexcept
{
    const Heap::Options& options = state.options;
    state.image_bytes = options.image_bytes;
    state.layout = layout_of(options);
    state.tables_are_logged = options.table_format == TableFormat::logged;
    state.free_memory_is_unknown = options.free_memory_is_unknown;
    if (auto mapped = map_dram_tables(state); !mapped) {
        return mapped;
    }
    state.spans_base = options.image_base + state.layout.spans_offset;
    state.spans_max = state.layout.spans_max;
    if (state.tables_are_logged) {
        state.layouts = reinterpret_cast<LayoutTable*>(options.image_base + state.layout.layouts_offset);
        state.span_words = reinterpret_cast<logged::Word*>(options.image_base + state.layout.span_table_offset);
        if (auto reserved = state.delayed_runs.reserve(state.spans_max, "freed runs of memory"); !reserved) {
            return reserved;
        }
        if (auto reserved = state.known_spans.reserve(state.spans_max, "spans that were given out"); !reserved) {
            return reserved;
        }
    } else {
        state.span_table = reinterpret_cast<std::uint32_t*>(options.image_base + state.layout.span_table_offset);
        state.coarse_marks = reinterpret_cast<std::uint8_t*>(options.image_base + state.layout.coarse_marks_offset);
    }
    return load_span_table(state);
}

}  // namespace

Result<Heap*> Heap::attach(const Options& options)
{
    if (options.image_base == nullptr || options.grow == nullptr || options.image_bytes > options.image_bytes_max ||
        reinterpret_cast<std::uintptr_t>(options.image_base) % span_bytes != 0 || options.heap_offset % page_bytes != 0 ||
        options.image_bytes_max > window_bytes) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "a heap at offset {} of an image of {} bytes, at most {}, at {}: not page aligned or too large", options.heap_offset,
                    options.image_bytes, options.image_bytes_max, static_cast<const void*>(options.image_base));
    }
    if (auto room = SpanTableView(options).check_room(); !room) {
        return pass_on(room.error());
    }
    const auto taken = take_state(options);
    if (!taken) {
        return pass_on(taken.error());
    }
    if (auto built = build(**taken); !built) {
        forget(**taken);
        return pass_on(built.error());
    }
    return *taken;
}

void Heap::detach() noexcept { forget(state_of(*this)); }

}  // namespace stillpoint
