#pragma once
// Between pieces of long work the writer of an epoch lets threads of the program run that wait for its CPU.

namespace stillpoint::versions {

/// Called without a lock, after some ten microseconds of work each time. Nothing by default.
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
