#pragma once
// A section on some parts of durable memory, each of which has a lock. The parts are those of transactions (transactions/parts.hpp): what a
// section has seen is written into each part that it changes, so a recovered pool shows whether a section survived without one that it
// depends on, or by half.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "transactions/parts.hpp"

namespace stillpoint::explorer {

/// How a change treats the list of a part.
struct ListSteps {
    std::size_t block_words = 0;  ///< 0: nothing
    std::uint64_t steps_max = 0;  ///< blocks that are added or removed
    bool are_one_way = false;  ///< all of them are added, or all removed
};

/// The parts as one thread has seen them, and the states of those that it changes or reads.
class PartsSeen {
public:
    PartsSeen(TransactionParts& parts, Random& random) : parts_(parts), random_(random), stamp_(random()) {}

    /// Depends on the part as it is.
    void see(std::size_t number);
    /// Likewise, and on `changes` more operations that it or others will do.
    void expect(std::size_t number, std::uint64_t changes)
    {
        seen_[number] = std::max(seen_[number], parts_.parts[number].operations + changes);
    }
    /// An operation on the part, which then depends on all that was seen.
    void change(std::size_t number, const ListSteps& steps = {});
    /// The part as it is survives, once acknowledged.
    void note_read(std::size_t number);
    /// Whether an unlock returns when its section is durable: acknowledge=unlock.
    static inline bool unlocks_wait = true;
    /// The states that were seen survive: an unlock has waited for that, or this waits.
    void acknowledge_unlocked() const;
    /// Likewise if a wait for it succeeds: for parts that no lock has guarded.
    void acknowledge_after_wait() const;
    /// Others begin and end sections meanwhile.
    void pause_sometimes();
    [[nodiscard]] Random& random() noexcept { return random_; }

private:
    void tell_acknowledged() const;

    TransactionParts& parts_;
    Random& random_;
    std::uint64_t stamp_;
    std::array<std::uint64_t, transaction_parts> seen_{};
    PartStates states_;
};

/// The locks of all parts, of one kind.
template <class Lock>
using PartLocks = std::array<Lock, transaction_parts>;

/// Changes parts under their locks, in the order of their numbers.
template <class Lock>
class Section {
public:
    Section(PartLocks<Lock>& locks, TransactionParts& parts, std::vector<std::size_t> numbers, Random& random)
        : locks_(locks), numbers_(std::move(numbers)), parts_(parts, random)
    {
    }
    void change_lists(const ListSteps& steps) { steps_ = steps; }

    /// All locks, then all changes, then all unlocks.
    void nested()
    {
        lock_all();
        for (const std::size_t number : numbers_) {
            parts_.change(number, steps_);
            parts_.pause_sometimes();
        }
        for (auto number = numbers_.rbegin(); number != numbers_.rend(); ++number) {
            locks_[*number].unlock();
        }
        parts_.acknowledge_unlocked();
    }
    /// Each part is given away as soon as it is changed, while the others' locks stay held.
    void overlapping()
    {
        lock_all();
        for (const std::size_t number : numbers_) {
            parts_.change(number, steps_);
            locks_[number].unlock();
            parts_.pause_sometimes();
        }
        parts_.acknowledge_unlocked();
    }
    void read_only()
    {
        lock_all();
        note_all();
        for (const std::size_t number : numbers_) {
            locks_[number].unlock();
        }
        parts_.acknowledge_unlocked();
    }
    /// As read_only(), beside other readers.
    void shared()
    {
        for (const std::size_t number : numbers_) {
            locks_[number].lock_shared();
            parts_.see(number);
        }
        note_all();
        for (const std::size_t number : numbers_) {
            locks_[number].unlock_shared();
        }
        parts_.acknowledge_unlocked();
    }
    /// Changes the last of the parts only, and depends on the others, which it reads beside other readers.
    void shared_but_the_last()
    {
        for (const std::size_t number : numbers_) {
            const bool is_last = number == numbers_.back();
            is_last ? locks_[number].lock() : locks_[number].lock_shared();
            parts_.see(number);
        }
        parts_.expect(numbers_.back(), 1);
        for (const std::size_t number : numbers_) {
            if (number != numbers_.back()) {
                locks_[number].unlock_shared();
            }
        }
        parts_.pause_sometimes();
        parts_.change(numbers_.back(), steps_);
        locks_[numbers_.back()].unlock();
        parts_.acknowledge_unlocked();
    }

private:
    /// Every part that is changed has then seen what all of them will be.
    void lock_all()
    {
        for (const std::size_t number : numbers_) {
            locks_[number].lock();
            parts_.see(number);
            parts_.expect(number, 1);
        }
    }
    void note_all()
    {
        for (const std::size_t number : numbers_) {
            parts_.note_read(number);
        }
    }

    PartLocks<Lock>& locks_;
    std::vector<std::size_t> numbers_;
    ListSteps steps_;
    PartsSeen parts_;
};

/// At most `most` of the parts, at random; one at least.
[[nodiscard]] std::vector<std::size_t> some_parts(Random& random, std::size_t most);

}  // namespace stillpoint::explorer
