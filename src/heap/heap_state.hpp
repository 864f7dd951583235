#pragma once
// The DRAM side of an attached heap. Everything here is rebuilt by attach() from the span table and
// the marks, and is never made durable.
//
// Lock order: registry of thread caches -> growth -> central lists -> unknown spans -> spans. Of the central lists
// two are locked at a time only by adopt_span(), the one with the lower address first. Grow is called under the growth lock only.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/canary.hpp"
#include "core/store_marks.hpp"
#include "heap/heap.hpp"
#include "heap/heap_layout.hpp"
#include "heap/size_classes.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::heap {

inline constexpr std::uint32_t no_span = UINT32_MAX;

/// A free block in a thread cache. Its mark is kept with it so that taking it needs no arithmetic.
/// The block itself is not used for links: a free block must not be dirtied.
struct CachedBlock {
    std::byte* block;
    std::uint8_t* mark;
};

/// The facts that a thread needs to know about a span to free a block of it: one word, read without a lock.
/// Low byte: tag. 0: free, or inside a large run. 1 to class_count, typed_tag and up: small, and the central
/// list knows which of its blocks are free. With unknown_bit: small, not examined since attach().
/// large_tag: first span of a run. Other bits: where the marks are (small) or length in spans (large).
struct SpanInfo {
    static constexpr std::uint64_t unknown_bit = 0x40;
    static constexpr std::uint64_t large_tag = 0xff;
    static constexpr unsigned value_shift = 8;

    std::uint64_t word;

    [[nodiscard]] std::uint32_t tag() const noexcept { return static_cast<std::uint32_t>(word & 0xff); }
    [[nodiscard]] std::uint64_t value() const noexcept { return word >> value_shift; }
    [[nodiscard]] bool is_large() const noexcept { return tag() == large_tag; }
    [[nodiscard]] bool is_small() const noexcept { return tag() != 0 && !is_large(); }
    [[nodiscard]] bool is_unknown() const noexcept { return (tag() & unknown_bit) != 0 && !is_large(); }
    [[nodiscard]] std::uint32_t size_class() const noexcept { return tag() & ~static_cast<std::uint32_t>(unknown_bit); }
    [[nodiscard]] std::uint8_t* marks() const noexcept { return reinterpret_cast<std::uint8_t*>(value()); }
};
static_assert(class_count < SpanInfo::unknown_bit && (typed_tag & SpanInfo::unknown_bit) == 0);
static_assert(((tag_end - 1) | SpanInfo::unknown_bit) < SpanInfo::large_tag && tag_end <= (typed_tag | SpanInfo::unknown_bit));

/// A kind of typed span: blocks of one size class that hold objects of one layout.
struct TypedClass {
    std::uint16_t layout;      ///< number, from 1
    std::uint16_t size_class;  ///< 1 to class_count
};

/// A run of spans that was freed, and that the state of an older epoch still needs.
struct DelayedRun {
    std::uint64_t first;
    std::uint64_t spans;
    std::uint64_t epoch;  ///< in which it was freed
};

/// Central list membership of a small span. Guarded by the lock of its list: its home's, or that of the unknown spans.
struct SpanLink {
    std::uint32_t next;
    std::uint32_t previous;
    std::uint16_t free_blocks;  ///< set bits of the span's free bits
    std::uint16_t first_word;   ///< no free bit lies in a word before this one
    /// The home whose lists the free blocks are on. Changes under the locks of both homes; read without one to find the lock.
    std::atomic<std::uint32_t> home;
};
static_assert(sizeof(SpanLink) == 16);

/// Four spans have their links in one cache line and, of the classes with large blocks, their marks too. Threads with different
/// homes take spans of different groups where they can.
inline constexpr std::uint64_t spans_per_group = cache_line_bytes / coarse_marks_per_span;
static_assert(spans_per_group == cache_line_bytes / sizeof(SpanLink));

using FreeBits = std::uint64_t[blocks_per_span_max / 64];

/// Threads share marks, hence cache lines, if they allocate from one span. So each thread has a home, a set of central lists,
/// and a span belongs to one of them. There are more threads than homes in large programs; they share.
inline constexpr std::uint32_t homes_max = 16;

/// The blocks of one class and home that no thread has: per span a bit set, so that a span whose bits are
/// all set can become a free span again.
struct alignas(64) Central {
    os::FutexLock lock;
    std::uint32_t partial = no_span;  ///< list of known spans with free blocks
    std::uint32_t empty_spans = 0;    ///< of these, how many have free blocks only
    std::atomic<std::uint32_t> partial_spans{0};  ///< length of the list; other homes look at it without the lock
};

/// Spans of one class not examined since attach(): no home has them yet.
struct alignas(64) UnknownSpans {
    os::FutexLock lock;
    std::uint32_t first = no_span;
};

struct ThreadCache;

/// The thread caches of all heaps that had this state, one after the other: a thread keeps its cache when the heap is detached.
struct CacheRegistry {
    os::FutexLock lock;
    ThreadCache* first = nullptr;        ///< every cache that was ever made
    ThreadCache* hand = nullptr;         ///< where the next look for dead threads begins
    std::atomic<std::uint32_t> made{0};  ///< length of the list
};

/// Every Heap is the base of one; after detach() the next heap may have the state. Never destroyed, nor is what it holds: threads go on
/// while the process runs its exit handlers.
struct HeapState : Heap {
    constexpr explicit HeapState(std::size_t its_number) noexcept : number(its_number) {}
    ~HeapState() {}

    // Read by every call; written by attach and detach only, but for the classes of new tags.
    std::byte* spans_base = nullptr;
    std::uint64_t spans_max = 0;
    std::atomic<std::uint64_t>* info = nullptr;  ///< spans_max words
    const std::size_t number;  ///< below heaps_max: where a thread finds its cache
    bool tables_are_logged = false;
    bool free_memory_is_unknown = false;  ///< Heap::Options has it
    /// By tag: entries from typed_tag on are those of `typed`. A tag that is not in use has no blocks, so that one test of a block's
    /// index rejects it.
    alignas(64) std::array<SizeClass, 256> class_by_tag = size_classes;

    std::uint32_t* span_table = nullptr;  ///< in the image, or
    logged::Word* span_words = nullptr;
    LayoutTable* layouts = nullptr;
    std::uint8_t* coarse_marks = nullptr;  ///< in the image
    SpanLink* links = nullptr;
    FreeBits* free_bits = nullptr;
    Heap::Options options{};
    HeapLayout layout{};
    std::uint64_t table_run_bytes = 0;  ///< of the tables, where they lie in spans
    void* dram = nullptr;  ///< the mapping that holds the DRAM tables
    std::size_t dram_bytes = 0;
    bool is_attached = false;  ///< guarded by the lock of the heaps (attach.cpp)

    // Guarded by spans_lock; span_count may be read without it (it only grows).
    alignas(64) mutable os::FutexLock spans_lock;
    std::atomic<std::uint64_t> span_count{0};  ///< present
    std::uint64_t* free_spans = nullptr;  ///< bit set; ones are free
    std::uint64_t first_free_word = 0;  ///< no free span lies in a word before this one
    union {
        os::ReservedArray<DelayedRun> delayed_runs{};  ///< of which [delayed_first, delayed_end) are used, oldest first
    };
    std::uint64_t delayed_first = 0;
    std::uint64_t delayed_end = 0;
    union {
        os::ReservedBitmap known_spans{};  ///< where free memory is unknown: what was given out since, and noted whole
    };

    alignas(64) os::FutexLock types_lock;
    std::atomic<std::uint32_t> typed_count{0};
    TypedClass typed[typed_count_max] = {};  ///< tag typed_tag + i

    alignas(64) os::FutexLock growth_lock;
    std::uint64_t image_bytes = 0;  ///< guarded by growth_lock

    alignas(64) CacheRegistry registry;

    UnknownSpans unknown[tag_end];
    Central central[homes_max][tag_end];
};

[[nodiscard]] inline HeapState& state_of(Heap& heap) noexcept { return static_cast<HeapState&>(heap); }
[[nodiscard]] inline const HeapState& state_of(const Heap& heap) noexcept { return static_cast<const HeapState&>(heap); }

[[nodiscard]] inline SpanInfo span_info(const HeapState& state, std::uint64_t span) noexcept
{
    // Acquire: pairs with the release that made an unknown span known, whose scan must not see
    // the mark that the caller clears next.
    return {state.info[span].load(std::memory_order_acquire)};
}

[[nodiscard]] inline std::byte* span_address(const HeapState& state, std::uint64_t span) noexcept
{
    return state.spans_base + (span << span_shift);
}

/// Called before a store to a durable table of the heap, for engines that keep the old bytes. Logged words keep theirs themselves.
[[gnu::always_inline]] inline void announce_table_store(const void* address, std::size_t size) noexcept { announce_store(address, size); }
/// After a store to a durable table of the heap: trackers that see no store by themselves.
[[gnu::always_inline]] inline void note_table_store(const void* address, std::size_t size) noexcept
{
    if (!is_removed(Canary::heap_store_marks)) {
        note_store(address, size);
    }
}

/// Likewise, where nothing but the state of one block has changed.
[[gnu::always_inline]] inline void note_state_store(const void* address, std::size_t size) noexcept
{
    if (!is_removed(Canary::heap_store_marks)) {
        note_block_state(address, size);
    }
}

/// Where logged marks lie: 64 blocks have theirs in one word of 32 bytes. Such a mark's "address" is twice its word's, plus the
/// number of its bit, so that marks of neighbouring blocks are neighbours here too.
struct LoggedMark {
    explicit LoggedMark(const std::uint8_t* mark) noexcept : position(reinterpret_cast<std::uintptr_t>(mark)) {}
    [[nodiscard]] static std::uint8_t* first_in(const void* words) noexcept
    {
        return reinterpret_cast<std::uint8_t*>(2 * reinterpret_cast<std::uintptr_t>(words));
    }
    [[nodiscard]] logged::Word& word() const noexcept { return *reinterpret_cast<logged::Word*>(position / 64 * sizeof(logged::Word)); }
    [[nodiscard]] std::uint64_t bit() const noexcept { return std::uint64_t{1} << (position % 64); }

    std::uintptr_t position;
};
static_assert(sizeof(logged::Word) == 32);

constexpr std::size_t logged_marks_bytes(std::uint32_t blocks) noexcept { return (blocks + 63) / 64 * sizeof(logged::Word); }

/// Marks are read by statistics() while others store them, hence atomic; never ordered.
[[nodiscard]] inline std::uint8_t load_plain_mark(std::uint8_t* mark) noexcept
{
    return std::atomic_ref<std::uint8_t>(*mark).load(std::memory_order_relaxed);
}
[[nodiscard]] inline std::uint8_t load_mark(const HeapState& state, std::uint8_t* mark) noexcept
{
    if (state.tables_are_logged) [[unlikely]] {
        const LoggedMark logged_mark(mark);
        return (logged::load(logged_mark.word()) & logged_mark.bit()) != 0;
    }
    return load_plain_mark(mark);
}
[[gnu::always_inline]] inline void store_plain_mark(std::uint8_t* mark, std::uint8_t value) noexcept
{
    announce_table_store(mark, sizeof *mark);
    std::atomic_ref<std::uint8_t>(*mark).store(value, std::memory_order_relaxed);
    note_state_store(mark, sizeof *mark);
}
/// Marks a block that is taken.
[[gnu::always_inline]] inline void set_mark(const HeapState& state, std::uint8_t* mark) noexcept
{
    if (state.tables_are_logged) [[unlikely]] {
        const LoggedMark logged_mark(mark);
        logged::set_bits(logged_mark.word(), logged_mark.bit());
        return;
    }
    store_plain_mark(mark, 1);
}

/// The entry of a span in the span table.
[[nodiscard]] inline SpanWord load_span_word(const HeapState& state, std::uint64_t span) noexcept
{
    return state.tables_are_logged ? SpanWord{logged::load(state.span_words[span])} : SpanWord{state.span_table[span]};
}

/// Where the marks of a small span begin, in bytes from its own start (fine marks). Spreads spans
/// over the cache sets of the head; a function of the span, so that nothing need be stored.
[[nodiscard]] constexpr std::uint32_t fine_marks_offset(std::uint64_t span, const SizeClass& c) noexcept
{
    const std::uint32_t lines = (c.blocks + 63) / 64;
    const std::uint32_t choices = c.first_block / 64 - lines + 1;
    return static_cast<std::uint32_t>(span % choices) * 64;
}

/// Makes [address, +size) zero without dirtying pages that are zero already.
void clear_stale(const HeapState& state, std::byte* address, std::size_t size_bytes) noexcept;

// ---- span_table.cpp: the owner of each span ------------------------------------------------------

/// Reads and validates the table; makes spans known to the DRAM side. Errors: pool_corrupt.
[[nodiscard]] Result<void> load_span_table(HeapState& state) noexcept;
/// A free span, cut into blocks of the class, all marks 0; no_span if there is none. The caller holds the lock of
/// that home's list.
[[nodiscard]] std::uint32_t take_small_span(HeapState& state, std::uint32_t size_class, std::uint32_t home) noexcept;
/// The caller holds the lock of the span's list; every block of the span is free and in no thread cache.
void return_small_span(HeapState& state, std::uint32_t span) noexcept;
/// `layout`: of a typed run, otherwise 0.
[[nodiscard]] std::byte* take_large_run(HeapState& state, std::uint64_t spans, std::uint16_t layout = 0) noexcept;
void return_large_run(HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept;
/// Changes the length of a run in place. False: the spans after it are not free.
[[nodiscard]] bool resize_large_run(HeapState& state, std::uint64_t first, std::uint64_t from, std::uint64_t to) noexcept;
/// The image has grown: more free spans.
void add_spans(HeapState& state, std::uint64_t new_span_count) noexcept;
/// Free spans at the end of the heap.
[[nodiscard]] std::uint64_t free_spans_at_end(const HeapState& state) noexcept;

// ---- central.cpp -----------------------------------------------------------------------------

/// Moves up to `wanted` free blocks into `out`; returns how many: 0 means that there is none
/// without growing. Later blocks come first, so that a stack hands them out in ascending order.
/// `scan_budget`: how many unknown spans may be examined before a free span is taken instead.
[[nodiscard]] std::uint32_t central_take(HeapState& state, std::uint32_t home, std::uint32_t size_class, CachedBlock* out,
                                         std::uint32_t wanted, std::uint32_t scan_budget) noexcept;
/// Each block goes to the home of its span. Changes the order of `blocks`.
void central_give(HeapState& state, std::uint32_t size_class, CachedBlock* blocks, std::uint32_t count) noexcept;
/// Looks at a span that has not been examined since attach(); it becomes that home's.
void make_known(HeapState& state, std::uint32_t home, std::uint32_t span) noexcept;
/// Turns small spans without a live block into free spans: the ones that lists keep back, and unknown ones, for which up to about
/// `scan_budget` pages are loaded per class; what is examined becomes that home's.
void release_empty_spans(HeapState& state, std::uint32_t home, std::uint32_t scan_budget) noexcept;
/// Puts an unknown span on its class's list, during attach.
void list_unknown(HeapState& state, std::uint32_t span, std::uint32_t size_class) noexcept;

// ---- typed.cpp -------------------------------------------------------------------------------

/// The tag of typed spans of that layout and size class; new where there is none. Errors: no_space (63 others are there).
[[nodiscard]] Result<std::uint32_t> tag_for(HeapState& state, std::uint16_t layout, std::uint32_t size_class) noexcept;

// ---- growth.cpp ------------------------------------------------------------------------------

/// One caller's search for room: what has been tried.
struct RoomSearch {
    std::uint64_t spans;  ///< length of the run that is wanted
    std::uint64_t count_seen;  ///< HeapState::span_count before the last look
    bool reclaimed = false;  ///< idle memory that is cheap to find has been given back
    bool exhausted = false;  ///< all idle memory has been
};

/// Makes room: gives back what idle memory there is, or grows the image. True: look again. False:
/// nothing more can be done; the reason is in last_failure(). No lock of the heap is held.
[[nodiscard]] bool make_room(HeapState& state, RoomSearch& search) noexcept;

}  // namespace stillpoint::heap
