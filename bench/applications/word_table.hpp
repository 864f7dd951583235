#pragma once
// A hash table of words that several threads fill, with a lock for each of 64 stripes.
//
// A thread gathers the words of some KiB of input, then brings them to the table stripe by stripe, an operation for each: it takes 64 locks
// for thousands of words, and an operation updates some dozens of words.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "../engines/engine.hpp"
#include "kept_array.hpp"
#include "word_batch.hpp"

namespace bench {

/// Zeroed memory is a Value's first state.
template <MemoryEngine E, class Value>
class WordTable {
public:
    class Word {
    public:
        [[nodiscard]] std::string_view text() const noexcept { return {reinterpret_cast<const char*>(this + 1), length_}; }
        [[nodiscard]] const Value& value() const noexcept { return value_; }

    private:
        friend WordTable;

        typename E::template Durable<Word*> next_;
        std::uint64_t hash_;
        std::size_t length_;  // the text's, which lies after it
        Value value_;
    };

    /// Finds the table by its name, or makes an empty one.
    explicit WordTable(const char* name) : stripes_(kept_array<E, Stripe>(name, word_stripes)) {}

    /// For each word of the batch update(value, seen); those of a stripe are one operation. Returns the bytes of new words.
    template <class Update>
    std::uint64_t add(WordBatch& batch, Update update)
    {
        std::uint64_t new_bytes = 0;
        batch.for_each_stripe([&](unsigned stripe, const WordBatch::Seen* first, const WordBatch::Seen* last) {
            typename E::template Operation<1> operation;
            operation.lock(stripes_[stripe].mutex);
            for (const WordBatch::Seen* seen = first; seen != last; ++seen) {
                Link& bucket = stripes_[stripe].buckets[seen->hash % buckets];
                Word* word = find(bucket, *seen);
                if (word == nullptr) {
                    word = make(bucket, *seen);
                    new_bytes += sizeof(Word) + seen->length;
                }
                update(word->value_, *seen);
            }
        });
        return new_bytes;
    }

    /// One operation: for each word of the stripe update(value).
    template <class Update>
    void update_stripe(unsigned stripe, Update update)
    {
        typename E::template Operation<1> operation;
        operation.lock(stripes_[stripe].mutex);
        for (Link& bucket : stripes_[stripe].buckets) {
            for (Word* word = bucket; word != nullptr; word = word->next_) {
                update(word->value_);
            }
        }
    }

    /// Empties the table, an operation for each stripe: release(value) first frees what the value owns.
    template <class Release>
    void clear(Release release)
    {
        for (unsigned stripe = 0; stripe < word_stripes; ++stripe) {
            typename E::template Operation<1> operation;
            operation.lock(stripes_[stripe].mutex);
            E::about_to_write(stripes_[stripe].buckets, sizeof stripes_[stripe].buckets);
            for (Link& bucket : stripes_[stripe].buckets) {
                for (Word* word = bucket; word != nullptr;) {
                    Word* const next = word->next_;
                    release(word->value_);
                    E::deallocate(word);
                    word = next;
                }
            }
            std::memset(static_cast<void*>(stripes_[stripe].buckets), 0, sizeof stripes_[stripe].buckets);
        }
    }

    /// visit(word) for each word of the stripe, while no thread changes the table.
    template <class Visit>
    void visit_stripe(unsigned stripe, Visit visit) const
    {
        for (const Link& bucket : stripes_[stripe].buckets) {
            for (const Word* word = bucket; word != nullptr; word = word->next_) {
                visit(*word);
            }
        }
    }

private:
    using Link = typename E::template Durable<Word*>;
    static constexpr std::uint64_t buckets = 512;  // of one stripe

    struct alignas(64) Stripe {
        typename E::Mutex mutex;
        Link buckets[WordTable::buckets];
    };

    static Word* find(const Link& bucket, const WordBatch::Seen& seen)
    {
        for (Word* word = bucket; word != nullptr; word = word->next_) {
            if (word->hash_ == seen.hash && word->text() == seen.word()) {
                return word;
            }
        }
        return nullptr;
    }
    static Word* make(Link& bucket, const WordBatch::Seen& seen)
    {
        auto* word = static_cast<Word*>(E::allocate(sizeof(Word) + seen.length));
        std::memset(static_cast<void*>(word), 0, sizeof(Word));
        E::init(word->next_, static_cast<Word*>(bucket));
        word->hash_ = seen.hash;
        word->length_ = seen.length;
        std::memcpy(reinterpret_cast<char*>(word + 1), seen.text, seen.length);
        bucket = word;
        return word;
    }

    Stripe* stripes_;
};

}  // namespace bench
