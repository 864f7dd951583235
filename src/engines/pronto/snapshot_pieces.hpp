#pragma once
// The image in pieces of 2 MiB, and which of them were written since the last snapshot [Pronto §5.2.2].
//
//   clean     read-only; as the last snapshot has it, or will have it
//   written   writable: the first write to a clean piece was a fault
//   frozen    read-only, as it was in the stop; the snapshot has no copy yet
//   copying   on its way to staging memory: by the snapshot's thread, then it is clean; by the handler of a write, then it is written
//
// The stop makes frozen what was written, by one mprotect: nothing is copied while the program is held.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "engines/pronto/snapshot_staging.hpp"
#include "os/reserved_array.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::pronto {

/// Threads: faults by any, in a handler; freeze and copy_frozen by the snapshot's thread; grow by one at a time.
class SnapshotPieces {
public:
    SnapshotPieces(Shadow& shadow, SnapshotStaging& staging) noexcept : shadow_(shadow), staging_(staging) {}

    [[nodiscard]] Result<void> reserve(std::uint64_t image_bytes_max);
    /// The whole image is clean from now on. Errors: no_memory.
    [[nodiscard]] Result<void> protect_all();
    /// Makes the image larger; what comes new is clean. Errors: no_memory.
    [[nodiscard]] Result<void> grow(std::uint64_t image_bytes);
    /// In a child after fork: writable memory, nothing tracked.
    void detach_after_fork() noexcept;

    /// True if the fault was a write to a piece that was not writable; it is now. Async-signal-safe.
    [[nodiscard]] bool handle_fault(const void* address) noexcept;
    /// As a write to each piece of [address, + size) would.
    void prepare_write(const void* address, std::size_t size) noexcept;

    [[nodiscard]] bool any_written() const noexcept;

    /// Before a stop, where the image was not made of huge pages: those of written pieces become such, each once. The program runs; a
    /// thread that touches a piece meanwhile waits about a millisecond. What is not loaded yet stays as it is until the next time.
    void collapse_written() noexcept;

    /// In the stop: freezes what was written. Errors: no_memory.
    [[nodiscard]] Result<void> freeze() noexcept;
    [[nodiscard]] std::uint64_t frozen_count() const noexcept { return frozen_count_; }

    enum class CopyResult : std::uint8_t {
        one,  ///< a piece was copied to staging, or was by a handler
        no_slot,  ///< all staging memory that this thread may take is in use
        nothing_frozen,  ///< every piece has its copy, or a handler makes it now
    };
    /// Copies the next frozen piece.
    [[nodiscard]] CopyResult copy_next_frozen() noexcept;
    /// Bytes of the image that lie in the piece, as of the last freeze().
    [[nodiscard]] std::uint64_t captured_bytes_of(std::uint32_t piece) const noexcept;

    /// No snapshot will be written any more: the image is writable, and no thread waits for anything.
    void abandon_snapshots() noexcept;

    /// Threads that wait for a slot or a copy look again.
    void tell_progress() noexcept;
    [[nodiscard]] std::uint32_t progress() const noexcept { return progress_.load(std::memory_order_acquire); }
    /// Sleeps until there was some since `seen` was read.
    void wait_for_progress(std::uint32_t seen) noexcept;

private:
    enum State : std::uint32_t { clean, written, frozen, copying };
    enum class Opened : std::uint8_t { yes, no, later };

    /// No freeze() begins while one of these is there; false: one is going on.
    [[nodiscard]] bool enter_opening() noexcept;
    void leave_opening() noexcept { opening_.fetch_sub(1, std::memory_order_seq_cst); }
    [[nodiscard]] bool open(std::uint32_t piece) noexcept;
    [[nodiscard]] Opened try_open(std::uint32_t piece) noexcept;
    [[nodiscard]] Opened copy_and_open(std::uint32_t piece) noexcept;
    [[nodiscard]] bool make_writable(std::uint32_t piece) noexcept;
    /// Pieces [first, end) are read-only from now on. Errors: no_memory.
    [[nodiscard]] Result<void> protect(std::uint32_t first, std::uint32_t end) noexcept;
    [[nodiscard]] bool copy_in_flight(std::uint32_t piece) noexcept;
    [[nodiscard]] Result<void> make_larger(std::uint64_t image_bytes);
    void copy_to(std::uint32_t slot, std::uint32_t piece) noexcept;

    [[nodiscard]] std::atomic_ref<std::uint32_t> state(std::uint32_t piece) const noexcept
    {
        return std::atomic_ref<std::uint32_t>(states_[piece]);
    }
    [[nodiscard]] std::uint32_t piece_count() const noexcept
    {
        return static_cast<std::uint32_t>((shadow_.bytes() + piece_bytes - 1) / piece_bytes);
    }

    Shadow& shadow_;
    SnapshotStaging& staging_;
    mutable os::ReservedArray<std::uint32_t> states_;
    os::ReservedArray<std::uint32_t> frozen_;  ///< the pieces of the last freeze()
    os::ReservedBitmap collapsed_;
    std::uint64_t frozen_count_ = 0;
    std::uint64_t next_frozen_ = 0;
    std::uint64_t captured_bytes_ = 0;
    std::atomic<std::uint32_t> opening_{0};  ///< threads that may be making a piece writable
    std::atomic<bool> freezing_{false};
    std::atomic<std::uint32_t> progress_{0};  ///< a futex
    std::atomic<std::uint32_t> waiters_{0};
    std::atomic<bool> abandoned_{false};  ///< or this is a child made by fork
};

}  // namespace stillpoint::pronto
