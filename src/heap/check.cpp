// Reading the durable tables as a whole: for statistics, and to verify every invariant of them.

#include <bit>
#include <mutex>

#include "heap/heap_state.hpp"

namespace stillpoint {

using namespace heap;

namespace {

std::uint64_t live_blocks_of(std::uint8_t* marks, std::uint32_t blocks) noexcept
{
    std::uint64_t live = 0;
    for (std::uint32_t block = 0; block < blocks; ++block) {
        live += load_mark(marks + block) != 0;
    }
    return live;
}

Result<void> check_marks(const std::uint8_t* marks, std::uint64_t span, std::uint32_t size_class)
{
    for (std::uint32_t block = 0; block < size_classes[size_class].blocks; ++block) {
        if (marks[block] > 1) {
            return fail(SP_E_POOL_CORRUPT, 0,
                        "heap span {}: block {} of {} bytes has the allocation byte {}, which is neither 0 nor 1: the pool is damaged; restore a copy of it",
                        span, block, size_classes[size_class].block_bytes, marks[block]);
        }
    }
    return {};
}

/// Shows every span that is in use: large(span, spans of the run), small(span, size class, marks). Returns how many spans there are.
/// Spans change hands under the lock only: no mark is read that has become a user's byte.
template <class Large, class Small>
std::uint64_t visit_spans(Large&& large, Small&& small) noexcept
{
    const std::lock_guard hold(state.spans_lock);
    const std::uint64_t count = state.span_count.load(std::memory_order_acquire);
    for (std::uint64_t span = 0; span < count; ++span) {
        const SpanInfo info = span_info(span);
        if (info.is_large()) {
            large(span, info.value());
            span += info.value() - 1;
        } else if (info.is_small()) {
            small(span, size_classes[info.size_class()], info.marks());
        }
    }
    return count;
}

}  // namespace

sp_heap_statistics Heap::statistics() const noexcept
{
    sp_heap_statistics sums{};
    std::uint64_t table_bytes = 0;
    const std::uint64_t spans_in_all = visit_spans(
        [&sums](std::uint64_t, std::uint64_t spans) {
            sums.live_blocks += 1;
            sums.allocated_bytes += spans * span_bytes;
        },
        [&sums, &table_bytes](std::uint64_t, const SizeClass& c, std::uint8_t* marks) {
            const std::uint64_t live = live_blocks_of(marks, c.blocks);
            sums.live_blocks += live;
            sums.allocated_bytes += live * c.block_bytes;
            // A span without live blocks counts as free, head and all: it can be had whole.
            table_bytes += live != 0 ? c.first_block : 0;
        });
    sums.heap_bytes = spans_in_all * span_bytes;
    sums.free_bytes = sums.heap_bytes - sums.allocated_bytes - table_bytes;
    return sums;
}

void Heap::visit_live_blocks(void (*visit)(void* context, const std::byte* block, std::size_t bytes), void* context) const noexcept
{
    visit_spans(
        [visit, context](std::uint64_t span, std::uint64_t spans) { visit(context, span_address(span), spans * span_bytes); },
        [visit, context](std::uint64_t span, const SizeClass& c, std::uint8_t* marks) {
            for (std::uint32_t block = 0; block < c.blocks; ++block) {
                if (load_mark(marks + block) != 0) {
                    visit(context, span_address(span) + c.first_block + std::size_t{block} * c.block_bytes, c.block_bytes);
                }
            }
        });
}

namespace {

const std::uint8_t* marks_in(const Heap::Options& options, const HeapLayout& layout, std::uint64_t span, std::uint32_t size_class) noexcept
{
    const std::uint64_t offset = has_coarse_marks(size_class)
                                     ? layout.coarse_marks_offset + span * coarse_marks_per_span
                                     : layout.spans_offset + span * span_bytes + fine_marks_offset(span, size_class);
    return reinterpret_cast<const std::uint8_t*>(options.image_base + offset);
}

const std::uint32_t* table_in(const Heap::Options& options, const HeapLayout& layout) noexcept
{
    return reinterpret_cast<const std::uint32_t*>(options.image_base + layout.span_table_offset);
}

}  // namespace

Result<void> Heap::check(const Options& options, Findings* findings)
{
    const HeapLayout layout = HeapLayout::of(options.heap_offset, options.image_bytes_max);
    const std::uint32_t* const table = table_in(options, layout);
    const std::uint64_t count = layout.spans_in(options.image_bytes);
    for (std::uint64_t span = 0; span < count;) {
        const auto covered = validate_entry(table, span, count);
        Result<void> good = covered ? Result<void>{} : pass_on(covered.error());
        const SpanEntry entry{table[span]};
        if (good && entry.kind() == SpanKind::small) {
            good = check_marks(marks_in(options, layout, span, entry.payload()), span, entry.payload());
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
    const HeapLayout layout = HeapLayout::of(options.heap_offset, options.image_bytes_max);
    const std::uint64_t span = (offset - layout.spans_offset) / span_bytes;
    const std::uint64_t inside = (offset - layout.spans_offset) % span_bytes;
    const std::uint64_t count = layout.spans_in(options.image_bytes);
    if (offset < layout.spans_offset || span >= count) {
        return false;
    }
    const SpanEntry entry{table_in(options, layout)[span]};
    if (entry.kind() == SpanKind::large) {
        return inside == 0 && entry.payload() <= count - span && size_bytes <= entry.payload() * std::uint64_t{span_bytes};
    }
    if (entry.kind() != SpanKind::small || entry.payload() - 1 >= class_count) {
        return false;
    }
    const SizeClass& c = size_classes[entry.payload()];
    return inside >= c.first_block && (inside - c.first_block) % c.block_bytes == 0 && size_bytes <= c.block_bytes &&
           marks_in(options, layout, span, entry.payload())[(inside - c.first_block) / c.block_bytes] == 1;
}

}  // namespace stillpoint
