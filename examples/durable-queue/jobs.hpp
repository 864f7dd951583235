#pragma once
// The durable part: which jobs wait, and what has come of those that are done.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stillpoint/pronto.hpp"

namespace pronto = stillpoint::pronto;

/// A job waits from put() to finish(), also while a worker has it: a worker that dies leaves it for the next run. So each
/// job that put() has returned from is done at least once, and counted once.
/// Threads: all functions, from any. Changes commit early, and wait for the medium together when the lock is free again.
class Jobs : public pronto::object<Jobs> {
public:
    static constexpr char type_name[] = "durable-queue.jobs";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Jobs::put>("put"), pronto::method<&Jobs::finish>("finish")); }

    /// The next job of a producer, under a number that is the producer's and the job's place in his row.
    std::uint64_t put(std::uint32_t producer, std::string_view text)
    {
        pronto::operation running = op_begin<&Jobs::put>(producer, text);
        const std::lock_guard hold(lock_);
        const std::uint64_t job = number_of(producer, puts_[producer]++);
        waiting_.emplace(job, text);
        running.commit_early();
        return job;
    }

    /// The acknowledgement of a worker: false where the job was finished before.
    bool finish(std::uint64_t job, std::uint64_t result)
    {
        const pronto::read_guard reading = read();
        pronto::operation running = op_begin<&Jobs::finish>(job, result);
        const std::lock_guard hold(lock_);
        if (waiting_.erase(job) == 0) {
            return false;
        }
        ++done_;
        sum_ += result;
        running.commit_early();
        return true;
    }

    [[nodiscard]] std::string text_of(std::uint64_t job) const
    {
        const pronto::read_guard reading = read();
        const std::lock_guard hold(lock_);
        return std::string(waiting_.at(job));
    }
    [[nodiscard]] std::vector<std::uint64_t> waiting() const
    {
        const pronto::read_guard reading = read();
        const std::lock_guard hold(lock_);
        std::vector<std::uint64_t> jobs;
        for (const auto& [job, text] : waiting_) {
            jobs.push_back(job);
        }
        return jobs;
    }
    /// How many jobs a producer has put: where he continues.
    [[nodiscard]] std::uint64_t puts_of(std::uint32_t producer) const
    {
        const pronto::read_guard reading = read();
        const std::lock_guard hold(lock_);
        const auto found = puts_.find(producer);
        return found == puts_.end() ? 0 : found->second;
    }
    [[nodiscard]] bool has_put(std::uint64_t job) const { return puts_of(producer_of(job)) > (job & 0xFFFFFFFF); }

    struct Results {
        std::uint64_t done;
        std::uint64_t sum;
    };
    [[nodiscard]] Results results() const
    {
        const pronto::read_guard reading = read();
        const std::lock_guard hold(lock_);
        return {done_, sum_};
    }

    static std::uint64_t number_of(std::uint32_t producer, std::uint64_t place) { return (std::uint64_t{producer} << 32) | place; }
    static std::uint32_t producer_of(std::uint64_t job) { return static_cast<std::uint32_t>(job >> 32); }

private:
    template <class Key, class Value>
    using Map = std::map<Key, Value, std::less<>, pronto::allocator<std::pair<const Key, Value>>>;

    mutable std::mutex lock_;
    Map<std::uint64_t, pronto::string> waiting_;
    Map<std::uint32_t, std::uint64_t> puts_;
    std::uint64_t done_ = 0;
    std::uint64_t sum_ = 0;
};
