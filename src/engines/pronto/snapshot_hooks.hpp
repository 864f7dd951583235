#pragma once
// Where a snapshot meets the semantic log.

#include <cstdint>

namespace stillpoint::pronto {

/// Each may be nullptr. None may call malloc or take an intercepted lock; only `capturing` may store into the image.
struct SnapshotHooks {
    void* context = nullptr;
    /// In the stop, on the snapshot's thread, before anything is frozen. Memory that it stores into must be prepared first
    /// (Engine::prepare_kernel_write).
    void (*capturing)(void* context) noexcept = nullptr;
    /// On the snapshot's thread: `epoch` is durable.
    void (*committed)(void* context, std::uint64_t epoch) noexcept = nullptr;
    /// On the snapshot's thread: nothing has been written for a second or longer.
    void (*idle)(void* context) noexcept = nullptr;
};

}  // namespace stillpoint::pronto
