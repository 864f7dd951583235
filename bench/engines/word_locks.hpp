#pragma once
// Locks of one word for the volatile program: those of programs with restart points [ResPCT], so that their share of a ratio can be told
// apart (engine volatile-words). pthread's take 40 and 48 bytes.

#include <atomic>
#include <cstdint>

namespace bench {

class WordMutex {
public:
    void lock() noexcept
    {
        std::uint32_t seen = unheld;
        if (state_.compare_exchange_strong(seen, held, std::memory_order_acquire, std::memory_order_relaxed)) [[likely]] {
            return;
        }
        while (state_.exchange(waited_for, std::memory_order_acquire) != unheld) {
            state_.wait(waited_for, std::memory_order_relaxed);
        }
    }
    void unlock() noexcept
    {
        if (state_.exchange(unheld, std::memory_order_release) == waited_for) [[unlikely]] {
            state_.notify_one();
        }
    }

private:
    static constexpr std::uint32_t unheld = 0, held = 1, waited_for = 2;
    std::atomic<std::uint32_t> state_{unheld};
};

class WordCondition {
public:
    template <class Mutex>
    void wait(Mutex& mutex) noexcept
    {
        const std::uint32_t seen = changes_.load(std::memory_order_relaxed);
        mutex.unlock();
        changes_.wait(seen, std::memory_order_relaxed);
        mutex.lock();
    }
    void notify_all() noexcept
    {
        changes_.fetch_add(1, std::memory_order_relaxed);
        changes_.notify_all();
    }

private:
    std::atomic<std::uint32_t> changes_{0};
};

template <class MutexOfAWord>
struct LocksOfWords {
    using Mutex = MutexOfAWord;
    using Condition = WordCondition;
    static void lock(Mutex* mutex) noexcept { mutex->lock(); }
    static void unlock(Mutex* mutex) noexcept { mutex->unlock(); }
    static void wait(Condition& condition, Mutex& mutex) noexcept { condition.wait(mutex); }
    static void notify_all(Condition& condition) noexcept { condition.notify_all(); }
};
using WordLocks = LocksOfWords<WordMutex>;

}  // namespace bench
