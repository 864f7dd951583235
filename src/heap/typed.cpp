// Typed spans: their layouts in the image, and the tags by which the heap tells them apart.

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <pthread.h>

#include "arch/checksum.hpp"
#include "heap/layout_table.hpp"
#include "heap/thread_cache.hpp"

namespace stillpoint {

using namespace heap;

namespace heap {

namespace {

constexpr std::uint64_t layout_checksum_seed = 0x535454595045444c;

std::uint64_t layout_checksum(const LayoutRecord& record) noexcept
{
    return checksum64(&record, offsetof(LayoutRecord, checksum), layout_checksum_seed);
}

/// The alignment of a member; its kind is one that member_bytes() knows.
std::size_t member_alignment(unsigned kind) noexcept
{
    static_assert(alignof(pthread_cond_t) == alignof(pthread_mutex_t) && alignof(pthread_rwlock_t) == alignof(pthread_mutex_t));
    switch (kind) {
    case member_kind::word_mutex:
    case member_kind::word_condition: return alignof(std::uint32_t);
    default: return kind < logged::kinds ? logged::total_bytes(kind) : alignof(pthread_mutex_t);
    }
}

/// Members ascending, aligned, inside the stride.
bool members_are_sound(const LayoutRecord& record) noexcept
{
    if (record.stride_bytes == 0 || record.member_count > LayoutRecord::members_max) {
        return false;
    }
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < record.member_count; ++i) {
        const LayoutRecord::Member& member = record.members[i];
        const std::size_t bytes = member_bytes(member.kind);
        const std::size_t alignment = member_alignment(member.kind);
        if (bytes == 0 || member.count == 0 || member.offset_bytes < end || member.offset_bytes % alignment != 0 ||
            record.stride_bytes % alignment != 0) {
            return false;
        }
        end = member.offset_bytes + std::uint64_t{member.count} * bytes;
    }
    return end <= record.stride_bytes;
}

}  // namespace

std::size_t layout_alignment(const LayoutRecord& record) noexcept
{
    std::size_t alignment = 1;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(record.member_count, LayoutRecord::members_max); ++i) {
        alignment = std::max(alignment, member_alignment(record.members[i].kind));
    }
    return alignment;
}

std::size_t member_bytes(unsigned kind) noexcept
{
    if (kind < logged::kinds) {
        return logged::total_bytes(kind);
    }
    switch (kind) {
    case member_kind::pthread_mutex: return sizeof(pthread_mutex_t);
    case member_kind::pthread_condition: return sizeof(pthread_cond_t);
    case member_kind::pthread_rwlock: return sizeof(pthread_rwlock_t);
    case member_kind::word_mutex:
    case member_kind::word_condition: return word_lock_bytes;
    default: return 0;
    }
}

Result<void> check_layouts(const SpanTableView& table)
{
    const LayoutTable& layouts = table.layouts();
    if (layouts.count.value > LayoutTable::records_max) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "the heap's table names {} layouts, of which it can hold {}: the pool is damaged; restore it from a copy",
                    layouts.count.value, LayoutTable::records_max);
    }
    for (std::uint64_t i = 0; i < layouts.count.value; ++i) {
        const LayoutRecord& record = layouts.records[i];
        if (record.checksum != layout_checksum(record) || !members_are_sound(record) ||
            strnlen(record.type_name, sizeof record.type_name) == sizeof record.type_name) {
            return fail(SP_E_POOL_CORRUPT, 0, "layout {} of the heap's typed spans is broken: the pool is damaged; restore it from a copy",
                        i + 1);
        }
    }
    return {};
}

Result<std::uint32_t> tag_for(HeapState& state, std::uint16_t layout, std::uint32_t size_class) noexcept
{
    const auto find = [&](std::uint32_t count) noexcept {
        std::uint32_t i = 0;
        while (i < count && (state.typed[i].layout != layout || state.typed[i].size_class != size_class)) {
            ++i;
        }
        return i;
    };
    const std::uint32_t seen = state.typed_count.load(std::memory_order_acquire);
    if (const std::uint32_t i = find(seen); i != seen) {
        return typed_tag + i;
    }
    const std::lock_guard hold(state.types_lock);
    const std::uint32_t count = state.typed_count.load(std::memory_order_relaxed);
    if (const std::uint32_t i = find(count); i != count) {
        return typed_tag + i;
    }
    if (count == typed_count_max) {
        return fail(
            SP_E_NO_SPACE, 0,
            "the program has small objects of more than {} layouts and sizes; let types share a layout, or allocate them in larger arrays",
            typed_count_max);
    }
    state.typed[count] = {layout, static_cast<std::uint16_t>(size_class)};
    state.class_by_tag[typed_tag + count] = size_classes[size_class];
    state.typed_count.store(count + 1, std::memory_order_release);
    return typed_tag + count;
}

}  // namespace heap

Result<std::uint16_t> Heap::find_layout(const ObjectLayout& layout) noexcept
{
    LayoutRecord wanted{};
    wanted.stride_bytes = layout.size_bytes;
    wanted.member_count = static_cast<std::uint32_t>(layout.members.size());
    if (layout.type_name != nullptr) {
        std::strncpy(wanted.type_name, layout.type_name, sizeof wanted.type_name - 1);
    }
    if (layout.members.size() > LayoutRecord::members_max) {
        return fail(
            SP_E_INVALID_ARGUMENT, 0,
            "type {} has its logged variables and locks in more than {} places; put neighbours of one size into arrays, or split it",
            wanted.type_name, LayoutRecord::members_max);
    }
    std::transform(layout.members.begin(), layout.members.end(), wanted.members,
                   [](const ObjectLayout::Member& member) { return LayoutRecord::Member{member.offset_bytes, member.kind, member.count}; });
    if (!members_are_sound(wanted) || !std::has_single_bit(layout.alignment_bytes) || layout.alignment_bytes > page_bytes ||
        layout.alignment_bytes < layout_alignment(wanted) || layout.size_bytes % layout.alignment_bytes != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "the layout of type {} contradicts itself: members in ascending order, aligned, inside {} bytes are expected",
                    wanted.type_name, layout.size_bytes);
    }
    wanted.checksum = layout_checksum(wanted);
    HeapState& state = state_of(*this);
    const std::lock_guard hold(state.types_lock);
    const std::uint64_t count = logged::load(state.layouts->count);
    for (std::uint64_t i = 0; i < count; ++i) {
        if (std::memcmp(&state.layouts->records[i], &wanted, sizeof wanted) == 0) {
            return static_cast<std::uint16_t>(i + 1);
        }
    }
    if (count == LayoutTable::records_max) {
        return fail(SP_E_NO_SPACE, 0, "the pool already has {} layouts, the maximum; there is no room for {}", count, wanted.type_name);
    }
    LayoutRecord& record = state.layouts->records[count];
    announce_table_store(&record, sizeof record);
    std::memcpy(&record, &wanted, sizeof record);
    note_table_store(&record, sizeof record);
    logged::store(state.layouts->count, count + 1);
    return static_cast<std::uint16_t>(count + 1);
}

std::uint16_t Heap::layout_number_of(const void* block) const noexcept
{
    const HeapState& state = state_of(*this);
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - state.spans_base);
    return offset >> span_shift < state.spans_max ? load_span_word(state, offset >> span_shift).layout() : std::uint16_t{0};
}

bool Heap::is_member(const void* address, unsigned kind) const noexcept
{
    const HeapState& state = state_of(*this);
    const Block block = find_block(address);
    if (block.begin == nullptr || !state.tables_are_logged) {
        return false;
    }
    const auto span = static_cast<std::uint64_t>(block.begin - state.spans_base) >> span_shift;
    const std::uint16_t layout = load_span_word(state, span).layout();
    if (layout == 0) {
        return false;
    }
    const LayoutRecord& record = state.layouts->records[layout - 1];
    const auto inside = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - block.begin) % record.stride_bytes;
    return std::any_of(record.members, record.members + record.member_count, [&](const LayoutRecord::Member& member) {
        const std::size_t bytes = member_bytes(member.kind);
        return member.kind == kind && inside >= member.offset_bytes && inside < member.offset_bytes + member.count * bytes &&
               (inside - member.offset_bytes) % bytes == 0;
    });
}

}  // namespace stillpoint
