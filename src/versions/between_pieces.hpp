#pragma once
// What the writer of an epoch does between pieces of long work: where threads of the program wait for its CPU, it lets them run.

namespace stillpoint::versions {

/// Called without a lock, each some ten microseconds of work. Nothing by default.
struct BetweenPieces {
    void (*call)(void* context) noexcept = nullptr;
    void* context = nullptr;

    void operator()() const noexcept
    {
        if (call != nullptr) {
            call(context);
        }
    }
};

}  // namespace stillpoint::versions
