// Word count: how often each word is in a text, and which are the most frequent ones.
//
// Durable: a hash table of the words with their counts, filled from 16 KiB of text at a time (word_table.hpp), and the list of the
// top words.

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
#include "kept_array.hpp"
#include "text_hash.hpp"
#include "texts.hpp"
#include "word_table.hpp"

namespace bench {
namespace {

constexpr std::uint64_t chunk_bytes = 16384;
constexpr std::size_t top_words = 20;

constexpr bool is_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }

class WordCount final : public EngineJob {
public:
    WordCount(const Shape& shape, std::uint64_t text_bytes) : EngineJob(shape), text_bytes_(text_bytes) {}

    void load() override
    {
        text_ = make_text(text_bytes_);
        count_expected();
        table_.emplace("bench.word_count.table");
        top_ = kept_array<E, Top>("bench.word_count.top", 1);
    }
    void prepare() override
    {
        refill<E>(top_->mutex, top_->entries, sizeof top_->entries);
        table_->clear([](Count&) {});
    }
    void work(Context& context) override
    {
        WordBatch batch;
        const Part chunks = part_of(context.thread, (text_.size() + chunk_bytes - 1) / chunk_bytes);
        for (std::uint64_t chunk = chunks.first; chunk < chunks.last; ++chunk) {
            gather(chunk, batch);
            context.changed_bytes += table_->add(batch, [&](Count& count, const WordBatch::Seen&) {
                count.seen = count.seen + 1;
                context.changed_bytes += sizeof count.seen;
            });
        }
        wait_for_all();
        Entries own;
        const Part stripes = part_of(context.thread, word_stripes);
        for (auto stripe = static_cast<unsigned>(stripes.first); stripe < stripes.last; ++stripe) {
            table_->visit_stripe(stripe, [&](const Table::Word& word) { own.push_back({&word, word.value().seen}); });
        }
        keep_top(own);
        add_to_top(own);
        context.changed_bytes += sizeof top_->entries;
    }
    std::string fault() override
    {
        std::size_t words = 0;
        std::size_t wrong = 0;
        for (unsigned stripe = 0; stripe < word_stripes; ++stripe) {
            table_->visit_stripe(stripe, [&](const Table::Word& word) {
                const auto expected = expected_.find(word.text());
                wrong += expected == expected_.end() || expected->second != word.value().seen;
                ++words;
            });
        }
        if (wrong != 0 || words != expected_.size()) {
            return std::to_string(words) + " words instead of " + std::to_string(expected_.size()) + ", of which " + std::to_string(wrong) +
                   " have a wrong count";
        }
        for (std::size_t i = 0; i < expected_top_.size(); ++i) {
            const Entry& entry = top_->entries[i];
            if (entry.word == nullptr || entry.word->text() != expected_top_[i] || entry.seen != expected_.at(expected_top_[i])) {
                return "the top words are not the most frequent ones";
            }
        }
        return {};
    }
    [[nodiscard]] std::uint64_t items() const override { return text_.size(); }

private:
    struct Count {
        E::Durable<std::uint64_t> seen;
    };
    using Table = WordTable<E, Count>;
    struct Entry {
        const Table::Word* word;  ///< none: after the last entry
        std::uint64_t seen;
    };
    using Entries = std::vector<Entry>;
    struct Top {
        E::Mutex mutex;
        Entry entries[top_words];
    };

    /// The words that begin in that chunk.
    void gather(std::uint64_t chunk, WordBatch& batch) const
    {
        const char* const begin = text_.data();
        const char* const end = begin + text_.size();
        const char* at = begin + chunk * chunk_bytes;
        const char* const chunk_end = begin + std::min<std::uint64_t>((chunk + 1) * chunk_bytes, text_.size());
        if (at != begin && is_letter(at[-1])) {
            at = std::find_if_not(at, end, is_letter);
        }
        while (at < chunk_end) {
            const char* const first = at;
            std::uint64_t hash = empty_text_hash;
            for (; at != end && is_letter(*at); ++at) {
                hash = hash_with(hash, *at);
            }
            if (at != first) {
                batch.add(hash, {first, at});
            } else {
                ++at;
            }
        }
    }

    /// The most frequent ones, in order; of equally frequent ones, the first in the alphabet.
    static void keep_top(Entries& entries)
    {
        const std::size_t kept = std::min(entries.size(), top_words);
        const auto last = entries.begin() + static_cast<std::ptrdiff_t>(kept);
        std::partial_sort(entries.begin(), last, entries.end(), [](const Entry& a, const Entry& b) {
            return a.seen != b.seen ? a.seen > b.seen : a.word->text() < b.word->text();
        });
        entries.resize(kept);
    }
    void add_to_top(Entries& own)
    {
        E::Operation<1> operation;
        operation.lock(top_->mutex);
        std::copy_if(top_->entries, top_->entries + top_words, std::back_inserter(own), [](const Entry& e) { return e.word != nullptr; });
        keep_top(own);
        E::about_to_write(top_->entries, sizeof top_->entries);
        std::copy(own.begin(), own.end(), top_->entries);
    }

    void count_expected()
    {
        const std::string_view text = text_;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find_first_of(" .,\n", at), text.size());
            if (end != at) {
                expected_[text.substr(at, end - at)] += 1;
            }
            at = end + 1;
        }
        for (const auto& [word, seen] : expected_) {
            expected_top_.push_back(word);
        }
        std::sort(expected_top_.begin(), expected_top_.end(), [this](std::string_view a, std::string_view b) {
            return expected_.at(a) != expected_.at(b) ? expected_.at(a) > expected_.at(b) : a < b;
        });
        expected_top_.resize(std::min(expected_top_.size(), top_words));
    }

    const std::uint64_t text_bytes_;
    std::string text_;
    std::unordered_map<std::string_view, std::uint64_t> expected_;
    std::vector<std::string_view> expected_top_;
    std::optional<Table> table_;
    Top* top_ = nullptr;
};

}  // namespace

/// size: bytes of text.
Work make_word_count(const Shape& shape) { return {nullptr, std::make_unique<WordCount>(shape, shape.size_or(16'000'000, 200'000))}; }

}  // namespace bench
