#include "heap/span_table_view.hpp"

#include <algorithm>

#include "heap/layout_table.hpp"

namespace stillpoint::heap {

std::uint8_t SpanTableView::mark(std::uint64_t span, const SizeClass& c, std::uint32_t block) const noexcept
{
    if (!is_logged()) {
        const std::byte* const marks = has_coarse_marks(c) ? base_ + layout_.coarse_marks_offset + span * coarse_marks_per_span
                                                           : fine_marks(span, c);
        return static_cast<std::uint8_t>(marks[block]);
    }
    if (has_coarse_marks(c)) {
        return static_cast<std::uint8_t>(logged_word(span).value >> (SpanWord::coarse_marks_shift + block) & 1);
    }
    return static_cast<std::uint8_t>(reinterpret_cast<const logged::Word*>(fine_marks(span, c))[block / 64].value >> (block % 64) & 1);
}

Result<void> SpanTableView::check_room() const
{
    if (is_logged() && image_bytes_ < layout_.span_table_offset) {
        return fail(
            SP_E_POOL_CORRUPT, 0,
            "{} bytes of durable memory cannot hold the tables in front of the heap, which take {}: the pool is damaged; restore it from a copy",
            image_bytes_, layout_.span_table_offset);
    }
    const std::uint64_t at = layout_.span_table_offset;
    if (!lies_in_spans_) {
        return {};
    }
    const bool is_inside = at >= layout_.spans_offset && at % span_bytes == layout_.spans_offset % span_bytes && at <= image_bytes_ &&
                           layout_.table_spans() * span_bytes <= image_bytes_ - at;
    if (!is_inside || plain_word(layout_.first_table_span()) != SpanEntry::large(static_cast<std::uint32_t>(layout_.table_spans())).word) {
        return fail(
            SP_E_POOL_CORRUPT, 0,
            "the heap's tables are not a run of {} spans at offset {}, where the image header has them: the pool is damaged; restore "
            "it from a copy",
            layout_.table_spans(), at);
    }
    return {};
}

Result<std::uint64_t> SpanTableView::validate(std::uint64_t span) const
{
    const SpanWord found = word(span);
    const SpanEntry entry = found.entry();
    const std::uint64_t payload = entry.payload();
    const std::uint64_t layouts_known = is_logged() ? std::min<std::uint64_t>(layouts().count.value, LayoutTable::records_max) : 0;
    if (found.layout() != 0 && (entry.kind() == SpanKind::free_or_rest || found.layout() > layouts_known)) {
        return fail(SP_E_POOL_CORRUPT, 0, "heap span {} names layout {}, which it cannot have: the pool is damaged; restore it from a copy",
                    span, found.layout());
    }
    switch (entry.kind()) {
    case SpanKind::free_or_rest:
        if (payload == 0) {
            return 1;
        }
        break;
    case SpanKind::small:
        if (payload - 1 < class_count && found.layout() != 0 &&
            class_alignment(static_cast<std::uint32_t>(payload)) < layout_alignment(layouts().records[found.layout() - 1])) {
            return fail(
                SP_E_POOL_CORRUPT, 0,
                "heap span {} has blocks of {} bytes, in which objects of layout {} are not aligned: the pool is damaged; restore it from a copy",
                span, size_classes[payload].block_bytes, found.layout());
        }
        if (payload - 1 < class_count) {
            return 1;
        }
        return fail(SP_E_POOL_CORRUPT, 0,
                    "heap span {} names size class {}, but there are only {}: the pool is damaged; restore it from a copy", span, payload,
                    class_count);
    case SpanKind::large:
        if (payload == 0 || payload > spans_ - span) {
            return fail(SP_E_POOL_CORRUPT, 0,
                        "heap span {} begins a run of {} spans, but {} are left: the pool is damaged; restore it from a copy", span,
                        payload, spans_ - span);
        }
        for (std::uint64_t rest = span + 1; rest < span + payload; ++rest) {
            if (word(rest).entry().word != 0) {
                return fail(
                    SP_E_POOL_CORRUPT, 0,
                    "heap span {} is in use inside the run of {} that begins at span {}: the pool is damaged; restore it from a copy", rest,
                    payload, span);
            }
        }
        return payload;
    default: break;
    }
    return fail(SP_E_POOL_CORRUPT, 0, "heap span {} has the meaningless entry {:#010x}: the pool is damaged; restore it from a copy", span,
                entry.word);
}

}  // namespace stillpoint::heap
