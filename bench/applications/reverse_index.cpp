// Reverse index: from pages with links to, for each link, the sorted list of the pages that have it.
//
// Durable: a hash table of the links, filled from about 16 KiB of pages at a time (word_table.hpp); for each link an array of page
// numbers that grows by doubling. When all pages are read, each thread sorts the lists of its share of the table.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "text_hash.hpp"
#include "texts.hpp"
#include "word_table.hpp"

namespace bench {
namespace {

constexpr std::size_t batch_bytes = 16384;
constexpr std::string_view link_begin = "<a href=\"";

class ReverseIndex final : public EngineJob {
public:
    ReverseIndex(const Shape& shape, std::uint64_t page_bytes) : EngineJob(shape), page_bytes_(page_bytes) {}

    void load() override
    {
        pages_ = make_pages(page_bytes_);
        index_expected();
        table_.emplace("bench.reverse_index.table");
    }
    void prepare() override
    {
        table_->clear([](List& list) {
            if (list.pages != nullptr) {
                E::deallocate(static_cast<std::uint32_t*>(list.pages));
            }
        });
    }
    void work(Context& context) override
    {
        WordBatch batch;
        const Part part = part_of(context.thread, pages_.count());
        for (std::uint64_t page = part.first; page < part.last;) {
            for (std::size_t bytes = 0; bytes < batch_bytes && page < part.last; ++page) {
                gather(page, batch);
                bytes += pages_[page].size();
            }
            context.changed_bytes += table_->add(
                batch, [&](List& list, const WordBatch::Seen& seen) { context.changed_bytes += append(list, seen.document); });
        }
        wait_for_all();
        const Part stripes = part_of(context.thread, word_stripes);
        for (auto stripe = static_cast<unsigned>(stripes.first); stripe < stripes.last; ++stripe) {
            table_->update_stripe(stripe, [&](List& list) { context.changed_bytes += sort(list); });
        }
    }
    std::string fault() override
    {
        std::size_t links = 0;
        std::size_t wrong = 0;
        for (unsigned stripe = 0; stripe < word_stripes; ++stripe) {
            table_->visit_stripe(stripe, [&](const Table::Word& link) {
                const std::uint32_t* pages = link.value().pages;
                const auto expected = expected_.find(link.text());
                wrong += expected == expected_.end() || expected->second.size() != link.value().count ||
                         !std::equal(expected->second.begin(), expected->second.end(), pages);
                ++links;
            });
        }
        if (wrong == 0 && links == expected_.size()) {
            return {};
        }
        return std::to_string(links) + " links instead of " + std::to_string(expected_.size()) + ", of which " + std::to_string(wrong) +
               " have a wrong list";
    }
    [[nodiscard]] std::uint64_t items() const override { return pages_.bytes.size(); }

private:
    struct List {
        E::Durable<std::uint32_t*> pages;
        E::Durable<std::uint32_t> count;
        E::Durable<std::uint32_t> capacity;
    };
    using Table = WordTable<E, List>;

    /// The links of a page.
    void gather(std::uint64_t number, WordBatch& batch) const
    {
        const std::string_view page = pages_[number];
        const char* const end = page.data() + page.size();
        const char* at = page.data();
        while ((at = static_cast<const char*>(std::memchr(at, '<', static_cast<std::size_t>(end - at)))) != nullptr) {
            if (std::string_view(at, end).substr(0, link_begin.size()) != link_begin) {
                ++at;
                continue;
            }
            at += link_begin.size();
            const char* const first = at;
            std::uint64_t hash = empty_text_hash;
            for (; at != end && *at != '"'; ++at) {
                hash = hash_with(hash, *at);
            }
            batch.add(hash, {first, at}, static_cast<std::uint32_t>(number));
        }
    }

    /// Returns the bytes that it changed. A page's links come in one operation, so a second one to the same place finds the page last.
    static std::uint64_t append(List& list, std::uint32_t page)
    {
        const std::uint32_t count = list.count;
        std::uint32_t* pages = list.pages;
        if (count > 0 && pages[count - 1] == page) {
            return 0;
        }
        if (count == list.capacity) {
            const std::uint32_t capacity = std::max(2 * count, 4u);
            auto* const larger = static_cast<std::uint32_t*>(E::allocate(capacity * sizeof page));
            if (pages != nullptr) {
                std::memcpy(larger, pages, count * sizeof page);
                E::deallocate(pages);
            }
            pages = larger;
            list.pages = larger;
            list.capacity = capacity;
        } else {
            E::about_to_write(pages + count, sizeof page);
        }
        pages[count] = page;
        list.count = count + 1;
        return 2 * sizeof page;
    }
    /// Several threads have appended to it, each in order.
    static std::uint64_t sort(List& list)
    {
        std::uint32_t* const first = list.pages;
        std::uint32_t* const last = first + list.count;
        if (std::is_sorted(first, last)) {
            return 0;
        }
        const std::size_t size_bytes = list.count * sizeof *first;
        E::about_to_write(first, size_bytes);
        std::sort(first, last);
        return size_bytes;
    }

    void index_expected()
    {
        for (std::size_t number = 0; number < pages_.count(); ++number) {
            const std::string_view page = pages_[number];
            for (std::size_t at = page.find(link_begin); at != std::string_view::npos; at = page.find(link_begin, at)) {
                at += link_begin.size();
                auto& list = expected_[page.substr(at, page.find('"', at) - at)];
                if (list.empty() || list.back() != number) {
                    list.push_back(static_cast<std::uint32_t>(number));
                }
            }
        }
    }

    const std::uint64_t page_bytes_;
    Texts pages_;
    std::unordered_map<std::string_view, std::vector<std::uint32_t>> expected_;
    std::optional<Table> table_;
};

}  // namespace

/// size: bytes of pages.
Work make_reverse_index(const Shape& shape) { return {nullptr, std::make_unique<ReverseIndex>(shape, shape.size_or(64'000'000, 200'000))}; }

}  // namespace bench
