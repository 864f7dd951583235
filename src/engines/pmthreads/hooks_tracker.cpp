// The tracker of PMThreads-I [PMThreads §3.2]: the program's code, instrumented by the compiler pass, marks the
// card of each page that it stores to, and a look reads the cards. No page is protected, no store faults,
// and no look walks the heap: 1 GiB of it has 256 KiB of cards.
//
// The paper protects a page that is still being persisted by a fault. Here the capture has its own copy of
// the page before the program continues, so a store to it meanwhile is a mark for the next epoch and nothing else.

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "os/card_order.hpp"

namespace stillpoint::pmthreads {

namespace {

static_assert(NVHOOKS_CARD_SHIFT == page_shift, "a card is a page: docs/internals/decisions/card-granularity.md");

/// Eight cards, taken at once.
using Word = std::uint64_t;
constexpr std::uint64_t cards_in_word = sizeof(Word);
constexpr Word all_cards = ~Word{0};

class HooksTracker final : public Tracker {
public:
    HooksTracker(std::optional<os::Userfaultfd> uffd, bool has_membarrier) noexcept
        : uffd_(std::move(uffd)), has_membarrier_(has_membarrier)
    {
    }
    HooksTracker(const HooksTracker&) = delete;
    HooksTracker& operator=(const HooksTracker&) = delete;
    ~HooksTracker() override { store_marks::want_nothing(); }

    [[nodiscard]] std::string_view name() const noexcept override { return "hooks"; }

    [[nodiscard]] Result<void> add_range(std::byte* begin, std::size_t size, std::size_t served_bytes) override
    {
        if (served_bytes != 0) {
            if (auto done = uffd_->register_range(begin, served_bytes, true); !done) {
                return done;
            }
        }
        // An earlier session's, or of code that marks without a pool.
        clear(reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(begin) + size);
        store_marks::want_cards();
        return {};
    }

    /// Clear, membarrier; the caller copies afterwards. A thread that stored and found its card set did so
    /// before the clear: the membarrier makes its store visible to the copy. In a quiescent state every
    /// mark is there, every store is visible, and no thread that comes later can see the cards as they were.
    [[nodiscard]] std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, ScanMode scan_mode, WrittenRun* runs,
                                         std::size_t capacity, std::size_t& count) noexcept override
    {
        count = 0;
        if (scan_mode == ScanMode::background && !has_membarrier_) {
            return end;
        }
        const std::uintptr_t stopped = take_cards(begin, end, runs, capacity, count);
        if (scan_mode == ScanMode::background && count != 0) {
            os::order_copies_after_clear();
        }
        return stopped;
    }
    [[nodiscard]] bool has_unarmed_pages() const noexcept override { return !has_membarrier_; }

    [[nodiscard]] bool allows_huge_pages() const noexcept override { return true; }
    [[nodiscard]] bool handle_fault(void* /*address*/) noexcept override { return false; }
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return false; }
    /// The kernel may write: the interposer marks what it has written.
    void prepare_kernel_write(void* /*address*/, std::size_t /*size*/) noexcept override {}
    [[nodiscard]] os::Userfaultfd* userfaultfd() noexcept override { return uffd_ ? &*uffd_ : nullptr; }
    /// The child's cards are its own copy: its code goes on marking, and the marks are not read.
    void detach_after_fork() noexcept override
    {
        store_marks::want_nothing();
        if (uffd_) {
            uffd_->close();
        }
    }

private:
    struct Cards {
        Word* word;
        Word mask;  ///< cards of the word that are asked for
        std::uintptr_t first_page;
    };

    /// The word of the card of `at`, without the cards before it and from `end` on.
    [[nodiscard]] static Cards cards_from(std::uintptr_t at, std::uintptr_t end) noexcept
    {
        const auto card = reinterpret_cast<std::uintptr_t>(store_marks::card_of(at));
        const std::uint64_t skipped = card % cards_in_word;
        const std::uintptr_t first_page = at - skipped * page_bytes;
        const std::uint64_t wanted = std::min((end - first_page) / page_bytes, cards_in_word);
        Word mask = all_cards << (8 * skipped);
        if (wanted != cards_in_word) {
            mask &= (Word{1} << (8 * wanted)) - 1;
        }
        return {reinterpret_cast<Word*>(card - skipped), mask, first_page};
    }

    /// Past words that hold no mark, four at a time: nearly all of a heap, nearly always.
    [[nodiscard]] static std::uintptr_t skip_clear(std::uintptr_t at, std::uintptr_t end) noexcept
    {
        constexpr std::uintptr_t step_words = 4;
        constexpr std::uintptr_t step_bytes = step_words * cards_in_word * page_bytes;
        const auto is_clear = [](Word* words) {
            Word any = 0;
            for (std::uintptr_t i = 0; i < step_words; ++i) {
                any |= std::atomic_ref<Word>(words[i]).load(std::memory_order_relaxed);
            }
            return any == 0;
        };
        if (reinterpret_cast<std::uintptr_t>(store_marks::card_of(at)) % cards_in_word == 0) {
            while (end - at >= step_bytes && is_clear(reinterpret_cast<Word*>(store_marks::card_of(at)))) {
                at += step_bytes;
            }
        }
        return at;
    }

    static void clear(std::uintptr_t begin, std::uintptr_t end) noexcept
    {
        for (std::uintptr_t at = begin; at < end;) {
            const Cards cards = cards_from(at, end);
            [[maybe_unused]] const Word were_set = store_marks::take_marks(*cards.word, cards.mask);
            at = cards.first_page + cards_in_word * page_bytes;
        }
    }

    /// Pages next to each other become one run. Returns where it stopped: before a word that may have more
    /// runs than there is room for.
    [[nodiscard]] static std::uintptr_t take_cards(std::uintptr_t begin, std::uintptr_t end, WrittenRun* runs, std::size_t capacity,
                                                   std::size_t& count) noexcept
    {
        constexpr std::size_t runs_in_word_max = cards_in_word / 2;
        for (std::uintptr_t at = begin; (at = skip_clear(at, end)) < end;) {
            const Cards cards = cards_from(at, end);
            const std::uintptr_t next = cards.first_page + cards_in_word * page_bytes;
            if (capacity - count < runs_in_word_max) {
                return at;
            }
            for (Word set = store_marks::take_marks(*cards.word, cards.mask); set != 0;) {
                const auto card = static_cast<unsigned>(std::countr_zero(set)) / 8;
                const std::uintptr_t page = cards.first_page + card * page_bytes;
                if (count != 0 && runs[count - 1].end == page) {
                    runs[count - 1].end += page_bytes;
                } else {
                    runs[count++] = {page, page + page_bytes, true};
                }
                set &= ~(Word{0xff} << (8 * card));
            }
            at = std::min(next, end);
        }
        return end;
    }

    std::optional<os::Userfaultfd> uffd_;  ///< serves pages that are not loaded yet; nothing else
    bool has_membarrier_;                  ///< without it only a stop may look
};

}  // namespace

/// The engine has mapped the card table.
Result<std::unique_ptr<Tracker>> make_hooks_tracker(std::uint64_t /*image_bytes_max*/)
{
    static_assert(std::endian::native == std::endian::little, "a word's lowest byte is the card of its first page");
    auto uffd = os::Userfaultfd::open(os::Userfaultfd::Purpose::serving_only);
    return std::make_unique<HooksTracker>(uffd ? std::optional(std::move(*uffd)) : std::nullopt, os::register_for_membarrier());
}

}  // namespace stillpoint::pmthreads
