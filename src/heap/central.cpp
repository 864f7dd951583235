// Central lists: per class, the free blocks that no thread has cached, as bits per span.

#include <algorithm>
#include <bit>
#include <mutex>

#include "heap/heap_state.hpp"

namespace stillpoint::heap {

namespace {

void push(std::uint32_t& head, std::uint32_t span) noexcept
{
    SpanLink& link = state.links[span];
    link.next = head;
    link.previous = no_span;
    link.listed = 1;
    if (head != no_span) {
        state.links[head].previous = span;
    }
    head = span;
}

void remove(std::uint32_t& head, std::uint32_t span) noexcept
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
    link.listed = 0;
}

void set_all_free(std::uint32_t span, std::uint32_t blocks) noexcept
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

/// Reads the marks of an unknown span. Any value but 0 counts as allocated: what else than 1 a
/// damaged file may hold is check()'s business. Under the class lock.
void scan(std::uint32_t span, std::uint32_t size_class) noexcept
{
    Central& central = state.central[size_class];
    remove(central.unknown, span);
    std::uint8_t* marks = span_info(span).marks();
    auto& bits = state.free_bits[span];
    std::fill(std::begin(bits), std::end(bits), 0);
    std::uint32_t found = 0;
    for (std::uint32_t block = 0; block < size_classes[size_class].blocks; ++block) {
        const bool is_free = load_mark(marks + block) == 0;
        bits[block / 64] |= std::uint64_t{is_free} << (block % 64);
        found += is_free;
    }
    state.links[span].free_blocks = static_cast<std::uint16_t>(found);
    state.links[span].first_word = 0;
    if (found != 0) {
        push(central.partial, span);
    }
    // Release: whoever sees the span as known may clear marks of it, after this scan.
    state.info[span].store((span_info(span).value() << SpanInfo::value_shift) | size_class,
                           std::memory_order_release);
}

/// Takes up to `wanted` blocks of one span; the first goes to end[-1], the next in front of it.
/// Under the class lock.
std::uint32_t take_from(std::uint32_t span, const SizeClass& size_class, CachedBlock* end,
                        std::uint32_t wanted) noexcept
{
    SpanLink& link = state.links[span];
    auto& bits = state.free_bits[span];
    std::uint8_t* marks = span_info(span).marks();
    std::byte* first = span_address(span) + size_class.first_block;
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
/// collected in a register. Under the class lock.
class Returning {
public:
    explicit Returning(std::uint32_t size_class) noexcept
        : central_(state.central[size_class]), all_(size_classes[size_class].blocks)
    {
    }
    void add(const CachedBlock& returned) noexcept
    {
        const auto span =
            static_cast<std::uint32_t>(static_cast<std::size_t>(returned.block - state.spans_base) >> span_shift);
        if (span != span_) {
            finish();
            span_ = span;
            marks_ = span_info(span).marks();
        }
        const auto block = static_cast<std::uint32_t>(returned.mark - marks_);
        if (block / 64 != word_) {
            store_word();
            word_ = block / 64;
        }
        mask_ |= std::uint64_t{1} << (block % 64);
        ++blocks_;
    }
    /// What was added last is only on the lists after this.
    void finish() noexcept
    {
        if (blocks_ == 0) {
            return;
        }
        store_word();
        SpanLink& link = state.links[span_];
        if (link.free_blocks == 0) {
            push(central_.partial, span_);
        }
        link.free_blocks = static_cast<std::uint16_t>(link.free_blocks + blocks_);
        blocks_ = 0;
        // One empty span stays with its class, so that a program that frees and allocates in turn
        // does not write the span table each time.
        if (link.free_blocks == all_ && (link.next != no_span || link.previous != no_span)) {
            remove(central_.partial, span_);
            return_small_span(span_);
        }
    }

private:
    void store_word() noexcept
    {
        if (mask_ != 0) {
            state.free_bits[span_][word_] |= mask_;
            SpanLink& link = state.links[span_];
            link.first_word = std::min<std::uint16_t>(link.first_word, static_cast<std::uint16_t>(word_));
            mask_ = 0;
        }
    }

    Central& central_;
    std::uint32_t all_;
    std::uint32_t span_ = no_span;
    std::uint32_t word_ = 0;
    std::uint32_t blocks_ = 0;  ///< of span_, not yet counted in its link
    std::uint64_t mask_ = 0;    ///< bits of word_ not yet stored
    std::uint8_t* marks_ = nullptr;
};

/// Gives a partial span a chance to be there. False: none without growing. Under the class lock.
bool find_partial(std::uint32_t size_class, std::uint64_t scan_budget) noexcept
{
    Central& central = state.central[size_class];
    while (central.partial == no_span && central.unknown != no_span && scan_budget != 0) {
        scan(central.unknown, size_class);
        --scan_budget;
    }
    if (central.partial != no_span) {
        return true;
    }
    const std::uint32_t span = take_small_span(size_class);
    if (span == no_span) {
        return false;
    }
    set_all_free(span, size_classes[size_class].blocks);
    push(central.partial, span);
    return true;
}

}  // namespace

std::uint32_t central_take(std::uint32_t size_class, CachedBlock* out, std::uint32_t wanted,
                           std::uint64_t scan_budget) noexcept
{
    Central& central = state.central[size_class];
    std::uint32_t taken = 0;
    {
        const std::lock_guard hold(central.lock);
        // Further spans are only drawn on where there are some: half a batch is better than a new span.
        while (taken < wanted && (central.partial != no_span || (taken == 0 && find_partial(size_class, scan_budget)))) {
            const std::uint32_t span = central.partial;
            taken += take_from(span, size_classes[size_class], out + (wanted - taken), wanted - taken);
            if (state.links[span].free_blocks == 0) {
                remove(central.partial, span);
            }
        }
    }
    if (taken < wanted) {
        std::copy(out + (wanted - taken), out + wanted, out);
    }
    return taken;
}

void central_give(std::uint32_t size_class, const CachedBlock* blocks, std::uint32_t count) noexcept
{
    const std::lock_guard hold(state.central[size_class].lock);
    Returning returning(size_class);
    for (std::uint32_t i = 0; i < count; ++i) {
        returning.add(blocks[i]);
    }
    returning.finish();
}

void make_known(std::uint32_t span) noexcept
{
    const std::uint32_t size_class = span_info(span).size_class();
    const std::lock_guard hold(state.central[size_class].lock);
    if (span_info(span).is_unknown()) {  // Not if another thread was here first.
        scan(span, size_class);
    }
}

void release_empty_spans(std::uint64_t scan_budget) noexcept
{
    for (std::uint32_t size_class = 1; size_class <= class_count; ++size_class) {
        Central& central = state.central[size_class];
        const std::lock_guard hold(central.lock);
        for (std::uint64_t left = scan_budget; left != 0 && central.unknown != no_span; --left) {
            scan(central.unknown, size_class);
        }
        for (std::uint32_t span = central.partial; span != no_span;) {
            const std::uint32_t next = state.links[span].next;
            if (state.links[span].free_blocks == size_classes[size_class].blocks) {
                remove(central.partial, span);
                return_small_span(span);
            }
            span = next;
        }
    }
}

void list_unknown(std::uint32_t span, std::uint32_t size_class) noexcept
{
    push(state.central[size_class].unknown, span);
}

}  // namespace stillpoint::heap
