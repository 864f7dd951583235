#pragma once
// Stands in for src/os/futex_calls.hpp: the explorer knows which thread sleeps on which word.

#include <climits>
#include <cstdint>

#include "core/sync.hpp"

namespace stillpoint::os {

inline void futex_wait(const sync::Atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t deadline_ns = UINT64_MAX,
                       sync::Site site = sync::Site::current()) noexcept
{
    schedules::Operation operation{.kind = schedules::Kind::futex_wait,
                                   .address = const_cast<void*>(static_cast<const void*>(&word)),
                                   .bytes = sizeof expected,
                                   .operand = expected,
                                   .deadline_ns = deadline_ns};
    operation.site = site;
    schedules::perform(operation);
}

inline void futex_wake(const sync::Atomic<std::uint32_t>& word, int threads = INT_MAX, sync::Site site = sync::Site::current()) noexcept
{
    schedules::Operation operation{.kind = schedules::Kind::futex_wake,
                                   .address = const_cast<void*>(static_cast<const void*>(&word)),
                                   .bytes = sizeof(std::uint32_t),
                                   .operand = static_cast<std::uint64_t>(threads)};
    operation.site = site;
    schedules::perform(operation);
}

}  // namespace stillpoint::os
