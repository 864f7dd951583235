#include "heap/image_heap.hpp"

#include <algorithm>
#include <cstring>

#include "core/store_marks.hpp"
#include "heap/span_table_view.hpp"
#include "pool/image.hpp"

namespace stillpoint {

using namespace heap;

namespace {

/// Pages of zeroes stay as the image has them: never written.
void copy_into_zeroes(std::byte* to, const std::byte* from, std::uint64_t size_bytes) noexcept
{
    for (std::uint64_t done = 0; done < size_bytes; done += page_bytes) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(page_bytes, size_bytes - done));
        if (std::any_of(from + done, from + done + part, [](std::byte byte) { return byte != std::byte{0}; })) {
            announce_store(to + done, part);
            std::memcpy(to + done, from + done, part);
            note_store(to + done, part);
        }
    }
}

tl::unexpected<Failure> too_near(std::uint64_t image_bytes_max, std::uint64_t needed_bytes)
{
    return fail(SP_E_INVALID_ARGUMENT, 0, "a maximum of {} MiB leaves no room for the tables that it needs; raise it to {} MiB or more",
                image_bytes_max / mib, needed_bytes / mib + 1);
}

void store_entry(const SpanTableView& view, std::uint64_t span, SpanEntry entry) noexcept
{
    std::uint32_t& word = view.plain_word(span);
    announce_store(&word, sizeof word);
    word = entry.word;
    note_store(&word, sizeof word);
}

}  // namespace

Heap::Options heap_options_of(std::byte* base, const PoolFacts& facts, std::uint64_t image_bytes, TableFormat format) noexcept
{
    const ImageMaximum maximum = maximum_of(base);
    return {.image_base = base,
            .heap_offset = ImageGeometry::for_image(facts.image_bytes_first_max, format).heap_offset,
            .image_bytes = std::min(image_bytes, maximum.image_bytes_max),
            .image_bytes_max = maximum.image_bytes_max,
            .grow = nullptr,
            .grow_context = nullptr,
            .table_format = format,
            .image_bytes_first_max = facts.image_bytes_first_max,
            .span_table_offset = maximum.span_table_offset};
}

Result<void> lengthened_tables_fit(const PoolFacts& facts, std::uint64_t image_bytes_max)
{
    const std::uint64_t heap_offset = ImageGeometry::for_image(facts.image_bytes_first_max, TableFormat::plain).heap_offset;
    const HeapLayout first = HeapLayout::of(heap_offset, facts.image_bytes_first_max, TableFormat::plain);
    // At most where the present maximum ends.
    const std::uint64_t begin = first.spans_offset + first.spans_in(facts.image_bytes_max) * span_bytes;
    const HeapLayout longer = HeapLayout::of_raised(heap_offset, facts.image_bytes_first_max, image_bytes_max, begin);
    const std::uint64_t end = begin + longer.table_spans() * span_bytes;
    return end <= image_bytes_max ? Result<void>{} : too_near(image_bytes_max, end);
}

Result<void> lengthen_tables(Heap::Options& options, std::uint64_t image_bytes, std::uint64_t image_bytes_max)
{
    if (options.table_format == TableFormat::logged) {
        return fail(SP_E_UNSUPPORTED, 0, "the tables of a heap that logs by name cannot be made longer");
    }
    const SpanTableView old(options);
    if (auto room = old.check_room(); !room) {
        return room;
    }
    const std::uint64_t first_new = old.spans();
    Heap::Options longer = options;
    longer.image_bytes_max = image_bytes_max;
    longer.span_table_offset = old.layout().spans_offset + first_new * span_bytes;
    const HeapLayout layout = layout_of(longer);
    const std::uint64_t wanted = longer.span_table_offset + layout.table_spans() * span_bytes;
    if (wanted > image_bytes_max) {
        return too_near(image_bytes_max, wanted);
    }
    longer.image_bytes = image_bytes;
    if (image_bytes < wanted) {
        const auto grown = options.grow(options.grow_context, wanted);
        if (!grown) {
            return pass_on(grown.error());
        }
        longer.image_bytes = *grown;
    }
    longer.image_bytes = std::min(longer.image_bytes, image_bytes_max);
    const SpanTableView next(longer);
    std::byte* const base = options.image_base;
    copy_into_zeroes(base + layout.span_table_offset, base + old.layout().span_table_offset, first_new * sizeof(SpanEntry));
    copy_into_zeroes(base + layout.coarse_marks_offset, base + old.layout().coarse_marks_offset, first_new * coarse_marks_per_span);
    if (options.span_table_offset != 0) {
        store_entry(next, old.layout().first_table_span(), SpanEntry{0});
    }
    store_entry(next, first_new, SpanEntry::large(static_cast<std::uint32_t>(layout.table_spans())));
    store_maximum(base, {image_bytes_max, longer.span_table_offset});
    options = longer;
    return {};
}

}  // namespace stillpoint
