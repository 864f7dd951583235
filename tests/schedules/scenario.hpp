#pragma once
// A scenario: a few threads that use the protocol, and what must hold. Bodies run as explored threads.

#include <cstdint>
#include <span>

#include "core/sync.hpp"
#include "tests/schedules/operation.hpp"

namespace stillpoint::schedules {

struct Scenario {
    const char* name;
    const char* what;
    int threads;
    void (*begin)();            ///< before the threads, alone
    void (*body)(int thread);
    void (*finish)();           ///< after they ended, alone
    int registered = 0;         ///< the first threads: they have a record at the start, and keep it
    int interrupted = -1;       ///< a thread that takes a signal, at each of its operations in turn
    void (*handler)() = nullptr;
    int ticks = 0;              ///< how often time may pass any deadline at a moment of the explorer's choice
};

[[nodiscard]] std::span<const Scenario> scenarios() noexcept;
/// Sets up the process for scenarios with devices. Before the first schedule.
void prepare_devices() noexcept;

/// Until the word is `value`: a loop of the program that looks again and again.
template <class T>
void await(const sync::Atomic<T>& word, T value, sync::Site site = sync::Site::current()) noexcept
{
    sync::access<T>(Kind::await, &word, std::memory_order_acquire, value, site);
}

/// The thread is where it was before, with nothing left of its past: schedules that differ only in that are one.
inline void forget_past(sync::Site site = sync::Site::current()) noexcept
{
    sync::access<std::uint64_t>(Kind::label, nullptr, std::memory_order_relaxed, 0, site);
}

/// A word of durable memory: plain, so a race with its copy is a violation.
class DurableWord {
public:
    [[nodiscard]] std::uint64_t read(sync::Site site = sync::Site::current()) const noexcept
    {
        touch(Kind::plain_read, site);
        return value_;
    }
    void write(std::uint64_t value, sync::Site site = sync::Site::current()) noexcept
    {
        touch(Kind::plain_write, site);
        value_ = value;
    }
    /// The result of the last store, for a check after all threads ended.
    [[nodiscard]] std::uint64_t last() const noexcept { return value_; }

private:
    void touch(Kind kind, sync::Site site) const noexcept
    {
        sync::access<std::uint64_t>(kind, &value_, std::memory_order_relaxed, 0, site);
    }
    std::uint64_t value_ = 0;
};

}  // namespace stillpoint::schedules
