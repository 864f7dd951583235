#pragma once
// Operations that are their locks: of the volatile program, and of engines that find an operation by its locks.

#include <cstddef>
#include <pthread.h>

#include "../worker/shape.hpp"

namespace bench {

struct PthreadLocks {
    using Mutex = pthread_mutex_t;
    using Condition = pthread_cond_t;
    static void lock(Mutex* mutex) noexcept { pthread_mutex_lock(mutex); }
    static void unlock(Mutex* mutex) noexcept { pthread_mutex_unlock(mutex); }
    static void wait(Condition& condition, Mutex& mutex) noexcept { pthread_cond_wait(&condition, &mutex); }
    static void notify_all(Condition& condition) noexcept { pthread_cond_broadcast(&condition); }
};

/// Holds up to `locks_max` mutexes until it is destroyed; releases them in the reverse order.
template <unsigned locks_max, class Locks = PthreadLocks>
class LockedSection {
    using Mutex = typename Locks::Mutex;

public:
    LockedSection() noexcept = default;
    LockedSection(const LockedSection&) = delete;
    LockedSection& operator=(const LockedSection&) = delete;
    ~LockedSection()
    {
        while (count_ > 0) {
            Locks::unlock(held_[--count_]);
        }
    }

    void lock(Mutex& mutex) noexcept
    {
        Locks::lock(&mutex);
        held_[count_++] = &mutex;
    }
    void unlock_unwritten(Mutex& mutex) noexcept
    {
        unsigned at = 0;
        while (held_[at] != &mutex) {
            ++at;
        }
        for (--count_; at < count_; ++at) {
            held_[at] = held_[at + 1];
        }
        Locks::unlock(&mutex);
    }
    template <class Condition>
    void wait(Condition& condition, Mutex& mutex) noexcept
    {
        Locks::wait(condition, mutex);
    }

private:
    Mutex* held_[locks_max];
    unsigned count_ = 0;
};

/// The usual case, without a list.
template <class Locks>
class LockedSection<1, Locks> {
    using Mutex = typename Locks::Mutex;

public:
    LockedSection() noexcept = default;
    LockedSection(const LockedSection&) = delete;
    LockedSection& operator=(const LockedSection&) = delete;
    ~LockedSection()
    {
        if (held_ != nullptr) {
            Locks::unlock(held_);
        }
    }

    void lock(Mutex& mutex) noexcept
    {
        Locks::lock(&mutex);
        held_ = &mutex;
    }
    void unlock_unwritten(Mutex& mutex) noexcept
    {
        held_ = nullptr;
        Locks::unlock(&mutex);
    }
    template <class Condition>
    void wait(Condition& condition, Mutex& mutex) noexcept
    {
        Locks::wait(condition, mutex);
    }

private:
    Mutex* held_ = nullptr;
};

/// The common part of such engines: stores need no announcement.
template <class Locks = PthreadLocks>
struct LockedSections {
    template <class T>
    using Durable = T;
    using Mutex = typename Locks::Mutex;
    using Condition = typename Locks::Condition;
    template <unsigned locks_max>
    using Operation = LockedSection<locks_max, Locks>;
    template <unsigned locks_max>
    using Reading = LockedSection<locks_max, Locks>;

    static void open(const Shape&) noexcept {}
    template <class T, class Value>
    static void init(T& variable, const Value& value)
    {
        variable = value;
    }
    static void about_to_write(void*, std::size_t) noexcept {}
    static void notify_all(Condition& condition) noexcept { Locks::notify_all(condition); }
};

}  // namespace bench
