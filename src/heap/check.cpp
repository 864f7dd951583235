// Reading the durable tables as a whole: for statistics, and to verify every invariant of them.

#include <bit>
#include <mutex>

#include "heap/heap_state.hpp"
#include "heap/layout_table.hpp"
#include "heap/span_table_view.hpp"

namespace stillpoint {

using namespace heap;

namespace {

std::uint64_t live_blocks_of(const HeapState& state, std::uint8_t* marks, std::uint32_t blocks) noexcept
{
    std::uint64_t live = 0;
    for (std::uint32_t block = 0; block < blocks; ++block) {
        live += load_mark(state, marks + block) != 0;
    }
    return live;
}

/// Shows every span that is in use: large(span, spans of the run), small(span, size class, marks). Returns how many spans there are.
/// Spans change hands under the lock only: no mark is read that has become a user's byte.
template <class Large, class Small>
std::uint64_t visit_spans(const HeapState& state, Large&& large, Small&& small) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    const std::uint64_t count = state.span_count.load(std::memory_order_acquire);
    for (std::uint64_t span = 0; span < count; ++span) {
        const SpanInfo info = span_info(state, span);
        if (info.is_large()) {
            large(span, info.value());
            span += info.value() - 1;
        } else if (info.is_small()) {
            small(span, state.class_by_tag[info.size_class()], info.marks());
        }
    }
    return count;
}

}  // namespace

sp_heap_statistics Heap::statistics() const noexcept
{
    const HeapState& state = state_of(*this);
    sp_heap_statistics sums{};
    std::uint64_t table_bytes = 0;
    const std::uint64_t spans_in_all = visit_spans(
        state,
        [&sums](std::uint64_t, std::uint64_t spans) {
            sums.live_blocks += 1;
            sums.allocated_bytes += spans * span_bytes;
        },
        [&state, &sums, &table_bytes](std::uint64_t, const SizeClass& c, std::uint8_t* marks) {
            const std::uint64_t live = live_blocks_of(state, marks, c.blocks);
            sums.live_blocks += live;
            sums.allocated_bytes += live * c.block_bytes;
            // A span without live blocks counts as free, head and all: it can be allocated whole.
            table_bytes += live != 0 ? c.first_block : 0;
        });
    sums.heap_bytes = spans_in_all * span_bytes;
    sums.free_bytes = sums.heap_bytes - sums.allocated_bytes - table_bytes - state.table_run_bytes;
    return sums;
}

void Heap::visit_live_blocks(void (*visit)(void* context, const std::byte* block, std::size_t bytes), void* context) const noexcept
{
    const HeapState& state = state_of(*this);
    visit_spans(
        state,
        [&state, visit, context](std::uint64_t span, std::uint64_t spans) {
            visit(context, span_address(state, span), spans * span_bytes);
        },
        [&state, visit, context](std::uint64_t span, const SizeClass& c, std::uint8_t* marks) {
            for (std::uint32_t block = 0; block < c.blocks; ++block) {
                if (load_mark(state, marks + block) != 0) {
                    visit(context, span_address(state, span) + c.first_block + std::size_t{block} * c.block_bytes, c.block_bytes);
                }
            }
        });
}

namespace {

Result<void> check_marks(const SpanTableView& table, std::uint64_t span, std::uint32_t size_class)
{
    const SizeClass& c = size_classes[size_class];
    for (std::uint32_t block = 0; block < c.blocks; ++block) {
        if (const std::uint8_t mark = table.mark(span, c, block); mark > 1) {
            return fail(
                SP_E_POOL_CORRUPT, 0,
                "heap span {}: block {} of {} bytes has the allocation byte {}, which is neither 0 nor 1: the pool is damaged; restore it from a copy",
                span, block, c.block_bytes, mark);
        }
    }
    return {};
}

}  // namespace

Result<void> Heap::check(const Options& options, Findings* findings)
{
    const SpanTableView table(options);
    if (auto room = table.check_room(); !room) {
        return found(findings, pass_on(room.error()));  // Where the tables lie is not known.
    }
    if (table.is_logged()) {
        if (auto good = check_layouts(table); !good) {
            if (auto told = found(findings, pass_on(good.error())); !told) {
                return told;
            }
        }
    }
    for (std::uint64_t span = 0; span < table.spans();) {
        const auto covered = table.validate(span);
        Result<void> good = covered ? Result<void>{} : pass_on(covered.error());
        const SpanEntry entry = table.word(span).entry();
        if (good && entry.kind() == SpanKind::small) {
            good = check_marks(table, span, entry.payload());
        }
        if (!good) {
            if (auto told = found(findings, pass_on(good.error())); !told) {
                return told;
            }
        }
        span += covered ? *covered : 1;
    }
    return {};
}

bool Heap::is_live_block(const Options& options, std::uint64_t offset, std::uint64_t size_bytes) noexcept
{
    const SpanTableView table(options);
    const std::uint64_t spans_offset = table.layout().spans_offset;
    const std::uint64_t span = (offset - spans_offset) / span_bytes;
    const std::uint64_t inside = (offset - spans_offset) % span_bytes;
    if (offset < spans_offset || span >= table.spans()) {
        return false;
    }
    const SpanEntry entry = table.word(span).entry();
    if (entry.kind() == SpanKind::large) {
        return inside == 0 && !table.is_table_run(span) && entry.payload() <= table.spans() - span &&
               size_bytes <= entry.payload() * std::uint64_t{span_bytes};
    }
    if (entry.kind() != SpanKind::small || entry.payload() - 1 >= class_count) {
        return false;
    }
    const SizeClass& c = size_classes[entry.payload()];
    return inside >= c.first_block && (inside - c.first_block) % c.block_bytes == 0 && size_bytes <= c.block_bytes &&
           table.mark(span, c, static_cast<std::uint32_t>((inside - c.first_block) / c.block_bytes)) == 1;
}

Heap::Owner Heap::owner_of(const Options& options, std::uint64_t offset, std::uint64_t size_bytes) noexcept
{
    const SpanTableView table(options);
    const std::uint64_t spans_offset = table.layout().spans_offset;
    const std::uint64_t heap_bytes = table.spans() * std::uint64_t{span_bytes};
    if (size_bytes == 0 || offset < spans_offset || offset - spans_offset >= heap_bytes ||
        size_bytes > heap_bytes - (offset - spans_offset)) {
        return Owner::heap;
    }
    const std::uint64_t first = (offset - spans_offset) / span_bytes;
    const std::uint64_t last = (offset - spans_offset + size_bytes - 1) / span_bytes;
    if (table.lies_in_table_run(first)) {
        return Owner::heap;
    }
    const SpanEntry entry = table.word(first).entry();
    for (std::uint64_t span = first + 1; span <= last; ++span) {
        if (table.word(span).entry().word != 0) {
            return Owner::heap;
        }
    }
    if (entry.kind() != SpanKind::small) {
        return Owner::program;
    }
    const std::uint64_t inside = (offset - spans_offset) % span_bytes;
    if (first != last || entry.payload() - 1 >= class_count || inside < size_classes[entry.payload()].first_block) {
        return Owner::heap;
    }
    const SizeClass& c = size_classes[entry.payload()];
    const std::uint64_t block = (inside - c.first_block) / c.block_bytes;
    if ((inside - c.first_block + size_bytes - 1) / c.block_bytes != block) {
        return Owner::heap;
    }
    return table.mark(first, c, static_cast<std::uint32_t>(block)) != 0 ? Owner::program : Owner::nobody;
}

}  // namespace stillpoint
