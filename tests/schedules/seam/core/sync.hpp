#pragma once
// Stands in for src/core/sync.hpp: each access asks the schedule explorer. Same sizes, same zero-initialised state.

#include <atomic>
#include <cstring>
#include <source_location>

#include "tests/schedules/operation.hpp"

namespace stillpoint::sync {

using Site = std::source_location;
using Order = std::memory_order;
using schedules::Kind;
using schedules::Operation;

template <class T>
std::uint64_t to_word(T value) noexcept
{
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}

template <class T>
T from_word(std::uint64_t word) noexcept
{
    T value{};
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <class T>
T access(Kind kind, const void* where, Order order, T operand, Site site) noexcept
{
    Operation operation{.kind = kind, .order = order, .address = const_cast<void*>(where), .bytes = sizeof(T)};
    operation.operand = to_word(operand);
    operation.site = site;
    return from_word<T>(schedules::perform(operation));
}

template <class T>
bool compare_exchange(void* where, T& expected, T desired, Order success, Order failure, Site site) noexcept
{
    Operation operation{
        .kind = Kind::compare_exchange, .order = success, .order_of_failure = failure, .address = where, .bytes = sizeof(T)};
    operation.operand = to_word(desired);
    operation.expected = to_word(expected);
    operation.site = site;
    expected = from_word<T>(schedules::perform(operation));
    return operation.succeeded;
}

inline constexpr Order strongest = std::memory_order_seq_cst;

template <class T>
class Atomic {
public:
    constexpr Atomic() noexcept : value_{} {}
    constexpr Atomic(T value) noexcept : value_(value) {}  // Implicit, as std::atomic's.
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(Order order = strongest, Site site = Site::current()) const noexcept { return access<T>(Kind::load, &value_, order, T{}, site); }
    void store(T value, Order order = strongest, Site site = Site::current()) noexcept
    {
        access<T>(Kind::store, &value_, order, value, site);
    }
    T exchange(T value, Order order = strongest, Site site = Site::current()) noexcept
    {
        return access<T>(Kind::exchange, &value_, order, value, site);
    }
    T fetch_add(T value, Order order = strongest, Site site = Site::current()) noexcept
    {
        return access<T>(Kind::add, &value_, order, value, site);
    }
    T fetch_sub(T value, Order order = strongest, Site site = Site::current()) noexcept
    {
        return access<T>(Kind::add, &value_, order, static_cast<T>(T{} - value), site);
    }
    T fetch_or(T value, Order order = strongest, Site site = Site::current()) noexcept
    {
        return access<T>(Kind::bit_or, &value_, order, value, site);
    }
    T fetch_and(T value, Order order = strongest, Site site = Site::current()) noexcept
    {
        return access<T>(Kind::bit_and, &value_, order, value, site);
    }
    bool compare_exchange_strong(T& expected, T desired, Order order = strongest, Site site = Site::current()) noexcept
    {
        const Order failure = order == std::memory_order_acq_rel   ? std::memory_order_acquire
                              : order == std::memory_order_release ? std::memory_order_relaxed
                                                                   : order;
        return sync::compare_exchange(&value_, expected, desired, order, failure, site);
    }
    /// Never fails without a reason.
    bool compare_exchange_weak(T& expected, T desired, Order order = strongest, Site site = Site::current()) noexcept
    {
        return compare_exchange_strong(expected, desired, order, site);
    }

private:
    T value_;
};

template <class T>
class AtomicRef {
public:
    explicit AtomicRef(T& value) noexcept : value_(&value) {}
    T load(Order order = strongest, Site site = Site::current()) const noexcept { return access<T>(Kind::load, value_, order, T{}, site); }
    void store(T value, Order order = strongest, Site site = Site::current()) const noexcept
    {
        access<T>(Kind::store, value_, order, value, site);
    }
    T exchange(T value, Order order = strongest, Site site = Site::current()) const noexcept
    {
        return access<T>(Kind::exchange, value_, order, value, site);
    }
    T fetch_or(T value, Order order = strongest, Site site = Site::current()) const noexcept
    {
        return access<T>(Kind::bit_or, value_, order, value, site);
    }
    T fetch_and(T value, Order order = strongest, Site site = Site::current()) const noexcept
    {
        return access<T>(Kind::bit_and, value_, order, value, site);
    }
    bool compare_exchange_strong(T& expected, T desired, Order success, Order failure, Site site = Site::current()) const noexcept
    {
        return sync::compare_exchange(value_, expected, desired, success, failure, site);
    }

private:
    T* value_;
};

inline void fence(Order order, Site site = Site::current()) noexcept { access<std::uint64_t>(Kind::fence, nullptr, order, 0, site); }

inline void compiler_fence(Order order, Site site = Site::current()) noexcept
{
    access<std::uint64_t>(Kind::compiler_fence, nullptr, order, 0, site);
}

}  // namespace stillpoint::sync
