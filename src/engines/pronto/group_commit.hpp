#pragma once
// GroupCommit: on block media one thread writes what all objects' logs have new, and one sync makes it durable for all threads that wait.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/pronto/live_object.hpp"
#include "engines/pronto/log_space.hpp"
#include "media/medium.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::pronto {

class GroupCommit {
public:
    GroupCommit() = default;
    GroupCommit(const GroupCommit&) = delete;
    GroupCommit& operator=(const GroupCommit&) = delete;
    ~GroupCommit() { stop(); }

    /// `medium_lock` keeps other users of the medium apart. `on_failure(context, failure)` is called once, on the thread.
    /// Errors: no_memory.
    [[nodiscard]] Result<void> start(Medium& medium, os::FutexLock& medium_lock, LogSpace& space,
                                     void (*on_failure)(void* context, const Failure& failure) noexcept, void* context);
    void stop() noexcept;
    void detach_after_fork() noexcept { thread_.forget(); }

    /// The object's log has one more operation. Call with its log_lock held. Returns its turn: turns are given in order, from 1.
    std::uint64_t add(LiveObject& object) noexcept;
    /// Returns when the operation with that turn and all before it are durable. Errors: timed_out (at `deadline_ns`); as the other.
    [[nodiscard]] Result<void> wait_for_turn(std::uint64_t turn, std::uint64_t deadline_ns) noexcept;
    /// Returns when the object's operations up to `number` are durable. Errors: io, no_space, pool_read_only.
    [[nodiscard]] Result<void> wait(const LiveObject& object, std::uint64_t number) noexcept;
    /// Returns when all that was added by now is on the medium, or never will be.
    void drain() noexcept;

    [[nodiscard]] bool failed() const noexcept { return has_failed_.load(std::memory_order_acquire); }
    [[nodiscard]] const Failure& failure() const noexcept { return failure_; }

private:
    static constexpr std::uint64_t staging_pages = 1024;

    static void run(void* self);
    void loop() noexcept;
    void await_work() noexcept;
    /// Until a round has stored `wanted`, or more, there. Errors: those of the rounds; timed_out.
    [[nodiscard]] Result<void> await(const std::atomic<std::uint64_t>& durable, std::uint64_t wanted, std::uint64_t deadline_ns) noexcept;
    /// One write and sync for all that is pending.
    void do_round() noexcept;
    [[nodiscard]] Result<void> gather(LiveObject& object) noexcept;
    [[nodiscard]] Result<void> gather_chunk(ChunkIndex chunk) noexcept;
    [[nodiscard]] Result<void> gather_pages(ChunkIndex chunk, std::uint64_t at, std::uint64_t end) noexcept;
    [[nodiscard]] Result<void> write_gathered() noexcept;
    [[nodiscard]] Result<void> sync() noexcept;

    Medium* medium_ = nullptr;
    os::FutexLock* medium_lock_ = nullptr;
    LogSpace* space_ = nullptr;
    void (*on_failure_)(void*, const Failure&) noexcept = nullptr;
    void* on_failure_context_ = nullptr;
    os::ServiceThread thread_;

    os::FutexLock list_lock_;
    LiveObject* pending_ = nullptr;
    std::uint64_t operations_ = 0;            ///< added and not yet taken by a round
    std::uint64_t turns_ = 0;                 ///< given
    std::uint64_t awaited_operations_ = 1;    ///< with so many the thread is woken
    std::atomic<std::uint32_t> wakes_{0};     ///< futex of the thread
    std::atomic<std::uint32_t> rounds_{0};    ///< finished ones; futex of the threads that wait
    std::atomic<std::uint32_t> rounds_begun_{0};
    std::atomic<std::uint64_t> durable_turn_{0};  ///< this turn and all before it are durable
    std::atomic<bool> stopping_{false};
    std::atomic<bool> has_failed_{false};
    Failure failure_{};

    // Used by the thread alone.
    os::ReservedArray<std::byte> staging_;
    os::ReservedArray<BlockWrite> writes_;
    std::uint64_t staged_pages_ = 0;
    std::uint64_t write_count_ = 0;
    std::uint64_t operations_last_ = 1;
    std::uint64_t round_ns_ = 0;
};

}  // namespace stillpoint::pronto
