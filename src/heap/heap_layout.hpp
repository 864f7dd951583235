#pragma once
// The tables that the heap keeps in the image, and where (docs/internals/format/heap.md has the bytes):
//
//   heap_offset: span table | coarse marks | padding to 64 KiB | span 0 | span 1 | ...
//   TableFormat::logged: layout table | span words | padding to 64 KiB | span 0 | ...
//
// An all-zero heap is an empty one: a fresh image needs no formatting.

#include <cstddef>
#include <cstdint>

#include "core/logged_words.hpp"
#include "core/units.hpp"
#include "pool/image_layout.hpp"

namespace stillpoint::heap {

using layout::TableFormat;

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

/// With TableFormat::logged: what a span's logged word holds.
struct SpanWord {
    static constexpr unsigned layout_shift = 32;
    static constexpr unsigned coarse_marks_shift = 48;  ///< the span's marks, if they are coarse: a bit each

    std::uint64_t word;

    [[nodiscard]] constexpr SpanEntry entry() const noexcept { return {static_cast<std::uint32_t>(word)}; }
    /// Number of the layout, from 1; 0: the span is not typed.
    [[nodiscard]] constexpr std::uint16_t layout() const noexcept { return static_cast<std::uint16_t>(word >> layout_shift); }
    [[nodiscard]] static constexpr SpanWord of(SpanEntry entry, std::uint16_t layout) noexcept
    {
        return {entry.word | (std::uint64_t{layout} << layout_shift)};
    }
};
static_assert(coarse_marks_per_span <= 64 - SpanWord::coarse_marks_shift);

/// The kinds of members of a durable type other than logged variables (core/logged_words.hpp). The numbers lie in pool files.
namespace member_kind {
inline constexpr std::uint16_t pthread_mutex = 8;
inline constexpr std::uint16_t pthread_condition = 9;
inline constexpr std::uint16_t pthread_rwlock = 10;
inline constexpr std::uint16_t word_mutex = 11;
inline constexpr std::uint16_t word_condition = 12;
}  // namespace member_kind
/// Locks of one word, which an engine may have: all zero they are free.
inline constexpr std::size_t word_lock_bytes = 4;

/// A type's logged variables and locks, so that recovery finds them in every block of the spans that name it.
struct LayoutRecord {
    static constexpr std::size_t members_max = 24;
    static constexpr std::size_t name_bytes = 48;
    struct Member {
        std::uint32_t offset_bytes;
        std::uint16_t kind;  ///< of a logged variable, or a member_kind
        std::uint16_t count;
    };

    std::uint32_t stride_bytes;  ///< of one object
    std::uint32_t member_count;
    char type_name[name_bytes];  ///< NUL-terminated, rest zero
    Member members[members_max];
    std::uint64_t checksum;      ///< over all bytes before
};
static_assert(sizeof(LayoutRecord) == 256);

/// Records are written once, after the last, and never changed: those after `count` are meaningless.
struct LayoutTable {
    static constexpr std::size_t records_max = 255;

    alignas(cache_line_bytes) logged::Word count;
    std::uint8_t reserved[sizeof(LayoutRecord) - sizeof(logged::Word)];
    LayoutRecord records[records_max];
};
static_assert(sizeof(LayoutTable) == 64 * kib);

/// Offsets from the image's base: a pure function of heap_offset and the maximum size, so that
/// growth moves nothing. Where the maximum was raised, the spans stay, and the tables lie in a run of them.
struct HeapLayout {
    std::uint64_t span_table_offset;
    std::uint64_t coarse_marks_offset;
    std::uint64_t spans_offset;  ///< multiple of span_bytes
    std::uint64_t spans_max;
    std::uint64_t layouts_offset;  ///< TableFormat::logged only

    [[nodiscard]] static constexpr HeapLayout of(std::uint64_t heap_offset, std::uint64_t image_bytes_max, TableFormat format) noexcept
    {
        // Counts the tables' own room as spans too: a table that is 0.03 % too long, and no
        // circular definition.
        const std::uint64_t room = image_bytes_max > heap_offset ? image_bytes_max - heap_offset : 0;
        const std::uint64_t table_entries = room / span_bytes;
        HeapLayout layout{};
        if (format == TableFormat::logged) {
            layout.layouts_offset = heap_offset;
            layout.span_table_offset = heap_offset + sizeof(LayoutTable);
            layout.spans_offset = round_up(layout.span_table_offset + table_entries * sizeof(logged::Word), span_bytes);
            layout.spans_max = layout.spans_in(image_bytes_max);
            return layout;
        }
        layout.span_table_offset = heap_offset;
        layout.coarse_marks_offset = round_up(layout.span_table_offset + table_entries * sizeof(SpanEntry), page_bytes);
        layout.spans_offset = round_up(layout.coarse_marks_offset + table_entries * coarse_marks_per_span, span_bytes);
        layout.spans_max = layout.spans_in(image_bytes_max);
        return layout;
    }

    /// TableFormat::plain, of a heap that was made with a maximum of `first_max`.
    [[nodiscard]] static constexpr HeapLayout of_raised(std::uint64_t heap_offset, std::uint64_t first_max, std::uint64_t image_bytes_max,
                                                        std::uint64_t span_table_offset) noexcept
    {
        HeapLayout layout = of(heap_offset, first_max, TableFormat::plain);
        layout.spans_max = layout.spans_in(image_bytes_max);
        layout.span_table_offset = span_table_offset;
        layout.coarse_marks_offset = round_up(span_table_offset + layout.spans_max * sizeof(SpanEntry), page_bytes);
        return layout;
    }

    /// Tables that lie in spans: how many spans they take, and the first of them.
    [[nodiscard]] constexpr std::uint64_t table_spans() const noexcept
    {
        const std::uint64_t end = coarse_marks_offset + spans_max * coarse_marks_per_span;
        return (end - span_table_offset + span_bytes - 1) / span_bytes;
    }
    [[nodiscard]] constexpr std::uint64_t first_table_span() const noexcept { return (span_table_offset - spans_offset) / span_bytes; }

    /// Whole spans that an image of this size has.
    [[nodiscard]] constexpr std::uint64_t spans_in(std::uint64_t image_bytes) const noexcept
    {
        return image_bytes > spans_offset ? (image_bytes - spans_offset) / span_bytes : 0;
    }
};

}  // namespace stillpoint::heap
