#include "engines/respct/layouts.hpp"

#include <algorithm>
#include <array>

#include "core/logged_words.hpp"
#include "heap/heap_layout.hpp"

namespace stillpoint::respct {

namespace {

namespace member_kinds = heap::member_kind;

// The numbers in pool files equal those of the public header.
static_assert(SP_RESPCT_LOGGED_1 == 0 && SP_RESPCT_LOGGED_16 + 1 == logged::kinds && SP_RESPCT_LOGGED_8 == logged::kind_of_word);
static_assert(SP_RESPCT_PTHREAD_MUTEX == member_kinds::pthread_mutex && SP_RESPCT_PTHREAD_CONDITION == member_kinds::pthread_condition);
static_assert(SP_RESPCT_PTHREAD_RWLOCK == member_kinds::pthread_rwlock);
static_assert(SP_RESPCT_MUTEX == member_kinds::word_mutex && SP_RESPCT_CONDITION == member_kinds::word_condition);
static_assert(sizeof(sp_respct_mutex) == heap::word_lock_bytes && sizeof(sp_respct_condition) == heap::word_lock_bytes);
static_assert(sizeof(sp_respct_logged) == sizeof(logged::Word) && alignof(sp_respct_logged) == alignof(logged::Word));

}  // namespace

Result<std::uint16_t> find_layout(Heap& heap, const sp_respct_layout& layout) noexcept
{
    std::array<Heap::ObjectLayout::Member, heap::LayoutRecord::members_max + 1> members{};
    const auto count = std::min<std::size_t>(layout.member_count, members.size());  // The heap refuses what has more than it can keep.
    std::transform(layout.members, layout.members + count, members.begin(), [](const sp_respct_member& member) {
        return Heap::ObjectLayout::Member{member.offset_bytes, member.kind, member.count};
    });
    return heap.find_layout({layout.type_name, layout.size_bytes, layout.alignment_bytes, {members.data(), count}});
}

}  // namespace stillpoint::respct
