// Central lists: per home and class, the free blocks that no thread has cached, as bits per span.

#include <algorithm>
#include <bit>
#include <mutex>

#include "core/canary.hpp"
#include "core/store_marks.hpp"
#include "heap/thread_cache.hpp"

namespace stillpoint::heap {

namespace {

/// A home keeps so many spans of a class without a live block: about 1000 blocks, but at most 4 MiB. A program that frees and
/// allocates in turn then neither writes the span table each time, nor the words that all threads read when they free.
/// They are given up before the image grows.
std::uint32_t empty_spans_kept(const HeapState& state, std::uint32_t size_class) noexcept
{
    return std::clamp(1024 / state.class_by_tag[size_class].blocks, 4U, 64U);
}

/// Before a home takes a free span, it takes one over from a home that has more with free blocks than this.
std::uint32_t partial_spans_kept(const HeapState& state, std::uint32_t size_class) noexcept
{
    return 2 * empty_spans_kept(state, size_class);
}

/// The marks of sixteen and more coarse spans mostly lie in one page: looking at them costs one load from the medium.
std::uint64_t spans_per_look(const HeapState& state, std::uint32_t size_class) noexcept
{
    return has_coarse_marks(state.class_by_tag[size_class]) ? 16 : 1;
}

void push(HeapState& state, std::uint32_t& head, std::uint32_t span) noexcept
{
    SpanLink& link = state.links[span];
    link.next = head;
    link.previous = no_span;
    if (head != no_span) {
        state.links[head].previous = span;
    }
    head = span;
}

void remove(HeapState& state, std::uint32_t& head, std::uint32_t span) noexcept
{
    SpanLink& link = state.links[span];
    if (link.previous == no_span) {
        head = link.next;
    } else {
        state.links[link.previous].next = link.next;
    }
    if (link.next != no_span) {
        state.links[link.next].previous = link.previous;
    }
}

void count_partial(Central& central, std::uint32_t change) noexcept
{
    central.partial_spans.store(central.partial_spans.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
}

void push_partial(HeapState& state, Central& central, std::uint32_t span) noexcept
{
    push(state, central.partial, span);
    count_partial(central, 1);
}

void remove_partial(HeapState& state, Central& central, std::uint32_t span) noexcept
{
    remove(state, central.partial, span);
    count_partial(central, ~std::uint32_t{0});
}

[[nodiscard]] std::uint32_t home_of(const HeapState& state, std::uint32_t span) noexcept
{
    return state.links[span].home.load(std::memory_order_relaxed);
}

[[nodiscard]] std::uint32_t span_of(const HeapState& state, const CachedBlock& block) noexcept
{
    return static_cast<std::uint32_t>(static_cast<std::size_t>(block.block - state.spans_base) >> span_shift);
}

void set_all_free(HeapState& state, std::uint32_t span, std::uint32_t blocks) noexcept
{
    auto& bits = state.free_bits[span];
    std::fill(std::begin(bits), std::end(bits), 0);
    std::fill_n(bits, blocks / 64, ~std::uint64_t{0});
    if (blocks % 64 != 0) {
        bits[blocks / 64] = (std::uint64_t{1} << (blocks % 64)) - 1;
    }
    state.links[span].free_blocks = static_cast<std::uint16_t>(blocks);
    state.links[span].first_word = 0;
}

/// Reads the marks of an unknown span, which becomes the home's. Any value but 0 counts as allocated: what else than 1 a
/// damaged file may hold is check()'s business. Under the locks of the home's list and of the unknown spans.
void scan(HeapState& state, std::uint32_t home, std::uint32_t span, std::uint32_t size_class) noexcept
{
    remove(state, state.unknown[size_class].first, span);
    state.links[span].home.store(home, std::memory_order_relaxed);
    std::uint8_t* marks = span_info(state, span).marks();
    auto& bits = state.free_bits[span];
    std::fill(std::begin(bits), std::end(bits), 0);
    std::uint32_t found = 0;
    for (std::uint32_t block = 0; block < state.class_by_tag[size_class].blocks; ++block) {
        const bool is_free = load_mark(state, marks + block) == 0;
        bits[block / 64] |= std::uint64_t{is_free} << (block % 64);
        found += is_free;
    }
    state.links[span].free_blocks = static_cast<std::uint16_t>(found);
    state.links[span].first_word = 0;
    if (found != 0) {
        Central& central = state.central[home][size_class];
        push_partial(state, central, span);
        central.empty_spans += found == state.class_by_tag[size_class].blocks;
    }
    // Release: a thread that sees the span as known may clear marks of it, after this scan.
    state.info[span].store((span_info(state, span).value() << SpanInfo::value_shift) | size_class, std::memory_order_release);
}

/// Takes up to `wanted` blocks of one span; the first goes to end[-1], the next in front of it.
/// Under the lock of the span's list.
std::uint32_t take_from(HeapState& state, std::uint32_t span, const SizeClass& size_class, CachedBlock* end, std::uint32_t wanted) noexcept
{
    SpanLink& link = state.links[span];
    auto& bits = state.free_bits[span];
    std::uint8_t* marks = span_info(state, span).marks();
    std::byte* first = span_address(state, span) + size_class.first_block;
    std::uint32_t left = std::min<std::uint32_t>(wanted, link.free_blocks);
    const std::uint32_t taken = left;
    std::uint32_t word = link.first_word;
    while (left != 0) {
        std::uint64_t free_here = bits[word];
        for (; free_here != 0 && left != 0; --left) {
            const auto block = word * 64 + static_cast<std::uint32_t>(std::countr_zero(free_here));
            free_here &= free_here - 1;
            *--end = {first + std::size_t{block} * size_class.block_bytes, marks + block};
        }
        bits[word] = free_here;
        word += free_here == 0;
    }
    link.first_word = static_cast<std::uint16_t>(word);
    link.free_blocks = static_cast<std::uint16_t>(link.free_blocks - taken);
    return taken;
}

/// Blocks that come back mostly belong to few spans, and lie next to each other: their bits are
/// collected in a register. Under the lock of the list.
class ReturnedBlocks {
public:
    ReturnedBlocks(HeapState& state, std::uint32_t home, std::uint32_t size_class) noexcept
        : state_(state), central_(state.central[home][size_class]), home_(home), all_(state.class_by_tag[size_class].blocks),
          empty_kept_(empty_spans_kept(state, size_class))
    {
    }
    /// False: the block's span is another home's, and nothing is done.
    bool add(const CachedBlock& returned) noexcept
    {
        const std::uint32_t span = span_of(state_, returned);
        if (span != span_) {
            if (home_of(state_, span) != home_) {
                return false;
            }
            finish();
            span_ = span;
            marks_ = span_info(state_, span).marks();
        }
        const auto block = static_cast<std::uint32_t>(returned.mark - marks_);
        if (block / 64 != word_) {
            store_word();
            word_ = block / 64;
        }
        mask_ |= std::uint64_t{1} << (block % 64);
        ++blocks_;
        return true;
    }
    /// The span that was added last is only on the lists after this.
    void finish() noexcept
    {
        if (blocks_ == 0) {
            return;
        }
        store_word();
        SpanLink& link = state_.links[span_];
        if (link.free_blocks == 0) {
            push_partial(state_, central_, span_);
        }
        link.free_blocks = static_cast<std::uint16_t>(link.free_blocks + blocks_);
        blocks_ = 0;
        if (link.free_blocks != all_) {
            return;
        }
        if (central_.empty_spans < empty_kept_) {
            ++central_.empty_spans;
            return;
        }
        remove_partial(state_, central_, span_);
        return_small_span(state_, span_);
        span_ = no_span;
    }

private:
    void store_word() noexcept
    {
        if (mask_ != 0) {
            state_.free_bits[span_][word_] |= mask_;
            SpanLink& link = state_.links[span_];
            link.first_word = std::min<std::uint16_t>(link.first_word, static_cast<std::uint16_t>(word_));
            mask_ = 0;
        }
    }

    HeapState& state_;
    Central& central_;
    std::uint32_t home_;
    std::uint32_t all_;
    std::uint32_t empty_kept_;
    std::uint32_t span_ = no_span;
    std::uint32_t word_ = 0;
    std::uint32_t blocks_ = 0;  ///< of span_, not yet counted in its link
    std::uint64_t mask_ = 0;    ///< bits of word_ not yet stored
    std::uint8_t* marks_ = nullptr;
};

/// Looks at unknown spans until one has a free block. Under the lock of the home's list.
void scan_some(HeapState& state, std::uint32_t home, std::uint32_t size_class, std::uint32_t scan_budget) noexcept
{
    UnknownSpans& unknown = state.unknown[size_class];
    const std::lock_guard hold(unknown.lock);
    for (; state.central[home][size_class].partial == no_span && unknown.first != no_span && scan_budget != 0; --scan_budget) {
        scan(state, home, unknown.first, size_class);
    }
}

/// Takes up to `wanted` blocks that are on the home's list; the first goes to end[-1]. Further spans are only drawn on
/// where they are known: half a batch is better than a new span.
std::uint32_t take_listed(HeapState& state, std::uint32_t home, std::uint32_t size_class, CachedBlock* end, std::uint32_t wanted,
                          std::uint32_t scan_budget) noexcept
{
    Central& central = state.central[home][size_class];
    const SizeClass& c = state.class_by_tag[size_class];
    const std::lock_guard hold(central.lock);
    if (central.partial == no_span) {
        scan_some(state, home, size_class, scan_budget);
    }
    std::uint32_t taken = 0;
    while (taken < wanted && central.partial != no_span) {
        const std::uint32_t span = central.partial;
        central.empty_spans -= state.links[span].free_blocks == c.blocks;
        taken += take_from(state, span, c, end - taken, wanted - taken);
        if (state.links[span].free_blocks == 0) {
            remove_partial(state, central, span);
        }
    }
    return taken;
}

/// Puts a free span on the home's list. False: none without growing.
bool add_span(HeapState& state, std::uint32_t home, std::uint32_t size_class) noexcept
{
    Central& central = state.central[home][size_class];
    const std::lock_guard hold(central.lock);
    const std::uint32_t span = take_small_span(state, size_class, home);
    if (span == no_span) {
        return false;
    }
    set_all_free(state, span, state.class_by_tag[size_class].blocks);
    push_partial(state, central, span);
    ++central.empty_spans;
    return true;
}

/// Takes a span over from a home that has more than `kept` on its list. False: there is none.
bool adopt_span(HeapState& state, std::uint32_t home, std::uint32_t size_class, std::uint32_t kept) noexcept
{
    Central& own = state.central[home][size_class];
    const std::uint32_t homes = homes_in_use(state);
    for (std::uint32_t step = 1; step < homes; ++step) {
        Central& other = state.central[(home + step) % homes][size_class];
        if (other.partial_spans.load(std::memory_order_relaxed) <= kept) {
            continue;
        }
        const std::lock_guard hold_first(std::min(&own, &other)->lock);
        const std::lock_guard hold_second(std::max(&own, &other)->lock);
        if (other.partial_spans.load(std::memory_order_relaxed) <= kept) {
            continue;
        }
        const std::uint32_t span = other.partial;
        const bool is_empty = state.links[span].free_blocks == state.class_by_tag[size_class].blocks;
        remove_partial(state, other, span);
        other.empty_spans -= is_empty;
        state.links[span].home.store(home, std::memory_order_relaxed);
        push_partial(state, own, span);
        own.empty_spans += is_empty;
        return true;
    }
    return false;
}

}  // namespace

std::uint32_t central_take(HeapState& state, std::uint32_t home, std::uint32_t size_class, CachedBlock* out, std::uint32_t wanted,
                           std::uint32_t scan_budget) noexcept
{
    std::uint32_t taken = take_listed(state, home, size_class, out + wanted, wanted, scan_budget);
    // The last span of another home is better than a larger image, but not better than a free span.
    while (taken == 0 && (adopt_span(state, home, size_class, partial_spans_kept(state, size_class)) || add_span(state, home, size_class) ||
                          adopt_span(state, home, size_class, 0))) {
        taken = take_listed(state, home, size_class, out + wanted, wanted, 0);
    }
    if (taken < wanted) {
        std::copy(out + (wanted - taken), out + wanted, out);
    }
    return taken;
}

void central_give(HeapState& state, std::uint32_t size_class, CachedBlock* blocks, std::uint32_t count) noexcept
{
    if (!is_removed(Canary::passing_blocks)) {
        store_marks::announce_passing_blocks();
    }
    while (count != 0) {
        // Read before its lock is taken: if the span changes its home meanwhile, this turn does nothing and the next does better.
        const std::uint32_t home = home_of(state, span_of(state, blocks[0]));
        const std::lock_guard hold(state.central[home][size_class].lock);
        ReturnedBlocks returning(state, home, size_class);
        std::uint32_t others = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (!returning.add(blocks[i])) {
                blocks[others++] = blocks[i];
            }
        }
        returning.finish();
        count = others;
    }
}

void make_known(HeapState& state, std::uint32_t home, std::uint32_t span) noexcept
{
    const std::uint32_t size_class = span_info(state, span).size_class();
    const std::lock_guard hold(state.central[home][size_class].lock);
    const std::lock_guard hold_unknown(state.unknown[size_class].lock);
    if (span_info(state, span).is_unknown()) {  // Not if another thread was here first.
        scan(state, home, span, size_class);
    }
}

namespace {

void release_empty_spans_of(HeapState& state, std::uint32_t home, std::uint32_t size_class, std::uint32_t scan_budget) noexcept
{
    {
        UnknownSpans& unknown = state.unknown[size_class];
        const std::lock_guard hold(state.central[home][size_class].lock);
        const std::lock_guard hold_unknown(unknown.lock);
        for (std::uint64_t left = scan_budget * spans_per_look(state, size_class); left != 0 && unknown.first != no_span; --left) {
            scan(state, home, unknown.first, size_class);
        }
    }
    const std::uint32_t homes = homes_in_use(state);
    for (std::uint32_t each = 0; each < homes; ++each) {
        Central& central = state.central[each][size_class];
        const std::lock_guard hold(central.lock);
        for (std::uint32_t span = central.partial; span != no_span && central.empty_spans != 0;) {
            const std::uint32_t next = state.links[span].next;
            if (state.links[span].free_blocks == state.class_by_tag[size_class].blocks) {
                remove_partial(state, central, span);
                --central.empty_spans;
                return_small_span(state, span);
            }
            span = next;
        }
    }
}

}  // namespace

void release_empty_spans(HeapState& state, std::uint32_t home, std::uint32_t scan_budget) noexcept
{
    for (std::uint32_t size_class = 1; size_class <= class_count; ++size_class) {
        release_empty_spans_of(state, home, size_class, scan_budget);
    }
    for (std::uint32_t typed = 0; typed < state.typed_count.load(std::memory_order_acquire); ++typed) {
        release_empty_spans_of(state, home, typed_tag + typed, scan_budget);
    }
}

void list_unknown(HeapState& state, std::uint32_t span, std::uint32_t size_class) noexcept
{
    push(state, state.unknown[size_class].first, span);
}

}  // namespace stillpoint::heap
