#pragma once
// RingMarks: for each of the newest records of the ring, what must be durable so that it is. A wait for a record then waits for no later
// one: that may be a part of a section which goes on, and whose thread waits for the very thread that waits here.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "logs/commit_clock.hpp"
#include "os/futex.hpp"

namespace stillpoint::nvthreads::processes {

struct RingMark {
    std::uint64_t position = 0;  ///< of the ring, at the record's end
    logs::Timestamp timestamp = 0;  ///< up to which all must be durable
};

/// Both grow from mark to mark. Threads: any.
class RingMarks {
public:
    static constexpr std::size_t kept = 4096;

    void add(const RingMark& mark) noexcept
    {
        const std::lock_guard guard(lock_);
        marks_[count_++ % kept] = mark;
    }
    /// The first mark at or after the position. A position that is older than all that are kept gets the oldest; one that was not marked
    /// yet the newest.
    [[nodiscard]] RingMark at(std::uint64_t position) noexcept
    {
        const std::lock_guard guard(lock_);
        const std::uint64_t number = search([=](const RingMark& mark) { return mark.position >= position; });
        return count_ == 0 ? RingMark{} : marks_[std::min(number, count_ - 1) % kept];
    }
    /// The position of the newest mark that is durable when everything up to the timestamp is. 0: none that is kept.
    [[nodiscard]] std::uint64_t reached(logs::Timestamp durable) noexcept
    {
        const std::lock_guard guard(lock_);
        const std::uint64_t later = search([=](const RingMark& mark) { return mark.timestamp > durable; });
        return later == oldest() ? 0 : marks_[(later - 1) % kept].position;
    }

private:
    [[nodiscard]] std::uint64_t oldest() const noexcept { return count_ > kept ? count_ - kept : 0; }
    /// The number of the first mark of which `is` holds; count_: of none. It holds for all after one for which it does.
    template <class Is>
    [[nodiscard]] std::uint64_t search(Is is) const noexcept
    {
        std::uint64_t begin = oldest();
        std::uint64_t end = count_;
        while (begin != end) {
            const std::uint64_t middle = begin + (end - begin) / 2;
            is(marks_[middle % kept]) ? end = middle : begin = middle + 1;
        }
        return begin;
    }

    os::FutexLock lock_;
    std::uint64_t count_ = 0;
    std::array<RingMark, kept> marks_{};
};

}  // namespace stillpoint::nvthreads::processes
