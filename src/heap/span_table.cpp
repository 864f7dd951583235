// The span table: the owner of each 64 KiB span. Durable: one word per span or large run. In DRAM: a bit
// set of free spans, address-ordered first fit; neighbours coalesce because bits do.

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "core/canary.hpp"  // Names the file for builds with the canaries' switches.
#include "heap/heap_state.hpp"
#include "heap/layout_table.hpp"
#include "heap/span_table_view.hpp"

namespace stillpoint::heap {

namespace {

constexpr std::uint64_t all_free = ~std::uint64_t{0};

/// Marks in the word of a coarse span are cleared: a span has none when it changes hands.
void store_entry(HeapState& state, std::uint64_t span, SpanEntry entry, std::uint16_t layout = 0) noexcept
{
    if (state.tables_are_logged) {
        logged::store(state.span_words[span], SpanWord::of(entry, layout).word);
        return;
    }
    announce_table_store(&state.span_table[span], sizeof state.span_table[span]);
    const std::uint32_t before = state.span_table[span];
    std::atomic_ref<std::uint32_t>(state.span_table[span]).store(entry.word, std::memory_order_relaxed);
    const bool is_block = entry.kind() == SpanKind::large || SpanEntry{before}.kind() == SpanKind::large;
    if (is_block) {
        note_state_store(&state.span_table[span], sizeof state.span_table[span]);
    } else {
        note_table_store(&state.span_table[span], sizeof state.span_table[span]);
    }
}

void publish(HeapState& state, std::uint64_t span, std::uint64_t tag, std::uint64_t value) noexcept
{
    state.info[span].store((value << SpanInfo::value_shift) | tag, std::memory_order_release);
}

std::uint64_t marks_address(const HeapState& state, std::uint64_t span, const SizeClass& c) noexcept
{
    if (state.tables_are_logged) {
        const std::uint8_t* const marks = has_coarse_marks(c)
                                              ? LoggedMark::first_in(&state.span_words[span]) + SpanWord::coarse_marks_shift
                                              : LoggedMark::first_in(span_address(state, span) + fine_marks_offset(span, c));
        return reinterpret_cast<std::uint64_t>(marks);
    }
    if (has_coarse_marks(c)) {
        return reinterpret_cast<std::uint64_t>(state.coarse_marks + span * coarse_marks_per_span);
    }
    return reinterpret_cast<std::uint64_t>(span_address(state, span) + fine_marks_offset(span, c));
}

/// Free spans are given out. What they hold may not be what the medium has, and zeroes are taken for zeroes: all of it counts as written.
void note_unknown(HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept
{
    if (!state.free_memory_is_unknown || is_removed(Canary::unknown_memory)) {
        return;
    }
    const std::uint64_t end = std::min(first + spans, state.layout.spans_in(state.options.image_bytes));
    for (std::uint64_t span = first; span < end; ++span) {  // An entry that was appended since the start is zero.
        if (!state.known_spans.test(span)) {
            state.known_spans.set(span);
            note_table_store(span_address(state, span), span_bytes);
        }
    }
}

/// A new small span has no block allocated.
void clear_marks(const HeapState& state, std::uint64_t span, const SizeClass& c) noexcept
{
    if (!state.tables_are_logged) {
        clear_stale(state, reinterpret_cast<std::byte*>(marks_address(state, span, c)), c.blocks);
    } else if (!has_coarse_marks(c)) {
        clear_stale(state, span_address(state, span) + fine_marks_offset(span, c), logged_marks_bytes(c.blocks));
    }
}

/// Calls change(word, mask) for each word of the free bits that [first, first + spans) covers.
template <class Change>
void for_each_word(const HeapState& state, std::uint64_t first, std::uint64_t spans, Change change) noexcept
{
    while (spans != 0) {
        const unsigned bit = first % 64;
        const std::uint64_t here = std::min<std::uint64_t>(64 - bit, spans);
        const std::uint64_t mask = (here == 64 ? all_free : (std::uint64_t{1} << here) - 1) << bit;
        change(state.free_spans[first / 64], mask);
        first += here;
        spans -= here;
    }
}

void mark_taken(HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept
{
    for_each_word(state, first, spans, [](std::uint64_t& word, std::uint64_t mask) { word &= ~mask; });
}

void mark_free(HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept
{
    for_each_word(state, first, spans, [](std::uint64_t& word, std::uint64_t mask) { word |= mask; });
    state.first_free_word = std::min(state.first_free_word, first / 64);
}

/// Whether the span was free when the running epoch began: no older state knows it.
bool is_new_in_epoch(HeapState& state, std::uint64_t span) noexcept
{
    logged::Word& word = state.span_words[span];
    logged::touch(word);
    return SpanWord{logged::at_epoch_start(word)}.entry().word == 0;
}

/// Runs that no older state needs any more are free. Under spans_lock.
void release_delayed_runs(HeapState& state) noexcept
{
    const std::uint64_t durable = logged::durable_epoch.load(std::memory_order_acquire);
    while (state.delayed_first != state.delayed_end && state.delayed_runs[state.delayed_first].epoch <= durable) {
        const DelayedRun& run = state.delayed_runs[state.delayed_first++];
        mark_free(state, run.first, run.spans);
    }
}

void delay_run(HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept
{
    if (state.delayed_end == state.delayed_runs.capacity()) {
        const std::uint64_t used = state.delayed_end - state.delayed_first;
        std::memmove(state.delayed_runs.data(), &state.delayed_runs[state.delayed_first], used * sizeof(DelayedRun));
        state.delayed_first = 0;
        state.delayed_end = used;
    }
    state.delayed_runs[state.delayed_end++] = {first, spans, logged::running() >> 1};
}

bool all_are_free(const HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept
{
    bool all = true;
    for_each_word(state, first, spans, [&](std::uint64_t word, std::uint64_t mask) { all = all && (word & mask) == mask; });
    return all;
}

/// The lowest free span from `from` on. Under spans_lock.
std::uint64_t next_free(const HeapState& state, std::uint64_t from) noexcept
{
    const std::uint64_t words = (state.span_count.load(std::memory_order_relaxed) + 63) / 64;
    std::uint64_t mask = all_free << (from % 64);
    for (std::uint64_t w = from / 64; w < words; ++w, mask = all_free) {
        if (const std::uint64_t here = state.free_spans[w] & mask; here != 0) {
            return w * 64 + static_cast<unsigned>(std::countr_zero(here));
        }
    }
    return no_span;
}

/// No span of the group is another home's.
bool is_group_of(const HeapState& state, std::uint32_t home, std::uint64_t span) noexcept
{
    const std::uint64_t first = span - span % spans_per_group;
    const std::uint64_t end = std::min(first + spans_per_group, state.span_count.load(std::memory_order_relaxed));
    for (std::uint64_t other = first; other < end; ++other) {
        if (span_info(state, other).is_small() && state.links[other].home.load(std::memory_order_relaxed) != home) {
            return false;
        }
    }
    return true;
}

/// First fit, by address. Under spans_lock.
std::uint64_t find_run(HeapState& state, std::uint64_t wanted) noexcept
{
    release_delayed_runs(state);
    const std::uint64_t words = (state.span_count.load(std::memory_order_relaxed) + 63) / 64;
    while (state.first_free_word < words && state.free_spans[state.first_free_word] == 0) {
        ++state.first_free_word;
    }
    std::uint64_t run = 0;  // free spans that end where the scan stands
    for (std::uint64_t w = state.first_free_word; w < words; ++w) {
        const std::uint64_t word = state.free_spans[w];
        for (unsigned bit = 0; bit < 64;) {
            const std::uint64_t rest = word >> bit;
            if ((rest & 1) == 0) {
                run = 0;
                bit += rest == 0 ? 64 - bit : static_cast<unsigned>(std::countr_zero(rest));
                continue;
            }
            const auto ones = static_cast<unsigned>(std::countr_one(rest));
            run += ones;
            bit += ones;
            if (run >= wanted) {
                return w * 64 + bit - run;
            }
        }
    }
    return no_span;
}

/// The first free span whose cache lines the home need not share; if none is found soon, the first. Under spans_lock.
std::uint64_t find_span_apart(HeapState& state, std::uint32_t home) noexcept
{
    constexpr unsigned looks = 64;
    const std::uint64_t first = find_run(state, 1);
    std::uint64_t span = first;
    for (unsigned look = 0; look < looks && span != no_span; ++look) {
        if (is_group_of(state, home, span)) {
            return span;
        }
        span = next_free(state, span - span % spans_per_group + spans_per_group);
    }
    return first;
}

}  // namespace

void clear_stale(const HeapState& state, std::byte* address, std::size_t size_bytes) noexcept
{
    while (size_bytes != 0) {
        // Up to the next line, so that a whole page is only written where something stands in it.
        const std::size_t to_line = cache_line_bytes - reinterpret_cast<std::uintptr_t>(address) % cache_line_bytes;
        const std::size_t here = std::min(to_line, size_bytes);
        std::byte any{0};
        for (std::size_t i = 0; i < here; ++i) {
            any |= address[i];
        }
        if (any != std::byte{0}) {
            announce_table_store(address, here);
            std::memset(address, 0, here);
            note_table_store(address, here);
        } else if (state.free_memory_is_unknown) {
            note_table_store(address, here);  // These zeroes may be in the caches only.
        }
        address += here;
        size_bytes -= here;
    }
}

namespace {

/// A small span of the recovered table: not examined yet.
Result<void> list_loaded(HeapState& state, std::uint32_t span, SpanWord word) noexcept
{
    std::uint32_t tag = word.entry().payload();
    if (word.layout() != 0) {
        const auto typed = tag_for(state, word.layout(), tag);
        if (!typed) {
            return pass_on(typed.error());
        }
        tag = *typed;
    }
    publish(state, span, SpanInfo::unknown_bit | tag, marks_address(state, span, state.class_by_tag[tag]));
    list_unknown(state, span, tag);
    return {};
}

}  // namespace

Result<void> load_span_table(HeapState& state) noexcept
{
    const SpanTableView table(state.options);
    const std::uint64_t count = table.spans();
    state.first_free_word = 0;
    if (table.is_logged()) {  // Entries name layouts.
        if (auto sound = check_layouts(table); !sound) {
            return sound;
        }
    }
    for (std::uint64_t span = 0; span < count;) {
        const auto covered = table.validate(span);
        if (!covered) {
            return pass_on(covered.error());
        }
        const SpanWord word = table.word(span);
        const SpanEntry entry = word.entry();
        switch (entry.kind()) {
        case SpanKind::free_or_rest: mark_free(state, span, 1); break;
        case SpanKind::small:
            if (auto listed = list_loaded(state, static_cast<std::uint32_t>(span), word); !listed) {
                return listed;
            }
            break;
        case SpanKind::large:
            if (table.is_table_run(span)) {
                state.table_run_bytes = *covered * span_bytes;  // No block: nothing frees it.
            } else {
                publish(state, span, SpanInfo::large_tag, *covered);
            }
            break;
        }
        span += *covered;
    }
    state.span_count.store(count, std::memory_order_release);
    return {};
}

std::uint32_t take_small_span(HeapState& state, std::uint32_t size_class, std::uint32_t home) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    const std::uint64_t span = find_span_apart(state, home);
    if (span == no_span) {
        return no_span;
    }
    mark_taken(state, span, 1);
    state.links[span].home.store(home, std::memory_order_relaxed);
    const SizeClass& c = state.class_by_tag[size_class];
    note_unknown(state, span, 1);
    clear_marks(state, span, c);
    if (size_class < typed_tag) {
        store_entry(state, span, SpanEntry::small(size_class));
    } else {
        const TypedClass& typed = state.typed[size_class - typed_tag];
        store_entry(state, span, SpanEntry::small(typed.size_class), typed.layout);
    }
    publish(state, span, size_class, marks_address(state, span, c));
    return static_cast<std::uint32_t>(span);
}

void return_small_span(HeapState& state, std::uint32_t span) noexcept { return_large_run(state, span, 1); }

std::byte* take_large_run(HeapState& state, std::uint64_t spans, std::uint16_t layout) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    const std::uint64_t first = find_run(state, spans);
    if (first == no_span) {
        return nullptr;
    }
    mark_taken(state, first, spans);
    note_unknown(state, first, spans);
    store_entry(state, first, SpanEntry::large(static_cast<std::uint32_t>(spans)), layout);
    publish(state, first, SpanInfo::large_tag, spans);
    return span_address(state, first);
}

void return_large_run(HeapState& state, std::uint64_t first, std::uint64_t spans) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    publish(state, first, 0, 0);
    const bool is_new = state.tables_are_logged && is_new_in_epoch(state, first);
    store_entry(state, first, SpanEntry{0});
    if (state.tables_are_logged && !is_new) {
        delay_run(state, first, spans);
    } else {
        mark_free(state, first, spans);
    }
}

bool resize_large_run(HeapState& state, std::uint64_t first, std::uint64_t from, std::uint64_t to) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    if (to < from) {
        if (state.tables_are_logged) {
            delay_run(state, first + to, from - to);
        } else {
            mark_free(state, first + to, from - to);
        }
    } else {
        const std::uint64_t count = state.span_count.load(std::memory_order_relaxed);
        if (to > count - first || !all_are_free(state, first + from, to - from)) {
            return false;
        }
        mark_taken(state, first + from, to - from);
        note_unknown(state, first + from, to - from);
    }
    store_entry(state, first, SpanEntry::large(static_cast<std::uint32_t>(to)), load_span_word(state, first).layout());
    publish(state, first, SpanInfo::large_tag, to);
    return true;
}

void add_spans(HeapState& state, std::uint64_t new_span_count) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    const std::uint64_t count = state.span_count.load(std::memory_order_relaxed);
    if (new_span_count <= count) {
        return;
    }
    // No heap has written entries of spans that did not exist; a foreign file may have.
    if (state.tables_are_logged) {
        clear_stale(state, reinterpret_cast<std::byte*>(state.span_words + count), (new_span_count - count) * sizeof(logged::Word));
    } else {
        clear_stale(state, reinterpret_cast<std::byte*>(state.span_table + count), (new_span_count - count) * sizeof(SpanEntry));
    }
    mark_free(state, count, new_span_count - count);
    state.span_count.store(new_span_count, std::memory_order_release);
}

std::uint64_t free_spans_at_end(const HeapState& state) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    std::uint64_t end = state.span_count.load(std::memory_order_relaxed);
    std::uint64_t found = 0;
    while (end != 0 && (state.free_spans[(end - 1) / 64] >> ((end - 1) % 64) & 1) != 0) {
        --end;
        ++found;
    }
    return found;
}

}  // namespace stillpoint::heap
