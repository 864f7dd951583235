#pragma once
// The model of libc behind the shims in the explorer: glibc's mutex (its real algorithm on the mutex's own words), its
// spinlock, and a condition variable that wakes in the order of arrival and for no other reason.

#include <cstdint>
#include <pthread.h>
#include <string_view>

namespace stillpoint::schedules {

/// Makes the shims call the functions of the model. Before the first schedule.
void install_libc_model() noexcept;

/// The newest message of the library to the user in this schedule.
extern char last_message[256];
void note_message(std::string_view text) noexcept;

/// How often libc's functions for mutexes were called; a scenario sets it to 0.
extern std::uint32_t mutex_calls_of_libc;

/// By the thread that ends next; set by its scenario.
extern std::uint32_t robust_locks_held;

int signal_condition(pthread_cond_t& condition) noexcept;

}  // namespace stillpoint::schedules
