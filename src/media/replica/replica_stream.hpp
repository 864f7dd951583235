#pragma once
// The calls that a medium has had and its replica has not made durable yet, in their order. One thread appends, one takes.
//
// An entry stays until a sync after it is confirmed: where the connection to the replica is lost, everything since the last confirmed sync
// is sent again. Pages that are written a second time do no harm, since nothing after the next sync was sent yet.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "media/medium.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint {

enum class ReplicaCall : std::uint8_t { write, sync, resize, publish };

struct ReplicaEntry {
    ReplicaCall call;
    std::uint64_t offset;  ///< write; resize: the new size
    std::uint64_t size;    ///< write
    std::uint64_t begin;   ///< write: of its bytes, in the stream's memory; resize: the old size
    std::uint64_t pushed_ns;
    std::uint64_t newest_epoch;  ///< sync: the durable epoch when the next entry was appended; 0: none was yet
};

/// Memory: what is in the stream, at most `capacity_bytes`.
class ReplicaStream {
public:
    /// Errors: no_memory (no address space).
    [[nodiscard]] Result<void> reserve(std::uint64_t capacity_bytes);

    // -- The thread that appends. ----------------------------------------------------------
    /// Copies the bytes of a batch in; waits while there is no room. `newest_epoch` is that of all syncs before. No malloc.
    void append_writes(std::span<const BlockWrite> batch, std::uint64_t newest_epoch) noexcept;
    /// resize: from `begin` to `size_bytes`.
    void append(ReplicaCall call, std::uint64_t newest_epoch, std::uint64_t size_bytes = 0, std::uint64_t begin = 0) noexcept;
    /// Entries so far: what confirmed() has to reach.
    [[nodiscard]] std::uint64_t end() const noexcept { return end_.load(std::memory_order_acquire); }

    // -- The thread that takes. ------------------------------------------------------------
    /// The entries after the last one that was taken, at most `entries_max` writes, or one that is not a write. Empty: there is none.
    [[nodiscard]] std::span<const ReplicaEntry> next(std::size_t entries_max) const noexcept;
    [[nodiscard]] const std::byte* bytes_of(const ReplicaEntry& entry) const noexcept { return memory_.data() + entry.begin; }
    void take(std::size_t entries) noexcept { taken_ += entries; }
    /// Everything that was taken is durable there.
    void confirm_taken() noexcept;
    /// Entries that were taken and are not confirmed come again.
    void rewind() noexcept { taken_ = confirmed_.load(std::memory_order_relaxed); }
    /// So much was taken since the last confirmation that the appender may wait for it.
    [[nodiscard]] bool wants_confirmation() const noexcept;
    /// Sleeps until there is something to take, until `deadline_ns`, or until wake().
    void wait_for_entries(std::uint64_t deadline_ns) const noexcept;

    // -- Any thread. -----------------------------------------------------------------------
    [[nodiscard]] std::uint64_t confirmed() const noexcept { return confirmed_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_empty() const noexcept { return confirmed() == end(); }
    /// Bytes of the writes that are not confirmed.
    [[nodiscard]] std::uint64_t bytes_waiting() const noexcept
    {
        return data_end_.load(std::memory_order_acquire) - data_confirmed_.load(std::memory_order_acquire);
    }
    /// When the oldest entry that is not confirmed was appended; 0: there is none.
    [[nodiscard]] std::uint64_t oldest_ns() const noexcept;
    /// The newest epoch that the confirmed syncs are known to have made durable.
    [[nodiscard]] std::uint64_t confirmed_epoch() const noexcept { return confirmed_epoch_.load(std::memory_order_acquire); }
    /// Waits until `position` is confirmed, until close() or `deadline_ns`. False: it is not.
    [[nodiscard]] bool wait_confirmed(std::uint64_t position, std::uint64_t deadline_ns) const noexcept;
    void wake() noexcept;
    /// Nothing is confirmed any more: all waiting threads go on, and what is appended is dropped.
    void close() noexcept;
    [[nodiscard]] bool is_closed() const noexcept { return is_closed_.load(std::memory_order_acquire); }

private:
    [[nodiscard]] bool wait_for_room(std::uint64_t bytes) noexcept;
    void push(const ReplicaEntry& entry, std::uint64_t newest_epoch) noexcept;

    os::ReservedArray<std::byte> memory_;
    os::ReservedArray<ReplicaEntry> entries_;
    std::uint64_t capacity_ = 0;
    std::uint64_t taken_ = 0;  ///< the taker's
    std::atomic<std::uint64_t> end_{0};
    std::atomic<std::uint64_t> confirmed_{0};
    std::atomic<std::uint64_t> data_end_{0};  ///< bytes that were ever appended, gaps at the end of the memory among them
    std::atomic<std::uint64_t> data_confirmed_{0};
    std::atomic<std::uint64_t> confirmed_epoch_{0};
    std::atomic<bool> is_closed_{false};
    mutable os::FutexLock lock_;  ///< of newest_epoch in entries, and of the oldest entry
    std::atomic<std::uint32_t> appended_{0};   ///< futex of the taker
    std::atomic<std::uint32_t> confirmations_{0};  ///< futex of the appender and of all waiting threads
};

}  // namespace stillpoint
