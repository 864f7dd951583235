#pragma once
// What the heap keeps in the image, and where (docs/format/heap.md has the bytes):
//
//   heap_offset: span table | coarse marks | padding to 64 KiB | span 0 | span 1 | ...
//
// An all-zero heap is an empty one: a fresh image needs no formatting.

#include <cstddef>
#include <cstdint>

#include "core/units.hpp"

namespace stillpoint::heap {

inline constexpr unsigned span_shift = 16;
inline constexpr std::size_t span_bytes = std::size_t{1} << span_shift;

/// One word of the span table. Only the first span of a large run has an entry: the others keep
/// the 0 of a free span, so that taking or freeing a run of any length is one store.
enum class SpanKind : std::uint32_t {
    free_or_rest = 0,  ///< payload 0
    small = 1,         ///< payload: size class, 1 to class_count
    large = 2,         ///< payload: length of the run in spans
};

struct SpanEntry {
    static constexpr unsigned kind_shift = 30;
    static constexpr std::uint32_t payload_mask = (std::uint32_t{1} << kind_shift) - 1;

    std::uint32_t word;

    [[nodiscard]] static constexpr SpanEntry small(std::uint32_t size_class) noexcept
    {
        return {(static_cast<std::uint32_t>(SpanKind::small) << kind_shift) | size_class};
    }
    [[nodiscard]] static constexpr SpanEntry large(std::uint32_t spans) noexcept
    {
        return {(static_cast<std::uint32_t>(SpanKind::large) << kind_shift) | spans};
    }
    [[nodiscard]] constexpr SpanKind kind() const noexcept { return static_cast<SpanKind>(word >> kind_shift); }
    [[nodiscard]] constexpr std::uint32_t payload() const noexcept { return word & payload_mask; }
};
static_assert(sizeof(SpanEntry) == 4);

/// Marks (allocation bytes) of a span with few, large blocks lie together in one table, so that
/// its blocks keep their natural alignment; 16 bytes a span, hence at most 16 blocks.
inline constexpr std::size_t coarse_marks_per_span = 16;

/// Offsets from the image's base: a pure function of heap_offset and the maximum size, so that
/// growth moves nothing.
struct HeapLayout {
    std::uint64_t span_table_offset;
    std::uint64_t coarse_marks_offset;
    std::uint64_t spans_offset;  ///< multiple of span_bytes
    std::uint64_t spans_max;

    [[nodiscard]] static constexpr HeapLayout of(std::uint64_t heap_offset, std::uint64_t image_bytes_max) noexcept
    {
        // Counts the tables' own room as spans too: a table that is 0.03 % too long, and no
        // circular definition.
        const std::uint64_t room = image_bytes_max > heap_offset ? image_bytes_max - heap_offset : 0;
        const std::uint64_t table_entries = room / span_bytes;
        HeapLayout layout{};
        layout.span_table_offset = heap_offset;
        layout.coarse_marks_offset =
            round_up(layout.span_table_offset + table_entries * sizeof(SpanEntry), page_bytes);
        layout.spans_offset =
            round_up(layout.coarse_marks_offset + table_entries * coarse_marks_per_span, span_bytes);
        layout.spans_max = layout.spans_in(image_bytes_max);
        return layout;
    }

    /// Whole spans that an image of this size has.
    [[nodiscard]] constexpr std::uint64_t spans_in(std::uint64_t image_bytes) const noexcept
    {
        return image_bytes > spans_offset ? (image_bytes - spans_offset) / span_bytes : 0;
    }
};

}  // namespace stillpoint::heap
