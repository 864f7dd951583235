#pragma once
// GroupCommit: on block media one thread writes what all logs have new together with the marker, and one sync makes all of it durable
// for every thread that waits. The marker says how many transactions it covers: without all of them it does not count, so it needs no
// sync of its own.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "logs/commit_order.hpp"
#include "logs/redo_log.hpp"
#include "media/medium.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::logs {

inline constexpr std::uint64_t group_magic = 0x3150'5552'4752'5453;  // "STRGRUP1"

/// One of two pages, in turn.
struct GroupRecord {
    std::uint64_t magic;
    std::uint64_t checksum;      ///< of the fields that follow
    std::uint64_t number;        ///< of the group, from 1, in all runs
    Timestamp marker;            ///< every transaction up to it is durable
    std::uint64_t transactions;  ///< how many there are up to it, in all runs
};
static_assert(sizeof(GroupRecord) == 40);
[[nodiscard]] std::uint64_t group_checksum(const GroupRecord& record, std::uint64_t seed) noexcept;

class GroupCommit {
public:
    struct Parts {
        Medium* medium;
        os::FutexLock* medium_lock;  ///< keeps other users of the medium apart
        ChunkSpace* space;
        CommitOrder* order;
        const CommitClock* clock;
        std::uint64_t record_offset;  ///< of the two pages
        std::uint64_t checksum_seed;
        /// The logs in use: how many, and each.
        std::uint32_t (*log_count)(void* context) noexcept;
        RedoLog& (*log)(void* context, std::uint32_t number) noexcept;
        /// Called once, on the thread.
        void (*on_failure)(void* context, const Failure& failure) noexcept;
        void* context;
        /// The newest marker that a crash may cut the logs at: at most the clock's present, and never less than at an earlier call.
        /// nullptr: the present. While it is older, rounds follow each other until all that was awaited is durable.
        Timestamp (*cut)(void* context) noexcept = nullptr;
        /// Records that no thread waits for are durable after so long, and a round.
        std::uint64_t unawaited_ns = 0;
        /// After each round that has written something. `oldest_ns`: since when the oldest record was there that no thread waited for;
        /// 0: there was none. nullptr: nothing is to be done.
        void (*on_round)(void* context, std::uint64_t oldest_ns) noexcept = nullptr;
    };

    GroupCommit() = default;
    GroupCommit(const GroupCommit&) = delete;
    GroupCommit& operator=(const GroupCommit&) = delete;
    ~GroupCommit() { stop(); }

    /// `last`: the newest group in force. Errors: no_memory.
    [[nodiscard]] Result<void> start(const Parts& parts, const GroupRecord& last);
    void stop() noexcept;
    void detach_after_fork() noexcept { thread_.forget(); }

    /// Returns when everything up to `timestamp`, which the caller has in its log, is durable. Errors: io, no_space, pool_read_only.
    [[nodiscard]] Result<void> wait(Timestamp timestamp) noexcept;
    /// Likewise, until the monotonic clock has `deadline_ns`. Errors also: timed_out.
    [[nodiscard]] Result<void> wait_until(Timestamp timestamp, std::uint64_t deadline_ns) noexcept;
    /// Something is in a log that no thread waits for: a round comes for it.
    void note_unawaited() noexcept
    {
        if (unawaited_since_ns_.load(std::memory_order_seq_cst) == 0) [[unlikely]] {
            begin_unawaited();
        }
    }
    /// Since when the oldest record was there that the round in progress writes and no thread waits for; 0: there is no such round.
    [[nodiscard]] std::uint64_t round_oldest_ns() const noexcept { return round_oldest_ns_.load(std::memory_order_acquire); }
    /// The newest group that is durable.
    [[nodiscard]] GroupRecord newest() noexcept;
    /// Also where the pool has failed elsewhere: nothing becomes durable any more.
    void fail_for_good(const Failure& failure) noexcept;

private:
    static constexpr std::uint64_t staging_pages = 1024;

    static void run(void* self);
    void loop() noexcept;
    [[nodiscard]] bool await_work() noexcept;
    void begin_unawaited() noexcept;
    void go_on_after_cut(std::uint64_t oldest_ns) noexcept;
    /// One write and sync for all that is pending.
    void do_round() noexcept;
    [[nodiscard]] Result<void> gather(RedoLog& log, Timestamp marker, std::uint64_t& transactions) noexcept;
    /// Bytes of the chunk from `at` to `end`, which do not change before `settled`.
    [[nodiscard]] Result<void> gather_pages(ChunkIndex chunk, std::uint64_t at, std::uint64_t end, std::uint64_t settled) noexcept;
    [[nodiscard]] Result<void> make_room_for_write() noexcept;
    [[nodiscard]] Result<void> gather_record(const GroupRecord& record) noexcept;
    [[nodiscard]] Result<void> write_gathered() noexcept;
    [[nodiscard]] Result<void> sync() noexcept;

    Parts parts_{};
    os::ServiceThread thread_;
    std::atomic<std::uint32_t> pending_{0};  ///< transactions that wait, and that no round has taken
    std::atomic<std::uint32_t> awaited_{1};  ///< with so many the thread is woken
    std::atomic<std::uint32_t> wakes_{0};  ///< futex of the thread
    std::atomic<std::uint64_t> unawaited_since_ns_{0};  ///< 0: everything is taken by a round, or waited for
    std::atomic<std::uint64_t> round_oldest_ns_{0};
    std::atomic<std::uint32_t> rounds_{0};  ///< finished ones; futex of the threads that wait
    std::atomic<bool> stopping_{false};
    std::atomic<bool> has_failed_{false};
    os::FutexLock failure_lock_;
    Failure failure_{};

    os::FutexLock record_lock_;
    GroupRecord newest_{};
    // Used by the thread alone.
    os::ReservedArray<std::byte> staging_;
    os::ReservedArray<BlockWrite> writes_;
    std::uint64_t staged_pages_ = 0;
    std::uint64_t write_count_ = 0;
    std::uint32_t pending_last_ = 1;
    std::uint64_t round_ns_ = 0;
};

}  // namespace stillpoint::logs
