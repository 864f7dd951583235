#pragma once
// FaseLogs: the redo logs of a pool's threads, and how their FASEs become durable. How stores are found is not known here: the code that
// finds one adds it, with its value, and says when other threads may see it.
//
// A record has what one thread stored between two moments at which others may see it. Its timestamp is taken before the lock is released,
// so timestamps are in the order in which locks pass from thread to thread, conditions and barriers wake, and threads are made and joined.

#include <atomic>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "engines/nvthreads/direct_commit.hpp"
#include "engines/nvthreads/fase_thread.hpp"
#include "engines/nvthreads/open_fases.hpp"
#include "logs/chunk_space.hpp"
#include "logs/commit_clock.hpp"
#include "logs/commit_order.hpp"
#include "logs/early_pages.hpp"
#include "logs/group_commit.hpp"
#include "logs/replayed_logs.hpp"
#include "logs/shared_logs.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::nvthreads {

/// When an outermost unlock returns.
enum class Acknowledge : std::uint8_t {
    unlock,  ///< once its FASE is durable
    order,  ///< at once: FASEs become durable afterwards, in their order
};

class FaseLogs final : public logs::ReplayedLogs {
public:
    /// Threads that may have logs at a time.
    static constexpr std::uint32_t threads_max = logs::CommitOrder::slots_max;

    struct Parts {
        Pool* pool;
        os::FutexLock* medium_lock;
        const Shadow* shadow;
        std::uint64_t image_bytes_max;
        Acknowledge acknowledge;
        bool spares_markers;  ///< DirectCommit::Parts
        std::uint64_t delay_ns;  ///< order: the log is written so long after the first FASE that it lacks
        std::uint64_t loss_max_ns;  ///< order: while the oldest FASE that is not durable is older, unlocks wait
        std::uint64_t wait_max_ns;  ///< longest wait for a FASE of another thread that has handed a part over and does not end
        unsigned statistics_number;
        /// A replay is due, or threads wait for one. Any thread.
        void (*request_replay)(void* engine) noexcept;
        /// Nothing becomes durable any more.
        void (*give_up)(void* engine, const Failure& failure) noexcept;
        void* engine;
    };

    FaseLogs() = default;
    FaseLogs(const FaseLogs&) = delete;
    FaseLogs& operator=(const FaseLogs&) = delete;
    ~FaseLogs() override;

    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare(const Parts& parts);
    /// FASEs are logged from here on, with timestamps later than `after`. `group`: the newest that counts. Errors: no_memory.
    [[nodiscard]] Result<void> start(Timestamp after, const logs::GroupRecord& group);
    void stop() noexcept;
    void detach_after_fork() noexcept;

    // -- The calling thread ----------------------------------------------------------------------
    /// It has stored the bytes [address, + size), which hold them still. Memory outside of the image is left out.
    void add(const void* address, std::size_t size) noexcept;
    /// Likewise the library itself, whose tables all threads use: they see the store as soon as this returns.
    void add_shared(const void* address, std::size_t size) noexcept;
    /// All that it has added is in its log when this returns, with a timestamp.
    void hand_over(section_ends::Handover handover) noexcept;
    /// A FASE of the thread has ended, and it holds no lock: returns when it may go on.
    void acknowledge() noexcept;
    /// Returns when everything that the thread has done or seen is durable. It is in no FASE. Errors: timed_out; why the pool has failed.
    [[nodiscard]] Result<void> wait_durable(std::uint64_t deadline_ns) noexcept;
    void thread_ends() noexcept;

    // -- For threads of other processes (processes/supervisor.hpp), by the one thread that writes for them --------
    /// One of them has stored these bytes.
    void add_value(std::uint64_t offset, const void* bytes, std::size_t size) noexcept;
    /// All that was added is in the log when this returns. `goes_on`: its section does. `is_part`: it is not the whole of one, nor is what
    /// this thread stores until the next call.
    void hand_over_value(bool goes_on, bool is_part) noexcept;
    /// No cut lies between the two calls. They may overlap.
    void hold_cut() noexcept { static_cast<void>(open_fases_.open(clock_)); }
    void release_cut() noexcept { open_fases_.close(); }
    /// The newest record that a thread may have seen by now and that may not be durable.
    [[nodiscard]] Timestamp newest_to_await() const noexcept { return is_direct_ ? direct_.newest_marked() : clock_.now(); }
    /// Returns when everything up to `timestamp` is durable. Errors: timed_out; why the pool has failed.
    [[nodiscard]] Result<void> await(Timestamp timestamp, std::uint64_t deadline_ns) noexcept;
    /// Everything up to it is durable.
    [[nodiscard]] Timestamp durable() noexcept { return order_.durable(); }
    /// acknowledge=order: what is being written is older than it may be, so acknowledge() would wait.
    [[nodiscard]] bool is_behind() noexcept;

    // -- For the replayer --------------------------------------------------------------------------
    [[nodiscard]] logs::ChunkSpace& space() noexcept override { return space_; }
    [[nodiscard]] std::uint32_t log_count() const noexcept override
    {
        return logs_of_thread() * shared_logs_.logs_of(thread_count_.load(std::memory_order_acquire));
    }
    [[nodiscard]] logs::RedoLog& log(std::uint32_t number) noexcept override
    {
        FaseThread& thread = *threads_[number / logs_of_thread()];
        return number % logs_of_thread() == 0 ? *thread.log : thread.large_log;
    }
    [[nodiscard]] logs::GroupRecord replayable() noexcept override;
    [[nodiscard]] bool groups_count_records() const noexcept override { return !is_direct_; }
    [[nodiscard]] Result<bool> try_seal() noexcept override;
    [[nodiscard]] std::span<const std::uint32_t> early_pages() const noexcept override { return early_pages_.pages(); }
    void fail_for_good(const Failure& failure) noexcept override;

    [[nodiscard]] bool has_failed() const noexcept { return has_failed_.load(std::memory_order_acquire); }
    [[nodiscard]] Acknowledge mode() const noexcept { return parts_.acknowledge; }

private:
    static constexpr std::uint64_t no_offset = UINT64_MAX;

    [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept
    {
        const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - image_base_);
        return offset < parts_.image_bytes_max ? offset : no_offset;
    }
    /// nullptr: no memory, or too many threads, and the pool has failed.
    [[nodiscard]] FaseThread* own() noexcept;
    [[nodiscard]] FaseThread* own_if_any() const noexcept;
    [[nodiscard]] FaseThread* make_own() noexcept;
    void put(FaseThread& own, std::uint64_t offset, const void* address, std::size_t size) noexcept;
    /// Moves the record to the log. `begins_open`: it is the first part of a FASE that goes on.
    void append(FaseThread& own, bool begins_open) noexcept;
    void end_fase(FaseThread& own) noexcept;
    void hand_over(FaseThread& own, section_ends::Handover handover) noexcept;
    /// The thread needs its log no more.
    void release(FaseThread& own) noexcept;
    [[nodiscard]] bool make_room(FaseThread& own, logs::RedoLog& log) noexcept;
    [[nodiscard]] Result<void> prepare_logs_of(FaseThread& thread) noexcept;
    [[nodiscard]] std::uint32_t logs_of_thread() const noexcept { return has_large_logs_ ? 2 : 1; }
    [[nodiscard]] Result<void> prepare_shared_logs() noexcept;
    [[nodiscard]] Result<void> start_group_commit(const logs::GroupRecord& group);
    void start_direct_commit() noexcept;
    [[nodiscard]] bool is_loss_bounded() const noexcept;
    [[nodiscard]] Result<void> await_marker(Timestamp timestamp, std::uint64_t deadline_ns) noexcept;
    void publish_counts() noexcept;
    void note_round(std::uint64_t oldest_ns) noexcept;

    Parts parts_{};
    const std::byte* image_base_ = nullptr;
    std::uint64_t serial_ = 0;  ///< of no other in this process
    Medium* medium_ = nullptr;
    logs::CommitClock clock_;
    logs::CommitOrder order_;
    OpenFases open_fases_;
    logs::ChunkSpace space_;
    logs::SharedLogs shared_logs_;  ///< block media
    bool is_direct_ = false;  ///< records become durable by direct_, not by group_
    bool has_large_logs_ = false;  ///< records become durable by group_, but threads write their large ones themselves
    logs::GroupCommit group_;
    DirectCommit direct_;
    std::atomic<bool> is_running_{false};

    os::FutexLock early_lock_;
    logs::EarlyPages early_pages_;

    os::FutexLock threads_lock_;
    os::ReservedArray<FaseThread*> threads_;
    std::atomic<std::uint32_t> thread_count_{0};
    os::ReservedArray<std::uint32_t> free_threads_;  ///< numbers of those whose threads have ended
    std::uint32_t free_thread_count_ = 0;

    std::atomic<bool> has_failed_{false};
    os::FutexLock failure_lock_;
    Failure failure_{};
};

}  // namespace stillpoint::nvthreads
