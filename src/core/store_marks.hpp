#pragma once
// The one channel by which stores into durable memory are announced to the engine that runs: by this library's own code (heap, directory of
// handles, durable globals, system calls), which no compiler pass has seen, by the hooks of instrumented programs, and by sp_mark_written.
// announce_store() comes before a store, or a range of them, for engines that keep the old bytes; note_store() comes after. Where no
// engine wants them each is a load and a branch; where cards are wanted they are marked in line; otherwise the engine is called. Words of
// core/logged_words.hpp are not announced: they keep their old value themselves.
//
// Cards, order [DESIGN, Trackers]: store; test the line's card; set it, and then the page's, if it is not set. The collector: take the
// pages' cards; membarrier; take their lines' cards; membarrier; copy. A store whose test came too early to see that a card was taken is
// then in the copy; one whose test of the page's card came too early is among the lines. A mark may come late, but never
// after the release that ends its FASE.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/sync.hpp"
#include "nvhooks/abi/nvhooks_abi.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::store_marks {

static_assert(NVHOOKS_WINDOW_SHIFT == SP_WINDOW_SHIFT);
static_assert(SP_WINDOW_INDEX == NVHOOKS_WINDOW_INDEX || SP_WINDOW_INDEX == NVHOOKS_WINDOW_INDEX_UNDER_TSAN);

inline constexpr std::uintptr_t table_address = NVHOOKS_CARD_TABLE_FOR(std::uintptr_t{SP_WINDOW_INDEX});
inline constexpr std::uintptr_t tables_bytes = NVHOOKS_CARD_TABLE_BYTES + NVHOOKS_COARSE_TABLE_BYTES;
inline constexpr std::uintptr_t card_bias = NVHOOKS_CARD_BIAS_FOR(std::uintptr_t{SP_WINDOW_INDEX});
inline constexpr std::uintptr_t page_card_bias = NVHOOKS_COARSE_BIAS_FOR(std::uintptr_t{SP_WINDOW_INDEX});
inline constexpr std::uint8_t written = NVHOOKS_CARD_WRITTEN;

/// How the engine that runs wants to know of stores.
enum class Wanted : std::uint8_t {
    nothing,
    cards,  ///< it reads the cards; the table is mapped
    calls,  ///< it is called
};
[[gnu::visibility("hidden")]] extern constinit std::atomic<Wanted> wanted;
/// Called after a store to [address, + size_bytes), which begins in the window: by any thread, inside a FASE or not. No malloc.
using AfterStore = void (*)(const void* address, std::size_t size_bytes) noexcept;
[[gnu::visibility("hidden")]] extern constinit std::atomic<AfterStore> after_store;
/// Called in its place where the bytes say whether one block of the heap is allocated, and nothing else: for engines that make an
/// allocation durable with the transaction that makes it.
[[gnu::visibility("hidden")]] extern constinit std::atomic<AfterStore> after_block_state;

/// Called in its place where the program has stored, or the library into memory that is the calling thread's own: for engines to which it
/// matters that other threads may use the library's tables at once.
[[gnu::visibility("hidden")]] extern constinit std::atomic<AfterStore> after_program_store;

/// Called at the end of a StoreGroup, and where a block of its is freed, with its ranges: they become durable together. nullptr: no engine
/// wants them.
using GroupedStores = void (*)(std::span<const std::span<const std::byte>> ranges) noexcept;
[[gnu::visibility("hidden")]] extern constinit std::atomic<GroupedStores> grouped_stores;

/// Called before a store to [address, + size_bytes), which begins in the window, and of a system call may reach beyond it. The bytes are
/// still the old ones; several calls may come for one store, and the store may be left out. Any thread, inside a FASE or not; the call
/// makes no store that is announced. No malloc. To open a protected page before a store is another matter: Engine::prepare_kernel_write.
using BeforeStore = void (*)(const void* address, std::size_t size_bytes) noexcept;
/// nullptr: no engine wants them.
[[gnu::visibility("hidden")]] extern constinit std::atomic<BeforeStore> before_store;

/// Called before other threads may be given blocks that the calling thread has freed: until then only that thread takes them again. No
/// malloc. nullptr: no engine wants to know.
using BeforeBlocksPass = void (*)() noexcept;
[[gnu::visibility("hidden")]] extern constinit std::atomic<BeforeBlocksPass> before_blocks_pass;

/// The engine gets marked cards, or calls, from here on. One engine at a time; the card table must be mapped.
void want_cards() noexcept;
void want_calls(AfterStore call) noexcept;
void want_calls(AfterStore call, AfterStore block_state_call) noexcept;
void want_calls(AfterStore call, AfterStore block_state_call, AfterStore program_call) noexcept;
/// The engine gets calls before stores too, or only those.
void want_calls_before(BeforeStore call) noexcept;
/// Block states and records of the directory that a thread stores in a StoreGroup come by `call` alone.
void want_groups(GroupedStores call) noexcept;
void want_passing_blocks(BeforeBlocksPass call) noexcept;
/// The engine gets nothing more; also called in a child made by fork. Calls that have begun may still come.
void want_nothing() noexcept;

/// The card of a line of memory.
[[nodiscard]] inline std::uint8_t* card_of(std::uintptr_t address) noexcept
{
    return reinterpret_cast<std::uint8_t*>((address >> NVHOOKS_CARD_SHIFT) + card_bias);
}
[[nodiscard]] inline std::uint8_t* page_card_of(std::uintptr_t address) noexcept
{
    return reinterpret_cast<std::uint8_t*>((address >> NVHOOKS_COARSE_SHIFT) + page_card_bias);
}

/// Threads that write lines of one page share its card's line: it is stored to once.
inline void mark_page(std::uint8_t& page_card) noexcept
{
    const sync::AtomicRef<std::uint8_t> mark_of_page(page_card);
    if (mark_of_page.load(std::memory_order_relaxed) == 0) {
        mark_of_page.store(written, std::memory_order_release);
    }
}

/// Called after the stores. The compiler keeps this order by the fence here, the CPU by the collector's membarrier.
[[gnu::always_inline]] inline void mark_card(std::uint8_t& card, std::uint8_t& page_card) noexcept
{
    sync::compiler_fence(std::memory_order_seq_cst);
    const sync::AtomicRef<std::uint8_t> mark_of_line(card);
    if ((mark_of_line.load(std::memory_order_relaxed) & written) == 0) {
        mark_of_line.store(written, std::memory_order_relaxed);
        sync::compiler_fence(std::memory_order_seq_cst);
        mark_page(page_card);
    }
}

/// The collector: the cards of pages in `mask`, which are clear now. One locked instruction, so that a mark that comes in between is kept.
/// While the program runs, order_copies_after_clear() must follow before the lines of those pages are examined.
template <class Word>
[[nodiscard]] inline Word take_marks(Word& word, Word mask) noexcept
{
    const sync::AtomicRef<Word> marks(word);
    if ((marks.load(std::memory_order_relaxed) & mask) == 0) {
        return 0;
    }
    return mask == static_cast<Word>(~Word{0}) ? marks.exchange(0, std::memory_order_acquire)
                                               : marks.fetch_and(static_cast<Word>(~mask), std::memory_order_acquire) & mask;
}

/// The collector: bit 0 of each byte of `word` that is marked. Those bytes are `tag` from now on, an even number; the others stay.
/// As after take_marks(), order_copies_after_clear() follows before the copies.
template <class Word>
[[nodiscard]] inline Word take_lines(Word& word, std::uint8_t tag) noexcept
{
    constexpr Word ones = static_cast<Word>(~Word{0}) / 0xff;
    const sync::AtomicRef<Word> cards(word);
    Word seen = cards.load(std::memory_order_relaxed);
    for (;;) {
        const Word marked = seen & (ones * written);
        if (marked == 0) {
            return 0;
        }
        const Word taken = static_cast<Word>((seen & static_cast<Word>(~(marked * 0xff))) | (marked * tag));
        if (cards.compare_exchange_strong(seen, taken, std::memory_order_acquire, std::memory_order_relaxed)) {
            return marked;
        }
    }
}

/// Cards of lines that were copied ahead for the running epoch, and not written since, have this value; 0: no engine copies ahead.
/// tag_of_none: each release of a lock is marked.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint8_t> taken_tag;
inline constexpr std::uint8_t tag_of_none = 1;

/// All cards that can be marked are those of memory in here (os/card_table.cpp). Empty: none.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uintptr_t> cards_begin;
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uintptr_t> cards_end;

/// Marks the cards of [address, + size) as far as there are cards.
inline void mark(const void* address, std::size_t size) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = cards_end.load(std::memory_order_relaxed);
    if (begin < cards_begin.load(std::memory_order_relaxed) || begin >= end || size == 0) {
        return;
    }
    const std::uintptr_t last = size < end - begin ? begin + size - 1 : end - 1;
    constexpr std::uintptr_t line_bytes = std::uintptr_t{1} << NVHOOKS_CARD_SHIFT;
    for (std::uintptr_t at = begin & ~(line_bytes - 1); at <= last; at += line_bytes) {
        mark_card(*card_of(at), *page_card_of(at));
    }
}

/// A lock at [address, + size) is free again, as it was before it was acquired, and the FASE goes on: its cards are marked only if a
/// copy was made ahead in this epoch, which may have it as held.
inline void mark_free_lock(const void* address, std::size_t size) noexcept
{
    const std::uint8_t tag = taken_tag.load(std::memory_order_relaxed);
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (tag == 0 || (begin >> SP_WINDOW_SHIFT) != SP_WINDOW_INDEX) {
        return;
    }
    sync::compiler_fence(std::memory_order_seq_cst);
    const std::uintptr_t ends[] = {begin, begin + size - 1};
    for (const std::uintptr_t end : ends) {
        if (tag == tag_of_none || sync::AtomicRef<std::uint8_t>(*card_of(end)).load(std::memory_order_relaxed) == tag) {
            mark_card(*card_of(end), *page_card_of(end));
        }
    }
}

}  // namespace stillpoint::store_marks

namespace stillpoint {

/// Called before a store into memory that may be durable, inside its FASE. Any thread.
[[gnu::always_inline]] inline void announce_store(const void* address, std::size_t size) noexcept
{
    const auto call = store_marks::before_store.load(std::memory_order_acquire);
    if (call != nullptr) [[unlikely]] {
        if (size != 0 && stillpoint_is_persistent(address)) {
            call(address, size);
        }
    }
}

namespace store_marks {

/// The heap: see BeforeBlocksPass.
inline void announce_passing_blocks() noexcept
{
    if (const BeforeBlocksPass call = before_blocks_pass.load(std::memory_order_acquire); call != nullptr) [[unlikely]] {
        call();
    }
}

[[gnu::always_inline]] inline void note(const void* address, std::size_t size, const std::atomic<AfterStore>& call) noexcept
{
    const auto is_wanted = wanted.load(std::memory_order_relaxed);
    if (is_wanted != Wanted::nothing) [[unlikely]] {
        if (is_wanted == Wanted::cards) {
            mark(address, size);
        } else if (stillpoint_is_persistent(address)) {
            call.load(std::memory_order_relaxed)(address, size);
        }
    }
}

}  // namespace store_marks

/// Called after a store into memory that may be durable, and before the FASE ends. Any thread.
inline void note_store(const void* address, std::size_t size) noexcept { store_marks::note(address, size, store_marks::after_store); }

/// As note_store(), of a store by the program, or into memory that only the calling thread uses. Any thread.
inline void note_program_store(const void* address, std::size_t size) noexcept
{
    store_marks::note(address, size, store_marks::after_program_store);
}

/// While it lives, what the calling thread stores to say which blocks and names exist belongs together, for engines that make each store
/// durable by itself: a name and its block come, or go, as one. The caller holds the lock of the directory.
class StoreGroup {
public:
    StoreGroup() noexcept : is_outermost_(own_ == nullptr && store_marks::grouped_stores.load(std::memory_order_acquire) != nullptr)
    {
        if (is_outermost_) {
            own_ = this;
        }
    }
    ~StoreGroup()
    {
        if (is_outermost_) {
            own_ = nullptr;
            flush();
        }
    }
    StoreGroup(const StoreGroup&) = delete;
    StoreGroup& operator=(const StoreGroup&) = delete;

    /// The calling thread's; nullptr: it is in none.
    [[nodiscard]] static StoreGroup* own() noexcept { return own_; }
    void add(const void* address, std::size_t size) noexcept
    {
        if (count_ == ranges_.size()) {
            flush();
        }
        ranges_[count_++] = {static_cast<const std::byte*>(address), size};
        // Another thread may be given a freed block as soon as this one goes on.
        constexpr std::size_t block_state_bytes_max = 4;
        bool is_free = size <= block_state_bytes_max;
        for (std::size_t i = 0; i < size && is_free; ++i) {
            is_free = static_cast<const std::byte*>(address)[i] == std::byte{0};
        }
        if (is_free) {
            flush();
        }
    }

private:
    void flush() noexcept
    {
        const auto call = store_marks::grouped_stores.load(std::memory_order_acquire);
        if (count_ != 0 && call != nullptr) {
            call({ranges_.data(), count_});
        }
        count_ = 0;
    }

    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] static constinit thread_local StoreGroup* own_;
    bool is_outermost_;
    std::size_t count_ = 0;
    std::array<std::span<const std::byte>, 32> ranges_;
};

/// As note_store(), of the bytes that say whether one block, or one name, exists.
inline void note_block_state(const void* address, std::size_t size) noexcept
{
    const auto wanted = store_marks::wanted.load(std::memory_order_relaxed);
    if (wanted == store_marks::Wanted::nothing) [[likely]] {
        return;
    }
    if (wanted == store_marks::Wanted::cards) {
        store_marks::mark(address, size);
    } else if (StoreGroup* const group = StoreGroup::own(); group != nullptr) {
        group->add(address, size);
    } else if (stillpoint_is_persistent(address)) {
        store_marks::after_block_state.load(std::memory_order_relaxed)(address, size);
    }
}

/// A lock was released that was acquired in the same FASE, which has not ended. Its bytes are what they were before.
inline void note_lock_free(const void* address, std::size_t size) noexcept { store_marks::mark_free_lock(address, size); }

/// Marks a store to a lock's bytes. Engines that are called do not keep them: recovery makes locks free.
inline void note_lock_store(const void* address, std::size_t size) noexcept
{
    if (store_marks::wanted.load(std::memory_order_relaxed) == store_marks::Wanted::cards) [[unlikely]] {
        store_marks::mark(address, size);
    }
}

}  // namespace stillpoint
