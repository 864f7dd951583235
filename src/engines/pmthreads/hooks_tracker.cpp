// The tracker of PMThreads-I [PMThreads §3.2]: the program's code, instrumented by the compiler pass, marks the
// card of each line that it stores to, and the page's, and a look reads the cards. No page is protected, no store faults,
// and no look walks the heap: 1 GiB of it has 256 KiB of cards of pages, and only below those that are set are those of lines looked at.
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
#include "os/reserved_array.hpp"

namespace stillpoint::pmthreads {

namespace {

static_assert(NVHOOKS_COARSE_SHIFT == page_shift && std::uint64_t{1} << NVHOOKS_CARD_SHIFT == cache_line_bytes,
              "docs/internals/decisions/card-granularity.md");

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

    [[nodiscard]] Result<void> reserve(std::uint64_t image_bytes_max)
    {
        return lines_.reserve(image_bytes_max / page_bytes, "the written lines of pages");
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "hooks"; }

    [[nodiscard]] Result<void> add_range(std::byte* begin, std::size_t size, std::size_t served_bytes) override
    {
        if (served_bytes != 0) {
            if (auto done = uffd_->register_range(begin, served_bytes, true); !done) {
                return done;
            }
        }
        const auto first = reinterpret_cast<std::uintptr_t>(begin);
        if (base_ == 0) {
            base_ = first;
        }
        // An earlier session's, or of code that marks without a pool.
        clear(first, first + size);
        store_marks::want_cards();
        // Before a copy is made ahead.
        store_marks::taken_tag.store(tag_, std::memory_order_relaxed);
        return {};
    }

    /// The pages' cards, membarrier, the lines' cards below them, membarrier; the caller copies afterwards. A thread that stored and found
    /// its card set did so before it was taken: the membarrier makes its store visible to the copy. In a quiescent state every
    /// mark is there, every store is visible, and no thread that comes later can see the cards as they were.
    [[nodiscard]] std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, ScanMode scan_mode, WrittenRun* runs,
                                         std::size_t capacity, std::size_t& count) noexcept override
    {
        count = 0;
        if (scan_mode == ScanMode::background && !has_membarrier_) {
            return end;
        }
        const std::uintptr_t stopped = take_cards(begin, end, runs, capacity, count);
        if (count != 0) {
            order_copies(scan_mode);
            for (std::size_t i = 0; i < count; ++i) {
                take_lines_of(runs[i]);
            }
            order_copies(scan_mode);
        }
        return stopped;
    }

    [[nodiscard]] bool has_lines() const noexcept override { return true; }
    [[nodiscard]] std::uint64_t take_found_lines(std::uint64_t image_page) noexcept override
    {
        return std::exchange(lines_[image_page], 0);
    }
    void take_whole_page(std::uint64_t image_page) noexcept override
    {
        constexpr Word tags = all_cards / 0xff;
        auto* const words = words_of_lines(base_ + image_page * page_bytes);
        for (std::uint64_t i = 0; i < words_of_page; ++i) {
            std::atomic_ref<Word>(words[i]).store(tags * tag_, std::memory_order_relaxed);
        }
    }
    void order_copies() noexcept override { os::order_copies_after_clear(); }
    /// The program is stopped. Tags of pages that are not captured again for 127 epochs come back as this one's: then a release marks its
    /// lock for nothing.
    void epoch_captured() noexcept override
    {
        constexpr std::uint8_t last_tag = 254;
        tag_ = static_cast<std::uint8_t>(tag_ == last_tag ? first_tag : tag_ + 2);
        store_marks::taken_tag.store(tag_, std::memory_order_relaxed);
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
    static constexpr std::uint8_t first_tag = 2;
    static constexpr std::uint64_t words_of_page = page_bytes / cache_line_bytes / cards_in_word;

    struct Cards {
        Word* word;
        Word mask;  ///< cards of the word that are asked for
        std::uintptr_t first_page;
    };

    static void order_copies(ScanMode scan_mode) noexcept
    {
        if (scan_mode == ScanMode::background) {
            os::order_copies_after_clear();
        }
    }

    [[nodiscard]] static Word* words_of_lines(std::uintptr_t page) noexcept { return reinterpret_cast<Word*>(store_marks::card_of(page)); }

    /// Bit 0 of each byte becomes one bit.
    [[nodiscard]] static std::uint64_t gathered(Word marked) noexcept { return (marked * 0x0102040810204080u) >> 56; }

    void take_lines_of(const WrittenRun& run) noexcept
    {
        constexpr std::uintptr_t pages_ahead = 8;
        for (std::uintptr_t page = run.begin; page < run.end; page += page_bytes) {
            __builtin_prefetch(words_of_lines(page + pages_ahead * page_bytes), 1);
            Word* const words = words_of_lines(page);
            std::uint64_t found = 0;
            for (std::uint64_t i = 0; i < words_of_page; ++i) {
                found |= gathered(store_marks::take_lines(words[i], tag_)) << (cards_in_word * i);
            }
            lines_[(page - base_) / page_bytes] |= found;
        }
    }

    /// The word of the card of `at`, without the cards before it and from `end` on.
    [[nodiscard]] static Cards cards_from(std::uintptr_t at, std::uintptr_t end) noexcept
    {
        const auto card = reinterpret_cast<std::uintptr_t>(store_marks::page_card_of(at));
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
        if (reinterpret_cast<std::uintptr_t>(store_marks::page_card_of(at)) % cards_in_word == 0) {
            while (end - at >= step_bytes && is_clear(reinterpret_cast<Word*>(store_marks::page_card_of(at)))) {
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
            for (Word set = were_set; set != 0; set &= set - 1) {
                Word* const words = words_of_lines(cards.first_page + static_cast<unsigned>(std::countr_zero(set)) / 8 * page_bytes);
                std::fill_n(words, words_of_page, Word{0});
            }
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
    bool has_membarrier_;  ///< without it only a stop may look
    std::uintptr_t base_ = 0;  ///< of the image
    std::uint8_t tag_ = first_tag;
    os::ReservedArray<std::uint64_t> lines_;  ///< by image page: what looks found, and take_found_lines() has not taken
};

}  // namespace

/// The engine has mapped the card table.
Result<std::unique_ptr<Tracker>> make_hooks_tracker(std::uint64_t image_bytes_max)
{
    static_assert(std::endian::native == std::endian::little, "a word's lowest byte is the card of its first page");
    auto uffd = os::Userfaultfd::open(os::Userfaultfd::Purpose::serving_only);
    auto tracker = std::make_unique<HooksTracker>(uffd ? std::optional(std::move(*uffd)) : std::nullopt, os::register_for_membarrier());
    if (auto reserved = tracker->reserve(image_bytes_max); !reserved) {
        return pass_on(reserved.error());
    }
    return tracker;
}

}  // namespace stillpoint::pmthreads
