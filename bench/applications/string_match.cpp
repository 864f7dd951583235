// String match: which words of a dictionary have the wanted digests?
//
// Durable: the digest of every word, 1024 words an operation (about 8 KiB in, 8 KiB out), and for each wanted digest the word that has it.
// The digest is a fast hash: what is measured is the memory, not cryptography.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "kept_array.hpp"
#include "text_hash.hpp"
#include "texts.hpp"

namespace bench {
namespace {

constexpr std::uint64_t words_each = 1024;  // in one operation
constexpr unsigned wanted_words = 32;

class StringMatch final : public EngineJob {
public:
    StringMatch(const Shape& shape, std::uint64_t words) : EngineJob(shape), words_(std::max<std::uint64_t>(words, 1)) {}

    void load() override
    {
        dictionary_ = make_dictionary(words_);
        choose_wanted();
        digests_ = kept_array<E, std::uint64_t>("bench.string_match.digests", words_);
        own_ = kept_array<E, Own>("bench.string_match.threads", shape_.threads);
        matches_ = kept_array<E, Matches>("bench.string_match.matches", 1);
    }
    void prepare() override
    {
        refill<E>(matches_->mutex, digests_, words_ * sizeof(std::uint64_t));
        refill<E>(matches_->mutex, matches_->words, sizeof matches_->words);
    }
    void work(Context& context) override
    {
        const Part part = part_of(context.thread, words_);
        for (std::uint64_t first = part.first; first < part.last; first += words_each) {
            digest(context, first, std::min(first + words_each, part.last));
        }
    }
    std::string fault() override
    {
        for (std::uint64_t i = 0; i < words_; ++i) {
            if (digests_[i] != hash_of(word(i))) {
                return "the digest of word " + std::to_string(i) + " is wrong";
            }
        }
        for (unsigned i = 0; i < wanted_words; ++i) {
            if (matches_->words[i] != expected_[i]) {
                return "wanted digest " + std::to_string(i) + " has another word, or none";
            }
        }
        return {};
    }
    [[nodiscard]] std::uint64_t items() const override { return words_; }

private:
    struct alignas(64) Own {
        E::Mutex mutex;  ///< guards the digests of the thread's words
    };
    /// Lock order: a thread's own, then this one.
    struct Matches {
        E::Mutex mutex;
        E::Durable<std::uint64_t> words[wanted_words];  ///< the number of the word, from 1; 0: none
    };

    [[nodiscard]] std::string_view word(std::uint64_t i) const noexcept
    {
        const std::string_view line = dictionary_[i];
        return line.substr(0, line.size() - 1);
    }

    /// One operation, which takes the second lock only where a digest is a wanted one.
    void digest(Context& context, std::uint64_t first, std::uint64_t last)
    {
        E::Operation<2> operation;
        operation.lock(own_[context.thread].mutex);
        E::about_to_write(digests_ + first, (last - first) * sizeof(std::uint64_t));
        bool has_matches = false;
        for (std::uint64_t i = first; i < last; ++i) {
            const std::uint64_t digest = hash_of(word(i));
            digests_[i] = digest;
            const auto found = std::lower_bound(wanted_.begin(), wanted_.end(), digest);
            if (found == wanted_.end() || *found != digest) {
                continue;
            }
            if (!std::exchange(has_matches, true)) {
                operation.lock(matches_->mutex);
            }
            matches_->words[found - wanted_.begin()] = i + 1;
            context.changed_bytes += sizeof digest;
        }
        context.changed_bytes += (last - first) * sizeof(std::uint64_t);
    }

    /// Half of the wanted words are in the dictionary, half have a letter that none in it has.
    void choose_wanted()
    {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;
        for (std::uint64_t i = 0; i < wanted_words; ++i) {
            const std::uint64_t number = words_ * i / wanted_words;
            const bool is_there = i % 2 == 0 && (i == 0 || words_ >= wanted_words);
            const std::string text = std::string(word(number)) + (is_there ? "" : std::string(i + 1, 'q'));
            wanted.emplace_back(hash_of(text), is_there ? number + 1 : 0);
        }
        std::sort(wanted.begin(), wanted.end());
        for (const auto& [digest, number] : wanted) {
            wanted_.push_back(digest);
            expected_.push_back(number);
        }
    }

    const std::uint64_t words_;
    Texts dictionary_;
    std::vector<std::uint64_t> wanted_;    ///< ascending
    std::vector<std::uint64_t> expected_;  ///< of each, what Matches::words must say
    std::uint64_t* digests_ = nullptr;
    Own* own_ = nullptr;
    Matches* matches_ = nullptr;
};

}  // namespace

/// size: words in the dictionary.
Work make_string_match(const Shape& shape) { return {nullptr, std::make_unique<StringMatch>(shape, shape.size_or(3'000'000, 20'000))}; }

}  // namespace bench
