#pragma once
// The part that a crash may forget: which waiting jobs are not being worked on. It is made again from the durable part at each start.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

/// Threads: all functions, from any.
class Desk {
public:
    explicit Desk(const std::vector<std::uint64_t>& waiting) : free_(waiting.begin(), waiting.end()) {}

    void lay(std::uint64_t job)
    {
        const std::lock_guard hold(lock_);
        free_.push_back(job);
        changed_.notify_one();
    }
    /// Nothing: there is no job, and none will come.
    std::optional<std::uint64_t> take()
    {
        std::unique_lock hold(lock_);
        changed_.wait(hold, [&] { return !free_.empty() || is_closed_; });
        if (free_.empty()) {
            return std::nullopt;
        }
        const std::uint64_t job = free_.front();
        free_.pop_front();
        return job;
    }
    void close()
    {
        const std::lock_guard hold(lock_);
        is_closed_ = true;
        changed_.notify_all();
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::uint64_t> free_;
    bool is_closed_ = false;
};
