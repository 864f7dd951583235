#pragma once
// Words as one thread finds them in its input, grouped by the stripe of the table that they belong to (word_table.hpp).

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bench {

inline constexpr unsigned word_stripes = 64;

/// Lies in ordinary memory; the words' texts stay where they are.
class WordBatch {
public:
    struct Seen {
        std::uint64_t hash;
        const char* text;
        std::uint32_t length;
        std::uint32_t document;

        [[nodiscard]] std::string_view word() const noexcept { return {text, length}; }
    };

    void add(std::uint64_t hash, std::string_view word, std::uint32_t document = 0)
    {
        seen_.push_back({hash, word.data(), static_cast<std::uint32_t>(word.size()), document});
    }
    /// Calls use(stripe, first, last) for each stripe that has words, in the order in which they came. Empties the batch.
    template <class Use>
    void for_each_stripe(Use use)
    {
        std::uint32_t ends[word_stripes] = {};
        for (const Seen& seen : seen_) {
            ends[stripe_of(seen.hash)] += 1;
        }
        std::uint32_t sum = 0;
        for (std::uint32_t& end : ends) {
            sum += end;
            end = sum - end;
        }
        grouped_.resize(seen_.size());
        for (const Seen& seen : seen_) {
            grouped_[ends[stripe_of(seen.hash)]++] = seen;
        }
        seen_.clear();
        std::uint32_t first = 0;
        for (unsigned stripe = 0; stripe < word_stripes; ++stripe) {
            if (ends[stripe] != first) {
                use(stripe, grouped_.data() + first, grouped_.data() + ends[stripe]);
            }
            first = ends[stripe];
        }
    }

private:
    static unsigned stripe_of(std::uint64_t hash) noexcept { return static_cast<unsigned>(hash >> 58); }
    static_assert(word_stripes == 1u << (64 - 58));

    std::vector<Seen> seen_;
    std::vector<Seen> grouped_;
};

}  // namespace bench
