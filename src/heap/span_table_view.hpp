#pragma once
// The durable tables of a heap as they lie in some image, mapped anywhere: for what reads them without an attached heap.

#include "core/result.hpp"
#include "heap/heap.hpp"
#include "heap/heap_state.hpp"

namespace stillpoint::heap {

[[nodiscard]] inline HeapLayout layout_of(const Heap::Options& options) noexcept
{
    return options.span_table_offset == 0 ? HeapLayout::of(options.heap_offset, options.image_bytes_max, options.table_format)
                                          : HeapLayout::of_raised(options.heap_offset, options.image_bytes_first_max,
                                                                  options.image_bytes_max, options.span_table_offset);
}

class SpanTableView {
public:
    explicit SpanTableView(const Heap::Options& options) noexcept
        : base_(options.image_base), image_bytes_(options.image_bytes), format_(options.table_format), layout_(layout_of(options)),
          spans_(layout_.spans_in(options.image_bytes)), lies_in_spans_(options.span_table_offset != 0)
    {
    }

    [[nodiscard]] const HeapLayout& layout() const noexcept { return layout_; }
    [[nodiscard]] std::uint64_t spans() const noexcept { return spans_; }
    [[nodiscard]] bool is_logged() const noexcept { return format_ == TableFormat::logged; }
    [[nodiscard]] std::byte* span_address(std::uint64_t span) const noexcept { return base_ + layout_.spans_offset + span * span_bytes; }

    [[nodiscard]] SpanWord word(std::uint64_t span) const noexcept
    {
        return is_logged() ? SpanWord{logged_word(span).value} : SpanWord{plain_word(span)};
    }
    [[nodiscard]] std::uint32_t& plain_word(std::uint64_t span) const noexcept { return reinterpret_cast<std::uint32_t*>(table())[span]; }
    [[nodiscard]] logged::Word& logged_word(std::uint64_t span) const noexcept { return reinterpret_cast<logged::Word*>(table())[span]; }
    [[nodiscard]] LayoutTable& layouts() const noexcept { return *reinterpret_cast<LayoutTable*>(base_ + layout_.layouts_offset); }

    /// The run of spans that holds the tables themselves, where the maximum was raised.
    [[nodiscard]] bool is_table_run(std::uint64_t span) const noexcept { return lies_in_spans_ && span == layout_.first_table_span(); }
    [[nodiscard]] bool lies_in_table_run(std::uint64_t span) const noexcept
    {
        return lies_in_spans_ && span - layout_.first_table_span() < layout_.table_spans();
    }

    /// Where the marks of a small span begin: bytes, or logged words.
    [[nodiscard]] std::byte* fine_marks(std::uint64_t span, const SizeClass& c) const noexcept
    {
        return span_address(span) + fine_marks_offset(span, c);
    }
    /// The allocation byte of a block, 0 or 1 where the marks are logged.
    [[nodiscard]] std::uint8_t mark(std::uint64_t span, const SizeClass& c, std::uint32_t block) const noexcept;

    /// The image reaches to the end of what is read whatever the number of spans; tables that lie in spans are a run of their own.
    /// Errors: pool_corrupt.
    [[nodiscard]] Result<void> check_room() const;
    /// Validates one entry. Returns the spans it covers. Errors: pool_corrupt.
    [[nodiscard]] Result<std::uint64_t> validate(std::uint64_t span) const;

private:
    [[nodiscard]] std::byte* table() const noexcept { return base_ + layout_.span_table_offset; }

    std::byte* base_;
    std::uint64_t image_bytes_;
    TableFormat format_;
    HeapLayout layout_;
    std::uint64_t spans_;
    bool lies_in_spans_;
};

}  // namespace stillpoint::heap
