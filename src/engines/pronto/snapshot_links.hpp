#pragma once
// The interface of the engine's snapshots to the semantic log.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "os/futex.hpp"
#include "pool/pool.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::pronto {

struct SnapshotLinks {
    void* engine;
    Pool* pool;
    const Shadow* shadow;
    os::FutexLock* medium_lock;
    /// A snapshot as soon as possible. Any thread.
    void (*request_snapshot)(void* engine) noexcept;
    /// Returns when what the image has by now is durable. Outside FASEs. Errors: as sp_checkpoint.
    Result<void> (*snapshot_now)(void* engine);
    /// A snapshot is captured and on its way to the medium, which may take long.
    bool (*is_writing)(void* engine) noexcept;
    /// How many pages the last snapshot has copied, to write what of them had changed. Snapshot thread.
    std::uint64_t (*pages_of_last_snapshot)(void* engine) noexcept;
    /// Nothing later becomes durable by a snapshot: the medium failed, or the image has what must not become durable. The first call
    /// counts.
    void (*give_up)(void* engine, const Failure& failure) noexcept;
    /// Why, or nullptr.
    const Failure* (*failure)(void* engine) noexcept;
    /// Makes image memory writable for the snapshot thread, in a stop.
    void (*prepare_write)(void* engine, void* address, std::size_t size) noexcept;
};

}  // namespace stillpoint::pronto
