// A region of a page is overwritten, page after page at random: the microbenchmark of [NVthreads §3, Figure 3].
// The value size is the region's length; a lock for each page makes its overwriting one operation.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "../structures/progress.hpp"
#include "engine_job.hpp"
#include "makers.hpp"

namespace bench {
namespace {

using E = CurrentEngine;

class PageRegions final : public Workload {
public:
    PageRegions(const Shape& shape, std::uint64_t pages)
        : pages_(pages), length_(std::min<std::uint64_t>(shape.value_bytes, page_bytes)),
          root_(static_cast<Root*>(E::root("bench.page_regions", sizeof(Root))))
    {
    }

    void load() override
    {
        E::Operation<1> operation;
        operation.lock(root_->making);
        if (root_->pages != nullptr) {
            return;
        }
        auto* pages = static_cast<std::byte*>(E::allocate_aligned(page_bytes, pages_ * page_bytes));
        std::memset(pages, 0, pages_ * page_bytes);
        auto* states = static_cast<State*>(E::allocate_aligned(64, pages_ * sizeof(State)));
        std::memset(static_cast<void*>(states), 0, pages_ * sizeof(State));
        root_->states = states;
        root_->pages = pages;
    }
    void perform(Context& context, unsigned count) override
    {
        State* const states = root_->states;
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t page = context.random.below(pages_);
            const std::uint64_t begin = context.random.below(page_bytes - length_ + 1);
            const auto content = static_cast<std::uint64_t>(context.random.below(256));
            E::Operation<1> operation;
            operation.lock(states[page].mutex);
            std::byte* const region = root_->pages + page * page_bytes + begin;
            E::about_to_write(region, length_);
            std::memset(region, static_cast<int>(content), length_);
            states[page].begin = begin;
            states[page].content = content;
            context.changed_bytes += length_;
        }
    }
    /// The newest write to a page is there from its first byte to its last.
    std::string fault() override
    {
        for (std::uint64_t page = 0; page < pages_; ++page) {
            const std::byte* const region = root_->pages + page * page_bytes + root_->states[page].begin;
            const auto content = static_cast<std::byte>(static_cast<std::uint64_t>(root_->states[page].content));
            if (!std::all_of(region, region + length_, [content](std::byte one) { return one == content; })) {
                return "the region written last to page " + std::to_string(page) + " is torn";
            }
        }
        return {};
    }
    void settle() override { E::settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) override { progress_.note(thread, operations); }
    std::uint64_t noted_progress(unsigned thread) override { return progress_.noted(thread); }

private:
    static constexpr std::uint64_t page_bytes = 4096;
    /// Apart from its page, so that a page has nothing but data, as in the paper.
    struct alignas(64) State {
        E::Mutex mutex;
        E::Durable<std::uint64_t> begin;
        E::Durable<std::uint64_t> content;
    };
    struct Root {
        E::Mutex making;
        E::Durable<std::byte*> pages;
        E::Durable<State*> states;
    };

    const std::uint64_t pages_;
    const std::uint64_t length_;
    Root* const root_;
    Progress<E> progress_;
};

}  // namespace

Work make_page_regions(const Shape& shape) { return {std::make_unique<PageRegions>(shape, shape.size_or(1000, 64)), nullptr}; }

}  // namespace bench
