#include "heap/logged_recovery.hpp"

#include <cstring>

#include "core/canary.hpp"
#include "heap/layout_table.hpp"

namespace stillpoint::heap {

namespace {

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

enum class Settled { no, line_must_be_written, taken_back };

/// Takes the variable back, or, where `leaves` is set, says only whether it must be. The line must also be written of one of the durable
/// epoch: an earlier recovery may have rolled it back in the caches, and been killed before it was durable. Its memory then still has
/// the epoch that a later commit would vouch for.
Settled settle(std::byte* variable, unsigned kind, std::uint64_t durable, bool after_crash, bool leaves) noexcept
{
    if (leaves ? logged::must_be_rolled_back(variable, kind, durable) : logged::roll_back(variable, kind, durable)) {
        return Settled::taken_back;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, variable + logged::total_bytes(kind) - sizeof word, sizeof word);
    const bool again = after_crash && word >> 1 == durable && !is_removed(Canary::recovered_lines_again);
    return again ? Settled::line_must_be_written : Settled::no;
}

}  // namespace

void HeapRollback::settle_and_tell(std::byte* variable, unsigned kind, const Work& work, bool leaves, std::uint64_t& taken_back)
{
    const Settled settled = settle(variable, kind, durable_, after_crash_, leaves);
    taken_back += settled == Settled::taken_back ? 1u : 0u;
    if (settled != Settled::no && work.changed != nullptr) {
        work.changed(work.context, variable, kind, settled == Settled::taken_back);
    }
}

void HeapRollback::roll_back_words(std::byte* words, std::size_t count, const Work& work, std::uint64_t& taken_back)
{
    for (std::size_t i = 0; i < count; ++i) {
        settle_and_tell(words + i * sizeof(logged::Word), logged::kind_of_word, work, false, taken_back);
    }
}

Result<std::uint64_t> HeapRollback::roll_back_tables(const Work& work)
{
    std::uint64_t taken_back = 0;
    roll_back_words(reinterpret_cast<std::byte*>(&table_.layouts().count), 1, work, taken_back);
    roll_back_words(reinterpret_cast<std::byte*>(&table_.logged_word(0)), table_.spans(), work, taken_back);
    if (auto sound = check_layouts(table_); !sound) {
        return pass_on(sound.error());
    }
    for (std::uint64_t span = 0; span < table_.spans();) {
        const auto covered = table_.validate(span);
        if (!covered) {
            return pass_on(covered.error());
        }
        span += *covered;
    }
    return taken_back;
}

std::uint64_t HeapRollback::roll_back_spans(std::uint64_t first, std::uint64_t end, const Work& work)
{
    std::uint64_t taken_back = 0;
    for (std::uint64_t span = first; span < end; ++span) {
        const SpanWord word = table_.word(span);
        const SpanEntry entry = word.entry();
        if (entry.kind() == SpanKind::small) {
            roll_back_small(span, word, work, taken_back);
        } else if (entry.kind() == SpanKind::large && word.layout() != 0) {
            roll_back_objects(table_.span_address(span), std::uint64_t{entry.payload()} * span_bytes,
                              table_.layouts().records[word.layout() - 1], work, taken_back);
        }
    }
    return taken_back;
}

void HeapRollback::roll_back_small(std::uint64_t span, SpanWord word, const Work& work, std::uint64_t& taken_back)
{
    const SizeClass& c = size_classes[word.entry().payload()];
    if (!has_coarse_marks(c)) {
        roll_back_words(table_.fine_marks(span, c), (c.blocks + 63) / 64, work, taken_back);
    }
    if (word.layout() == 0) {
        return;
    }
    const LayoutRecord& layout = table_.layouts().records[word.layout() - 1];
    for_each_live_block(table_, span, c, [&](std::byte* block) { roll_back_objects(block, c.block_bytes, layout, work, taken_back); });
}

void HeapRollback::roll_back_objects(std::byte* begin, std::uint64_t bytes, const LayoutRecord& layout, const Work& work,
                                     std::uint64_t& taken_back)
{
    for (std::uint64_t at = 0; at + layout.stride_bytes <= bytes; at += layout.stride_bytes) {
        for (std::uint32_t m = 0; m < layout.member_count; ++m) {
            const LayoutRecord::Member& member = layout.members[m];
            const std::size_t size = member_bytes(member.kind);
            std::byte* variable = begin + at + member.offset_bytes;
            for (std::uint32_t i = 0; i < member.count; ++i, variable += size) {
                if (member.kind >= logged::kinds) {
                    if (work.reset_lock != nullptr) {
                        work.reset_lock(work.context, variable, member.kind);
                    }
                } else {
                    settle_and_tell(variable, member.kind, work, work.leaves_objects, taken_back);
                }
            }
        }
    }
}

}  // namespace stillpoint::heap
