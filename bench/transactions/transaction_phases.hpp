#pragma once
// Where the time of transactions goes, and how many attempts they take: in slices that are for that (Measured::timed_slice).
//
// A memory whose transactions may abort runs a body through Watched while are_watched(). Attempts are counted for each transaction, times
// are taken for one in 8: the clock is read three times, which is a tenth of a microsecond.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "../harness/clock.hpp"

namespace bench {

/// The transactions of one thread.
struct PhaseSums {
    std::uint64_t transactions = 0;
    std::uint64_t attempts = 0;
    std::uint64_t run_alone = 0;  ///< transactions whose last attempt ran without others
    std::uint64_t alone_ns = 0;  ///< their last attempts and commits; from here on of timed transactions only
    std::uint64_t committed_ns = 0;  ///< bodies of attempts that committed
    std::uint64_t aborted_ns = 0;  ///< from the first attempt to the beginning of the last one
    std::uint64_t commit_phase_ns = 0;  ///< from the end of the body to the return: locks, stores, log, waits
};

class TransactionPhases {
public:
    [[nodiscard]] static bool are_watched() noexcept { return is_on_.load(std::memory_order_relaxed); }
    /// No thread is in a transaction.
    static void begin()
    {
        const std::lock_guard guard(lock_);
        for (unsigned i = 0; i < threads_; ++i) {
            sums_[i].sums = {};
        }
        is_on_.store(true, std::memory_order_relaxed);
    }
    /// Likewise. The sums of all threads.
    [[nodiscard]] static PhaseSums end()
    {
        is_on_.store(false, std::memory_order_relaxed);
        const std::lock_guard guard(lock_);
        PhaseSums all;
        for (unsigned i = 0; i < threads_; ++i) {
            const PhaseSums& one = sums_[i].sums;
            all.transactions += one.transactions;
            all.attempts += one.attempts;
            all.run_alone += one.run_alone;
            all.alone_ns += one.alone_ns;
            all.committed_ns += one.committed_ns;
            all.aborted_ns += one.aborted_ns;
            all.commit_phase_ns += one.commit_phase_ns;
        }
        return all;
    }

    /// One transaction of the calling thread, from before its first attempt until it has returned. `attempts_max`: the one after that many
    /// runs alone.
    class Watched {
    public:
        explicit Watched(unsigned attempts_max) noexcept : sums_(own()), attempts_max_(attempts_max)
        {
            is_timed_ = sums_.transactions % 8 == 0;
        }
        Watched(const Watched&) = delete;
        Watched& operator=(const Watched&) = delete;
        ~Watched()
        {
            ++sums_.transactions;
            sums_.attempts += attempts_;
            const bool was_alone = attempts_ > attempts_max_;
            sums_.run_alone += was_alone ? 1 : 0;
            if (is_timed_) {
                const std::uint64_t now_ns = monotonic_ns();
                sums_.aborted_ns += last_attempt_ns_ - first_attempt_ns_;
                sums_.alone_ns += was_alone ? now_ns - last_attempt_ns_ : 0;
                sums_.committed_ns += was_alone ? 0 : body_ended_ns_ - last_attempt_ns_;
                sums_.commit_phase_ns += was_alone ? 0 : now_ns - body_ended_ns_;
            }
        }

        /// Lives as long as the body runs.
        class Attempt {
        public:
            explicit Attempt(Watched& watched) noexcept : watched_(watched)
            {
                watched_.last_attempt_ns_ = watched_.is_timed_ ? monotonic_ns() : 0;
                watched_.first_attempt_ns_ = watched_.attempts_ == 0 ? watched_.last_attempt_ns_ : watched_.first_attempt_ns_;
                ++watched_.attempts_;
            }
            Attempt(const Attempt&) = delete;
            Attempt& operator=(const Attempt&) = delete;
            ~Attempt() { watched_.body_ended_ns_ = watched_.is_timed_ ? monotonic_ns() : 0; }

        private:
            Watched& watched_;
        };

    private:
        PhaseSums& sums_;
        unsigned attempts_max_;
        unsigned attempts_ = 0;
        bool is_timed_;
        std::uint64_t first_attempt_ns_ = 0;
        std::uint64_t last_attempt_ns_ = 0;
        std::uint64_t body_ended_ns_ = 0;
    };

private:
    static constexpr unsigned threads_max = 256;
    struct alignas(64) OwnSums {
        PhaseSums sums;
    };

    /// The calling thread's. Threads beyond threads_max share the last one's, whose sums then are too low.
    static PhaseSums& own()
    {
        static thread_local OwnSums* const mine = [] {
            const std::lock_guard guard(lock_);
            return &sums_[threads_ < threads_max ? threads_++ : threads_max - 1];
        }();
        return mine->sums;
    }

    inline static std::atomic<bool> is_on_{false};
    inline static std::mutex lock_;
    inline static std::array<OwnSums, threads_max> sums_{};
    inline static unsigned threads_ = 0;
};

}  // namespace bench
