// The fast paths and their slow continuations.

#include "heap/heap.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "core/canary.hpp"  // Names the file for builds with the canaries' switches.
#include "heap/thread_cache.hpp"
#include "os/log.hpp"

namespace stillpoint {

using namespace heap;

namespace {

/// Unknown spans that one refill looks at before it prefers a free span.
constexpr std::uint32_t scan_budget_of_refill = 4;

constexpr std::uint32_t no_block = UINT32_MAX;

/// Which block of its span begins at `inside` the span; no_block: none.
[[gnu::always_inline]] inline std::uint32_t block_index(const SizeClass& c, std::uint32_t inside) noexcept
{
    // An offset before block 0 wraps to a large number, which gives a large index.
    const std::uint32_t from_first = inside - c.first_block;
    const auto index = static_cast<std::uint32_t>((std::uint64_t{from_first / 16} * c.reciprocal) >> reciprocal_shift);
    return index < c.blocks && index * c.block_bytes == from_first ? index : no_block;
}

/// A live block, found from its address.
struct LocatedBlock {
    std::uint64_t span;
    SpanInfo info;
    std::uint8_t* mark;      ///< nullptr for large runs
    std::size_t usable_bytes;  ///< 0: no live block begins at the address
};

LocatedBlock locate(const HeapState& state, const void* address) noexcept
{
    LocatedBlock found{};
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(state.spans_base);
    found.span = offset >> span_shift;
    if (found.span >= state.spans_max) {
        return found;
    }
    found.info = span_info(state, found.span);
    const auto inside = static_cast<std::uint32_t>(offset % span_bytes);
    if (found.info.is_large()) {
        found.usable_bytes = inside == 0 ? found.info.value() * span_bytes : 0;
    } else if (found.info.is_small()) {
        const SizeClass& c = state.class_by_tag[found.info.size_class()];
        const std::uint32_t index = block_index(c, inside);
        if (index != no_block) {
            found.mark = found.info.marks() + index;
            found.usable_bytes = load_mark(state, found.mark) == 1 ? c.block_bytes : 0;
        }
    }
    return found;
}

[[noreturn, gnu::cold, gnu::noinline]] void die_of_bad_pointer(const HeapState& state, const void* address, const char* call) noexcept
{
    const LocatedBlock found = locate(state, address);
    const char* reason = "it is not an address of durable memory that the heap gave out";
    if (found.span < state.span_count.load(std::memory_order_relaxed)) {
        if (found.mark != nullptr) {
            reason = "the block is free: it was freed twice, or never allocated";
        } else if (found.info.word == 0) {
            reason = "nothing is allocated at that address: it was freed before, or points into the middle of a large block";
        } else {
            reason = "it points into the middle of a block, not to its beginning";
        }
    }
    os::log(os::Severity::error, "{}({}): {}; the program ends here, so that this does not become durable", call, address, reason);
    std::abort();
}

[[gnu::noinline]] CacheBin* refilled_bin(HeapState& state, std::uint32_t size_class) noexcept
{
    ThreadCache* cache = own_cache(state);
    if (cache == nullptr) {
        return nullptr;
    }
    CacheBin& bin = cache->bins[size_class];
    if (!make_room_in_bin(state, bin, size_class)) {
        failure_slot() = fail(SP_E_NO_MEMORY, errno, "no memory for a thread's list of free blocks").value();
        return nullptr;
    }
    settle_delayed_frees(*cache);
    if (bin.count != 0) {  // A dead thread's cache may come with contents.
        return &bin;
    }
    RoomSearch search{.spans = 1, .count_seen = 0};
    do {
        search.count_seen = state.span_count.load(std::memory_order_acquire);
        bin.count = central_take(state, cache->home, size_class, bin.blocks, transfer_batch(state.class_by_tag[size_class]),
                                 scan_budget_of_refill);
    } while (bin.count == 0 && make_room(state, search));
    return bin.count != 0 ? &bin : nullptr;
}

inline void* pop(const HeapState& state, CacheBin& bin) noexcept
{
    const CachedBlock taken = bin.blocks[--bin.count];
    set_mark(state, taken.mark);
    if (state.tables_are_logged && bin.count != 0) [[unlikely]] {
        // A freed block waited for its epoch, and is cold; so is its mark.
        const CachedBlock& next = bin.blocks[bin.count - 1];
        __builtin_prefetch(next.block, 1);
        __builtin_prefetch(&LoggedMark(next.mark).word(), 1);
    }
    return taken.block;
}

[[gnu::noinline]] void* allocate_refilling(HeapState& state, std::uint32_t size_class) noexcept
{
    CacheBin* bin = refilled_bin(state, size_class);
    return bin != nullptr ? pop(state, *bin) : nullptr;
}

inline void* allocate_small(HeapState& state, std::uint32_t size_class) noexcept
{
    if (ThreadCache* cache = thread_cache(state); cache != nullptr) [[likely]] {
        CacheBin& bin = cache->bins[size_class];
        if (bin.count != 0) [[likely]] {
            return pop(state, bin);
        }
    }
    return allocate_refilling(state, size_class);
}

[[gnu::noinline]] void* allocate_large(HeapState& state, std::size_t size_bytes, std::uint16_t layout = 0) noexcept
{
    if (size_bytes > state.options.image_bytes_max) {
        failure_slot() = fail(SP_E_POOL_FULL, 0, "{} bytes were asked for, but durable memory never grows beyond {}", size_bytes,
                              state.options.image_bytes_max)
                             .value();
        return nullptr;
    }
    const std::uint64_t spans = (size_bytes + span_bytes - 1) / span_bytes;
    RoomSearch search{.spans = spans, .count_seen = 0};
    do {
        search.count_seen = state.span_count.load(std::memory_order_acquire);
        if (std::byte* run = take_large_run(state, spans, layout); run != nullptr) {
            return run;
        }
    } while (make_room(state, search));
    return nullptr;
}

/// Puts a block whose mark is cleared into the cache.
[[gnu::noinline]] void cache_slowly(HeapState& state, std::uint32_t size_class, CachedBlock block) noexcept
{
    ThreadCache* cache = own_cache(state);
    if (cache == nullptr) {
        central_give(state, size_class, &block, 1);
        return;
    }
    CacheBin& bin = cache->bins[size_class];
    if (!make_room_in_bin(state, bin, size_class)) {
        central_give(state, size_class, &block, 1);
        return;
    }
    if (bin.count == bin.capacity) {
        // The oldest half goes: what was freed last is warm.
        const std::uint32_t batch = transfer_batch(state.class_by_tag[size_class]);
        central_give(state, size_class, bin.blocks, batch);
        bin.count -= batch;
        std::memmove(bin.blocks, bin.blocks + batch, bin.count * sizeof(CachedBlock));
    }
    bin.blocks[bin.count++] = block;
}

void put_into_cache(HeapState& state, std::uint32_t tag, const CachedBlock& freed) noexcept
{
    if (ThreadCache* cache = thread_cache(state); cache != nullptr) [[likely]] {
        CacheBin& bin = cache->bins[tag];
        if (bin.count != bin.capacity) [[likely]] {
            bin.blocks[bin.count++] = freed;
            return;
        }
    }
    cache_slowly(state, tag, freed);
}

/// Clears a logged mark. Older states may still have the block.
void clear_logged_mark(HeapState& state, void* block, std::uint32_t tag, std::uint8_t* mark) noexcept
{
    const LoggedMark logged_mark(mark);
    logged::Word& word = logged_mark.word();
    if ((logged::load(word) & logged_mark.bit()) == 0) [[unlikely]] {
        die_of_bad_pointer(state, block, "free");
    }
    logged::clear_bits(word, logged_mark.bit());
    const CachedBlock freed{static_cast<std::byte*>(block), mark};
    const bool is_new_in_epoch = (logged::at_epoch_start(word) & logged_mark.bit()) == 0;
    if (is_new_in_epoch) {
        put_into_cache(state, tag, freed);
    } else if (ThreadCache* const cache = own_cache(state); cache == nullptr || !delay_free(*cache, freed, tag)) {
        os::log(os::Severity::warning, "no memory to record a freed block: it stays unused until the next start");
    }
}

[[gnu::noinline]] void deallocate_logged(HeapState& state, void* block, std::uint32_t tag, std::uint8_t* mark) noexcept
{
    ThreadCache* const cache = thread_cache(state);
    if (!frees_may_wait || cache == nullptr) {
        clear_logged_mark(state, block, tag, mark);
        return;
    }
    __builtin_prefetch(&LoggedMark(mark).word(), 1);
    WaitingFree& place = cache->waiting[cache->next_waiting++ % waiting_frees_max];
    const WaitingFree oldest = place;
    place = {{static_cast<std::byte*>(block), mark}, tag};
    if (oldest.block.block != nullptr) {
        clear_logged_mark(state, oldest.block.block, oldest.tag, oldest.block.mark);
    } else {
        heaps_with_waiting_frees |= std::uint32_t{1} << state.number;
    }
}

void finish_frees_of(ThreadCache& cache) noexcept
{
    for (WaitingFree& place : cache.waiting) {
        if (place.block.block != nullptr) {
            const WaitingFree free = place;
            place = {};
            clear_logged_mark(*cache.heap, free.block.block, free.tag, free.block.mark);
        }
    }
}

/// Large runs, spans not examined since attach(), nullptr and bad pointers.
[[gnu::noinline]] void deallocate_rest(HeapState& state, void* block) noexcept
{
    if (block == nullptr) {
        return;
    }
    const LocatedBlock found = locate(state, block);
    if (found.usable_bytes == 0) {
        die_of_bad_pointer(state, block, "free");
    }
    if (found.info.is_large()) {
        return_large_run(state, found.span, found.info.value());
        return;
    }
    if (found.info.is_unknown()) {
        const ThreadCache* const cache = own_cache(state);
        make_known(state, cache != nullptr ? cache->home : 0, static_cast<std::uint32_t>(found.span));
    }
    state.deallocate(block);
}

void tell(Heap::AboutToDie about_to_die, const void* block, std::size_t kept_bytes, std::size_t usable_bytes) noexcept
{
    if (about_to_die != nullptr && kept_bytes < usable_bytes) {
        about_to_die(static_cast<const std::byte*>(block) + kept_bytes, usable_bytes - kept_bytes);
    }
}

void* move_block(HeapState& state, void* block, std::uint64_t span, std::size_t old_bytes, std::size_t new_bytes,
                 Heap::AboutToDie about_to_die) noexcept
{
    const std::uint16_t layout = load_span_word(state, span).layout();
    void* moved = layout == 0 ? state.allocate(new_bytes) : state.allocate_typed(layout, cache_line_bytes, new_bytes);
    if (moved != nullptr) {
        announce_store(moved, std::min(old_bytes, new_bytes));
        std::memcpy(moved, block, std::min(old_bytes, new_bytes));
        note_program_store(moved, std::min(old_bytes, new_bytes));
        tell(about_to_die, block, 0, old_bytes);
        state.deallocate(block);
    }
    return moved;
}

}  // namespace

void* Heap::allocate(std::size_t size_bytes) noexcept
{
    HeapState& state = state_of(*this);
    if (size_bytes <= small_bytes_max) [[likely]] {
        return allocate_small(state, class_for(size_bytes));
    }
    return allocate_large(state, size_bytes);
}

void* Heap::allocate_zeroed(std::size_t size_bytes) noexcept
{
    void* block = allocate(size_bytes);
    if (block == nullptr) {
        return nullptr;
    }
    clear_block(block, size_bytes);
    return block;
}

void Heap::clear_block(void* block, std::size_t size_bytes) noexcept
{
    if (size_bytes < page_bytes) {
        announce_store(block, size_bytes);
        std::memset(block, 0, size_bytes);
        note_program_store(block, size_bytes);
    } else {
        // Memory that was never used is zero; reading it costs less than making its pages durable.
        clear_stale(state_of(*this), static_cast<std::byte*>(block), size_bytes);
    }
}

std::uint16_t Heap::tag_of_typed(std::uint16_t layout, std::size_t alignment, std::size_t size_bytes) noexcept
{
    if (size_bytes > small_bytes_max) {
        return 0;
    }
    std::uint32_t size_class = class_for(size_bytes);
    while (class_alignment(size_class) < alignment) {
        ++size_class;  // Ends at a power of two: the largest class is one.
    }
    const auto tag = tag_for(state_of(*this), layout, size_class);
    if (!tag) {
        failure_slot() = tag.error();
        return 0;
    }
    return static_cast<std::uint16_t>(*tag);
}

void* Heap::allocate_tagged(std::uint16_t tag) noexcept { return allocate_small(state_of(*this), tag); }

void* Heap::allocate_typed(std::uint16_t layout, std::size_t alignment, std::size_t size_bytes) noexcept
{
    if (size_bytes > small_bytes_max) {
        return allocate_large(state_of(*this), size_bytes, layout);
    }
    const std::uint16_t tag = tag_of_typed(layout, alignment, size_bytes);
    return tag != 0 ? allocate_small(state_of(*this), tag) : nullptr;
}

void* Heap::allocate_aligned(std::size_t alignment, std::size_t size_bytes) noexcept
{
    if (!std::has_single_bit(alignment) || alignment > span_bytes) {
        failure_slot() = fail(SP_E_INVALID_ARGUMENT, 0, "alignment {} is not a power of two up to {}", alignment, span_bytes).value();
        return nullptr;
    }
    const std::size_t least = std::max(alignment, size_bytes);
    if (alignment <= block_alignment || least > small_bytes_max) {
        return allocate(alignment <= block_alignment ? size_bytes : least);
    }
    std::uint32_t size_class = class_for(least);
    while (class_alignment(size_class) < alignment) {
        ++size_class;  // Ends at a power of two: the largest class is one.
    }
    return allocate_small(state_of(*this), size_class);
}

void Heap::deallocate(void* block) noexcept
{
    HeapState& state = state_of(*this);
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(state.spans_base);
    const std::uint64_t span = offset >> span_shift;
    if (span >= state.spans_max) [[unlikely]] {
        return deallocate_rest(state, block);
    }
    const SpanInfo info = span_info(state, span);
    const SizeClass& c = state.class_by_tag[info.tag()];
    const std::uint32_t index = block_index(c, static_cast<std::uint32_t>(offset % span_bytes));
    if (index == no_block) [[unlikely]] {
        return deallocate_rest(state, block);
    }
    std::uint8_t* mark = info.marks() + index;
    if (state.tables_are_logged) [[unlikely]] {
        return deallocate_logged(state, block, info.tag(), mark);
    }
    if (load_plain_mark(mark) != 1) [[unlikely]] {
        die_of_bad_pointer(state, block, "free");
    }
    store_plain_mark(mark, 0);
    const CachedBlock freed{static_cast<std::byte*>(block), mark};
    if (ThreadCache* cache = thread_cache(state); cache != nullptr) [[likely]] {
        CacheBin& bin = cache->bins[info.tag()];
        if (bin.count != bin.capacity) [[likely]] {
            bin.blocks[bin.count++] = freed;
            return;
        }
    }
    cache_slowly(state, info.tag(), freed);
}

void* Heap::reallocate(void* block, std::size_t size_bytes, AboutToDie about_to_die) noexcept
{
    if (block == nullptr) {
        return allocate(size_bytes);
    }
    HeapState& state = state_of(*this);
    const LocatedBlock found = locate(state, block);
    if (found.usable_bytes == 0) {
        die_of_bad_pointer(state, block, "realloc");
    }
    if (found.info.is_large() && size_bytes > small_bytes_max && size_bytes <= state.options.image_bytes_max) {
        const std::uint64_t from = found.info.value();
        const std::uint64_t to = (size_bytes + span_bytes - 1) / span_bytes;
        tell(about_to_die, block, size_bytes, found.usable_bytes);
        if (to == from || resize_large_run(state, found.span, from, to)) {
            return block;
        }
    } else if (size_bytes <= found.usable_bytes && size_bytes > found.usable_bytes / 2) {
        tell(about_to_die, block, size_bytes, found.usable_bytes);
        return block;
    } else if (size_bytes <= found.usable_bytes && found.usable_bytes <= cache_line_bytes) {
        tell(about_to_die, block, size_bytes, found.usable_bytes);
        return block;  // Nothing worth a move.
    }
    void* moved = move_block(state, block, found.span, found.usable_bytes, size_bytes, about_to_die);
    if (moved != nullptr || size_bytes > found.usable_bytes) {
        return moved;
    }
    // A block that could not be made smaller is still large enough.
    tell(about_to_die, block, size_bytes, found.usable_bytes);
    return block;
}

std::size_t Heap::usable_size(const void* block) const noexcept
{
    if (block == nullptr) {
        return 0;
    }
    const LocatedBlock found = locate(state_of(*this), block);
    if (found.usable_bytes == 0) {
        die_of_bad_pointer(state_of(*this), block, "usable_size");
    }
    return found.usable_bytes;
}

Heap::BlockState Heap::state_of_block(const void* block) const noexcept
{
    const HeapState& state = state_of(*this);
    const LocatedBlock found = locate(state, block);
    if (found.usable_bytes == 0) {
        return {nullptr, 0};
    }
    if (found.mark != nullptr) {
        return {reinterpret_cast<const std::byte*>(found.mark), 1};
    }
    return {reinterpret_cast<const std::byte*>(&state.span_table[found.span]), sizeof state.span_table[found.span]};
}

Heap::Block Heap::find_block(const void* address) const noexcept
{
    const HeapState& state = state_of(*this);
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(state.spans_base);
    std::uint64_t span = offset >> span_shift;
    if (span >= state.span_count.load(std::memory_order_relaxed)) {
        return {nullptr, 0};
    }
    while (span != 0 && span_info(state, span).word == 0) {
        --span;  // Inside a large run, or free.
    }
    const std::byte* begin = span_address(state, span);
    if (const SpanInfo info = span_info(state, span); info.is_small()) {
        const SizeClass& c = state.class_by_tag[info.size_class()];
        const std::uint64_t from_first = offset % span_bytes - c.first_block;
        begin += c.first_block + from_first / c.block_bytes * c.block_bytes;
        if (span != offset >> span_shift || from_first >= span_bytes) {
            return {nullptr, 0};
        }
    }
    const std::size_t usable_bytes = locate(state, begin).usable_bytes;
    const auto inside = static_cast<std::size_t>(static_cast<const std::byte*>(address) - begin);
    return inside < usable_bytes ? Block{begin, usable_bytes} : Block{nullptr, 0};
}

void Heap::let_frees_wait(bool may_wait) noexcept
{
    frees_may_wait = may_wait;
    if (!may_wait) {
        finish_frees();
    }
}

void Heap::finish_frees() noexcept
{
    while (heaps_with_waiting_frees != 0) {
        ThreadCache* const cache = thread_caches[std::countr_zero(heaps_with_waiting_frees)];
        heaps_with_waiting_frees &= heaps_with_waiting_frees - 1;
        if (cache != nullptr) {
            finish_frees_of(*cache);
        }
    }
}

void Heap::flush_thread_cache() noexcept { unregister_thread(state_of(*this)); }

const Failure& Heap::last_failure() noexcept { return failure_slot(); }

}  // namespace stillpoint
