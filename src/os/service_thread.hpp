#pragma once
// Threads of the runtime's own inside the program's process: all signals blocked, so that the
// program's handlers never run there, and started behind the interposer's back, so that they
// are not counted among the program's threads.

#include <pthread.h>

#include "core/result.hpp"

namespace stillpoint::os {

class ServiceThread {
public:
    ServiceThread() = default;
    ServiceThread(const ServiceThread&) = delete;
    ServiceThread& operator=(const ServiceThread&) = delete;

    /// Threads that are started later take this signal too: for a handler of faults that they may cause. Not thread-safe.
    static void leave_open(int signal) noexcept;

    /// `name`: at most 15 bytes, shown by ps and debuggers. Errors: no_memory.
    [[nodiscard]] Result<void> start(const char* name, void (*run)(void*), void* context);
    /// Waits for its end; nothing if it was never started.
    void join() noexcept;
    /// In a child after fork: the thread does not exist there.
    void forget() noexcept { running_ = false; }
    [[nodiscard]] bool running() const noexcept { return running_; }

private:
    static void* entry(void* self);

    pthread_t thread_{};
    const char* name_ = nullptr;
    void (*run_)(void*) = nullptr;
    void* context_ = nullptr;
    bool running_ = false;
};

}  // namespace stillpoint::os
