#pragma once
// The threads that work on one job: they meet, and divide what there is to do.

#include <barrier>
#include <cstddef>
#include <cstdint>

namespace bench {

class Team {
public:
    explicit Team(unsigned threads) : threads_(threads), barrier_(static_cast<std::ptrdiff_t>(threads)) {}

    /// A barrier. Never inside an Operation: an engine may hold the thread that the others wait for.
    void wait_for_all() { barrier_.arrive_and_wait(); }
    [[nodiscard]] unsigned threads() const noexcept { return threads_; }

    /// The part of `count` things that thread `thread` works on: [first, last).
    struct Part {
        std::uint64_t first;
        std::uint64_t last;
    };
    [[nodiscard]] Part part_of(unsigned thread, std::uint64_t count) const noexcept
    {
        return {count * thread / threads_, count * (thread + 1) / threads_};
    }

private:
    unsigned threads_;
    std::barrier<> barrier_;
};

}  // namespace bench
