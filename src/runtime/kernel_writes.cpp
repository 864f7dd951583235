#include "runtime/kernel_writes.hpp"

#include <algorithm>
#include <csignal>

#include "core/units.hpp"
#include "os/reserved_array.hpp"
#include "os/thread_calls.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::kernel_writes {

namespace {

constexpr std::uintptr_t window_begin = SP_WINDOW_INDEX << SP_WINDOW_SHIFT;
constexpr std::uint64_t window_pages = (std::uint64_t{1} << SP_WINDOW_SHIFT) / page_bytes;

// -- Ranges in flight ---------------------------------------------------------------------------

/// A range in one word, so that no reader sees half of it: first page of the window, number of pages. 0: the slot is free.
constexpr unsigned count_bits = 32;
static_assert(window_pages <= std::uint64_t{1} << (count_bits - 1));

constexpr Slot slots_max = 1024;
/// Threads begin their search for a slot so far from each other: their slots lie in different cache lines.
constexpr Slot slots_of_a_line = 8;

struct Slots {
    sync::Atomic<std::uint64_t> range[slots_max];
    sync::Atomic<std::uintptr_t> owner[slots_max];  ///< 0, or which thread
    sync::Atomic<std::uintptr_t> frame[slots_max];
    sync::Atomic<Slot> used;       ///< slots from here on were never used
    sync::Atomic<Slot> next_hint;
    sync::Atomic<std::uint32_t> without_slot;  ///< ranges for which all slots were taken: everything may be in flight
    sync::Atomic<std::uint32_t> protecting;
};
constinit Slots slots{};

/// The calling thread's announcements. initial-exec: a signal handler must not allocate.
struct ThreadAnnouncements {
    std::uint32_t held;  ///< slots announced and not withdrawn
    Slot hint;           ///< 1 + where to begin
};
constinit thread_local ThreadAnnouncements mine [[gnu::tls_model("initial-exec")]] = {0, 0};

[[nodiscard]] std::uintptr_t self() noexcept { return reinterpret_cast<std::uintptr_t>(&mine); }

[[nodiscard]] std::uint64_t word_of(const void* address, std::size_t size) noexcept
{
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - window_begin;
    const std::uint64_t first = offset / page_bytes;
    const std::uint64_t last = (offset + std::min<std::uint64_t>(size - 1, window_pages * page_bytes - 1 - offset)) / page_bytes;
    return (first << count_bits) | (last - first + 1);
}

[[nodiscard]] PageRun run_of(std::uint64_t word) noexcept
{
    const std::uintptr_t begin = window_begin + (word >> count_bits) * page_bytes;
    return {begin, begin + (word & ((std::uint64_t{1} << count_bits) - 1)) * page_bytes};
}

[[nodiscard]] Slot search_begins_at() noexcept
{
    if (mine.hint == 0) {
        mine.hint = 1 + slots.next_hint.fetch_add(slots_of_a_line, std::memory_order_relaxed) % slots_max;
    }
    return mine.hint - 1;
}

[[nodiscard]] bool take_slot(Slot slot, std::uint64_t word) noexcept
{
    if (slots.range[slot].load(std::memory_order_relaxed) != 0) {
        return false;
    }
    for (Slot used = slots.used.load(std::memory_order_relaxed);
         used <= slot && !slots.used.compare_exchange_weak(used, slot + 1, std::memory_order_seq_cst);) {
    }
    std::uint64_t none = 0;
    return slots.range[slot].compare_exchange_strong(none, word, std::memory_order_seq_cst);
}

void free_slot(Slot slot) noexcept
{
    slots.owner[slot].store(0, std::memory_order_relaxed);
    slots.range[slot].store(0, std::memory_order_release);
    --mine.held;
}

/// A stack grows downwards: of this thread, what lies below `frame` was left without returning, and so was what lay at the same place. What
/// lies only a little below may be another buffer of the same call.
[[nodiscard]] bool was_left(std::uintptr_t other, std::uintptr_t frame) noexcept
{
    constexpr std::uintptr_t of_one_call_bytes = 1024;
    return other == frame || (other < frame && frame - other > of_one_call_bytes);
}

void free_slots_left(std::uintptr_t frame, Stored stored) noexcept
{
    const Slot used = slots.used.load(std::memory_order_relaxed);
    for (Slot slot = 0; slot < used; ++slot) {
        if (slots.owner[slot].load(std::memory_order_relaxed) == self() &&
            was_left(slots.frame[slot].load(std::memory_order_relaxed), frame)) {
            const PageRun run = run_of(slots.range[slot].load(std::memory_order_relaxed));
            stored(reinterpret_cast<void*>(run.begin), run.end - run.begin);
            free_slot(slot);
        }
    }
}

/// In a handler on a stack of its own addresses say nothing about which frame is older.
[[nodiscard]] bool on_signal_stack() noexcept
{
    stack_t stack{};
    return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

void wait_until_nobody_protects() noexcept
{
    while (slots.protecting.load(std::memory_order_seq_cst) != 0) {
        os::yield_until_zero(slots.protecting);
    }
}

// -- Stored pages -------------------------------------------------------------------------------

using Word = std::uint64_t;
constexpr std::uint64_t word_bits = 64;

/// Two levels: a bit of `above` says that a word of `pages` may have bits. Never unmapped: threads may outlive every session.
struct StoredPages {
    Word pages[window_pages / word_bits];
    Word above[window_pages / word_bits / word_bits];
};
constinit StoredPages* stored_pages = nullptr;

[[nodiscard]] sync::AtomicRef<Word> shared(Word& word) noexcept { return sync::AtomicRef<Word>(word); }

[[nodiscard]] Word bits_between(std::uint64_t first, std::uint64_t end) noexcept
{
    const Word from = ~Word{0} << first;
    return end == word_bits ? from : from & ((Word{1} << end) - 1);
}

}  // namespace

Result<void> reserve()
{
    static auto& memory = *new os::ReservedArray<StoredPages>;
    if (stored_pages == nullptr) {
        if (auto done = memory.reserve(1, "the set of pages that system calls store into"); !done) {
            return done;
        }
        stored_pages = memory.data();
    }
    return {};
}

namespace {

[[nodiscard]] Slot take_any_slot(std::uint64_t word, std::uintptr_t owner, std::uintptr_t frame) noexcept
{
    const Slot begin = search_begins_at();
    for (Slot i = 0; i < slots_max; ++i) {
        const Slot slot = (begin + i) % slots_max;
        if (take_slot(slot, word)) {
            slots.frame[slot].store(frame, std::memory_order_relaxed);
            slots.owner[slot].store(owner, std::memory_order_relaxed);
            return slot;
        }
    }
    slots.without_slot.fetch_add(1, std::memory_order_seq_cst);
    return no_slot;
}

}  // namespace

void begin_call(const void* frame, Stored stored) noexcept
{
    if (mine.held != 0 && !on_signal_stack()) {
        free_slots_left(reinterpret_cast<std::uintptr_t>(frame), stored);
    }
}

Slot announce(const void* address, std::size_t size, const void* frame) noexcept
{
    const Slot taken = take_any_slot(word_of(address, size), self(), reinterpret_cast<std::uintptr_t>(frame));
    mine.held += taken != no_slot ? 1U : 0U;
    wait_until_nobody_protects();
    return taken;
}

/// One for which there is no slot stays in flight forever, whatever becomes of it.
void announce_request(const void* address, std::size_t size, const void* request, Stored stored) noexcept
{
    end_request(request, stored);
    static_cast<void>(take_any_slot(word_of(address, size), reinterpret_cast<std::uintptr_t>(request), 0));
    wait_until_nobody_protects();
}

void end_request(const void* request, Stored stored) noexcept
{
    const Slot used = slots.used.load(std::memory_order_relaxed);
    for (Slot slot = 0; slot < used; ++slot) {
        if (slots.owner[slot].load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(request)) {
            const PageRun run = run_of(slots.range[slot].load(std::memory_order_relaxed));
            stored(reinterpret_cast<void*>(run.begin), run.end - run.begin);
            slots.owner[slot].store(0, std::memory_order_relaxed);
            slots.range[slot].store(0, std::memory_order_release);
        }
    }
}

void withdraw(Slot slot, const void* frame) noexcept
{
    if (slot == no_slot) {
        slots.without_slot.fetch_sub(1, std::memory_order_release);
    } else if (slots.owner[slot].load(std::memory_order_relaxed) == self() &&
               slots.frame[slot].load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(frame)) {
        free_slot(slot);
    }
}

void outlive_thread(Slot slot) noexcept
{
    slots.owner[slot].store(0, std::memory_order_relaxed);
    --mine.held;
}

void withdraw_outliving(Slot slot) noexcept { slots.range[slot].store(0, std::memory_order_release); }

void withdraw_of(const void* frame, std::size_t without_slot) noexcept
{
    const Slot used = mine.held != 0 ? slots.used.load(std::memory_order_relaxed) : 0;
    for (Slot slot = 0; slot < used; ++slot) {
        if (slots.owner[slot].load(std::memory_order_relaxed) == self() &&
            slots.frame[slot].load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(frame)) {
            free_slot(slot);
        }
    }
    slots.without_slot.fetch_sub(static_cast<std::uint32_t>(without_slot), std::memory_order_release);
}

void end_thread(Stored stored) noexcept
{
    if (mine.held != 0) {
        free_slots_left(UINTPTR_MAX, stored);
    }
}

void reset_after_fork() noexcept
{
    const Slot used = slots.used.load(std::memory_order_relaxed);
    for (Slot slot = 0; slot < used; ++slot) {
        slots.owner[slot].store(0, std::memory_order_relaxed);
        slots.range[slot].store(0, std::memory_order_relaxed);
    }
    slots.without_slot.store(0, std::memory_order_relaxed);
    slots.protecting.store(0, std::memory_order_relaxed);
    mine.held = 0;
}

Protecting::Protecting() noexcept { slots.protecting.fetch_add(1, std::memory_order_seq_cst); }
Protecting::~Protecting() { slots.protecting.fetch_sub(1, std::memory_order_release); }

PageRun first_in_flight(std::uintptr_t begin, std::uintptr_t end) noexcept
{
    if (slots.without_slot.load(std::memory_order_seq_cst) != 0) {
        return {begin, end};
    }
    PageRun first{end, end};
    const Slot used = slots.used.load(std::memory_order_seq_cst);
    for (Slot slot = 0; slot < used; ++slot) {
        const std::uint64_t word = slots.range[slot].load(std::memory_order_seq_cst);
        if (word == 0) {
            continue;
        }
        const PageRun run = run_of(word);
        if (run.end > begin && run.begin < first.begin) {
            first = {std::max(run.begin, begin), std::min(run.end, end)};
        }
    }
    return first;
}

void visit_in_flight(std::uintptr_t begin, std::uintptr_t end, void (*visit)(void* context, PageRun run), void* context) noexcept
{
    const Slot used = slots.used.load(std::memory_order_seq_cst);
    for (Slot slot = 0; slot < used; ++slot) {
        const std::uint64_t word = slots.range[slot].load(std::memory_order_seq_cst);
        if (word == 0) {
            continue;
        }
        const PageRun run{std::max(run_of(word).begin, begin), std::min(run_of(word).end, end)};
        if (run.begin < run.end) {
            visit(context, run);
        }
    }
}

/// Pages first, then the level above: a thread that takes a bit above finds the pages.
void note_stored(const void* address, std::size_t size) noexcept
{
    if (size == 0 || stored_pages == nullptr) {
        return;
    }
    const PageRun run = run_of(word_of(address, size));
    const std::uint64_t end = (run.end - window_begin) / page_bytes;
    for (std::uint64_t page = (run.begin - window_begin) / page_bytes; page < end;) {
        const std::uint64_t index = page / word_bits;
        const std::uint64_t stop = std::min(end, (index + 1) * word_bits);
        shared(stored_pages->pages[index]).fetch_or(bits_between(page % word_bits, stop - index * word_bits), std::memory_order_release);
        shared(stored_pages->above[index / word_bits]).fetch_or(Word{1} << (index % word_bits), std::memory_order_release);
        page = stop;
    }
}

void take_stored(std::uintptr_t begin, std::uintptr_t end, void (*visit)(void* context, PageRun run), void* context) noexcept
{
    if (stored_pages == nullptr || begin == end) {
        return;
    }
    const std::uint64_t end_index = ((end - window_begin) / page_bytes + word_bits - 1) / word_bits;
    for (std::uint64_t above = (begin - window_begin) / page_bytes / word_bits / word_bits; above * word_bits < end_index; ++above) {
        if (shared(stored_pages->above[above]).load(std::memory_order_relaxed) == 0) {
            continue;
        }
        for (Word set = shared(stored_pages->above[above]).exchange(0, std::memory_order_acquire); set != 0; set &= set - 1) {
            const std::uint64_t index = above * word_bits + static_cast<unsigned>(__builtin_ctzll(set));
            for (Word bits = shared(stored_pages->pages[index]).exchange(0, std::memory_order_acquire); bits != 0; bits &= bits - 1) {
                const std::uintptr_t page = window_begin + (index * word_bits + static_cast<unsigned>(__builtin_ctzll(bits))) * page_bytes;
                if (page >= begin && page < end) {
                    visit(context, {page, page + page_bytes});
                }
            }
        }
    }
}

}  // namespace stillpoint::kernel_writes
