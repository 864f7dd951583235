#pragma once
// ThreadKeys: the keys of pthread_key_create that the program has made since it was divided. libc takes the lowest free key, so a process
// that makes the same keys in the same order gets the same numbers.

#include <array>
#include <atomic>
#include <cstdint>

#include "engines/nvthreads/processes/shared_futex.hpp"

namespace stillpoint::nvthreads::processes {

/// In shared memory; zero bytes are its first value.
struct ThreadKeys {
    static constexpr std::uint32_t keys_max = 1024;  ///< libc's own limit

    OwnedLock lock;
    SharedWord count;
    std::array<std::atomic<void (*)(void*)>, keys_max> destructors;
};

}  // namespace stillpoint::nvthreads::processes
