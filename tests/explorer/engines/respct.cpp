// Images of respct have backups beside values, and old bytes in free blocks.

#include <cstring>
#include <sys/mman.h>

#include "canonical_image.hpp"
#include "core/logged_words.hpp"
#include "engines/respct/recovery.hpp"
#include "heap/layout_table.hpp"
#include "heap/span_table_view.hpp"
#include "os/own_mappings.hpp"
#include "pool/image_layout.hpp"

namespace stillpoint::explorer {

namespace {

using namespace heap;

/// Blocks of a small span that the table says are live; the marks are settled.
template <class Visit>
void for_each_live_block(const SpanTableView& table, std::uint64_t span, const SizeClass& c, Visit visit)
{
    for (std::uint32_t block = 0; block < c.blocks; ++block) {
        if (table.mark(span, c, block) != 0) {
            visit(table.span_address(span) + c.first_block + std::size_t{block} * c.block_bytes);
        }
    }
}

void forget_backups(logged::Word& word) noexcept { word = {word.value, {0, 0}, 0}; }

/// Clears a copy. From private anonymous memory whole pages are given back, since most of free memory was never touched and
/// writing zeroes would touch it.
void clear_copy(std::byte* begin, std::byte* end) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    std::byte* const first_page = begin + (round_up(address, page_bytes) - address);
    std::byte* const pages_end = end - reinterpret_cast<std::uintptr_t>(end) % page_bytes;
    if (first_page >= pages_end || os::advise_own(first_page, static_cast<std::size_t>(pages_end - first_page), MADV_DONTNEED) != 0) {
        std::memset(begin, 0, static_cast<std::size_t>(end - begin));
        return;
    }
    std::memset(begin, 0, static_cast<std::size_t>(first_page - begin));
    std::memset(pages_end, 0, static_cast<std::size_t>(end - pages_end));
}

void make_objects_canonical(const SpanTableView& table, std::byte* begin, std::uint64_t bytes, std::uint16_t number) noexcept
{
    if (number == 0) {
        return;
    }
    const LayoutRecord& layout = table.layouts().records[number - 1];
    std::uint64_t at = 0;
    for (; at + layout.stride_bytes <= bytes; at += layout.stride_bytes) {
        for (std::uint32_t m = 0; m < layout.member_count; ++m) {
            const LayoutRecord::Member& member = layout.members[m];
            const std::size_t size = member_bytes(member.kind);
            std::byte* variable = begin + at + member.offset_bytes;
            for (std::uint32_t i = 0; i < member.count; ++i, variable += size) {
                if (member.kind >= logged::kinds) {
                    std::memset(variable, 0, size);
                    continue;
                }
                const std::size_t value = logged::value_bytes(member.kind);
                // After the backups lie spare bytes, which are the program's.
                std::memset(variable + value, 0, round_up(3 * value, sizeof(std::uint64_t)) - value);
                std::memset(variable + size - sizeof(std::uint64_t), 0, sizeof(std::uint64_t));
            }
        }
    }
    std::memset(begin + at, 0, bytes - at);
}

void make_small_canonical(const SpanTableView& table, std::uint64_t span, SpanWord word) noexcept
{
    const SizeClass& c = size_classes[word.entry().payload()];
    std::byte* const begin = table.span_address(span);
    std::byte* const marks = has_coarse_marks(c) ? begin : table.fine_marks(span, c);
    std::byte* const marks_end = has_coarse_marks(c) ? begin : marks + logged_marks_bytes(c.blocks);
    for (std::byte* mark = marks; mark != marks_end; mark += sizeof(logged::Word)) {
        forget_backups(*reinterpret_cast<logged::Word*>(mark));
    }
    std::memset(begin, 0, static_cast<std::size_t>(marks - begin));
    std::memset(marks_end, 0, static_cast<std::size_t>(begin + c.first_block - marks_end));
    std::byte* free_begin = begin + c.first_block;
    for_each_live_block(table, span, c, [&](std::byte* block) {
        clear_copy(free_begin, block);
        make_objects_canonical(table, block, c.block_bytes, word.layout());
        free_begin = block + c.block_bytes;
    });
    clear_copy(free_begin, begin + c.first_block + std::size_t{c.blocks} * c.block_bytes);
}

void make_heap_canonical(const SpanTableView& table) noexcept
{
    LayoutTable& layouts = table.layouts();
    forget_backups(layouts.count);
    std::memset(layouts.records + layouts.count.value, 0, (LayoutTable::records_max - layouts.count.value) * sizeof(LayoutRecord));
    for (std::uint64_t span = 0; span < table.spans();) {
        const SpanWord word = table.word(span);
        const SpanEntry entry = word.entry();
        const std::uint64_t covered = entry.kind() == SpanKind::large ? entry.payload() : 1;
        if (entry.kind() == SpanKind::small) {
            make_small_canonical(table, span, word);
        } else if (entry.kind() == SpanKind::large) {
            make_objects_canonical(table, table.span_address(span), covered * span_bytes, word.layout());
        } else {
            clear_copy(table.span_address(span), table.span_address(span) + span_bytes);
        }
        for (std::uint64_t each = span; each < span + covered; ++each) {
            forget_backups(table.logged_word(each));
        }
        span += covered;
    }
}

/// No backups, zeroes where nothing is live, free locks.
void make_canonical(std::byte* base, std::uint64_t image_bytes)
{
    const auto& header = *reinterpret_cast<const layout::ImageHeader*>(base);
    PoolFacts facts{};
    facts.image_bytes = image_bytes;
    facts.image_bytes_max = header.image_bytes_max;
    const ImageGeometry geometry = respct::geometry_of(facts);
    std::memset(base + geometry.copies_offset, 0, geometry.heap_offset - geometry.copies_offset);
    make_heap_canonical(SpanTableView(respct::heap_options(facts, base)));
}

const CanonicalForm form("respct", &make_canonical);

}  // namespace

}  // namespace stillpoint::explorer
