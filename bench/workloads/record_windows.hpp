#pragma once
// Which records there are when threads insert new ones without end, and each removes its oldest for every one that it inserts.
//
// Each thread numbers its own records: it has those from first() to end(), `length` of them, or one more between an
// insertion and the removal that follows it. Thread t's record s is kept under the number
// (s mod 2 length) * threads + t: as many numbers as can be, and after a restart a binary search finds where the records lie
// among them, without a durable note for each insertion.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace bench {

class RecordWindows {
public:
    /// About `records` records in all, at least two for each thread.
    RecordWindows(std::uint64_t records, unsigned threads)
        : length_(std::max<std::uint64_t>(records / threads, 2)), threads_(threads), windows_(threads)
    {
    }

    [[nodiscard]] unsigned threads() const noexcept { return threads_; }
    /// Records of one thread.
    [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
    [[nodiscard]] std::uint64_t number_of(unsigned thread, std::uint64_t record) const noexcept
    {
        return record % (2 * length_) * threads_ + thread;
    }

    /// Any thread may ask. A record from `end` on may be there already, one below `first` may be there still.
    [[nodiscard]] std::uint64_t first(unsigned thread) const noexcept { return windows_[thread].first.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint64_t end(unsigned thread) const noexcept { return windows_[thread].end.load(std::memory_order_acquire); }
    /// The thread has more records than it keeps.
    [[nodiscard]] bool is_over(unsigned thread) const noexcept { return end(thread) - first(thread) > length_; }

    /// By the thread itself: after the insertion of record end().
    void has_inserted(unsigned thread) noexcept { windows_[thread].end.fetch_add(1, std::memory_order_release); }
    /// By the thread itself: before the removal of record first().
    void removes(unsigned thread) noexcept { windows_[thread].first.fetch_add(1, std::memory_order_release); }

    /// After a restart. `is_there(number)`: there is such a record.
    template <class IsThere>
    void find_again(IsThere is_there)
    {
        for (unsigned thread = 0; thread < threads_; ++thread) {
            find_again(thread, [&](std::uint64_t record) { return is_there(number_of(thread, record)); });
        }
    }

private:
    struct alignas(64) Window {
        std::atomic<std::uint64_t> first{0};
        std::atomic<std::uint64_t> end{0};
    };

    /// The records are an arc of half the ring of numbers, or one more. From place 0 on, the first place that differs from it
    /// is the arc's end, or its beginning, and lies at most length_ + 1 further.
    template <class IsThere>
    void find_again(unsigned thread, IsThere is_there)
    {
        const bool zero_is_there = is_there(0);
        std::uint64_t same = 0;
        std::uint64_t other = length_ + (zero_is_there ? 1 : 0);
        while (other - same > 1) {
            const std::uint64_t middle = same + (other - same) / 2;
            (is_there(middle) == zero_is_there ? same : other) = middle;
        }
        // Half a ring after its end lies its beginning.
        std::uint64_t first = zero_is_there ? other + length_ : other;
        std::uint64_t end = first + length_;
        if (zero_is_there && is_there(first - 1)) {
            --first;
        } else if (!zero_is_there && is_there(end)) {
            ++end;
        }
        windows_[thread].first = first;
        windows_[thread].end = end;
    }

    std::uint64_t length_;
    unsigned threads_;
    std::vector<Window> windows_;
};

}  // namespace bench
