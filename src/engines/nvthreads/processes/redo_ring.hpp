#pragma once
// RedoRing: what threads have changed in the durable image, in the order of their merges, on its way to the logs. One thread at a time
// writes, under the lock of merges; the supervisor's scribe reads. A record counts once the tail is past it: a process that dies before
// leaves nothing.
//
//   record: RecordHead, then runs of RunHead and the bytes, each padded to 16 bytes

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engines/nvthreads/processes/shared_futex.hpp"

namespace stillpoint::nvthreads::processes {

enum class RecordKind : std::uint32_t {
    padding,       ///< up to the end of the ring
    section_ends,  ///< with the changes, the thread's section is over
    part,          ///< other threads may see the changes, and the section goes on
    call_inside,   ///< a part, after which the supervisor makes the thread's call, which belongs to the section
    call_outside,  ///< the thread is in no section: a call alone
    race,          ///< no change: the run's place was written by two threads without a lock between them
    thread_ends,   ///< as section_ends, and the slot's later records are another thread's
};

struct RecordHead {
    std::uint32_t thread;
    RecordKind kind;
    std::uint64_t bytes;  ///< with this head, a multiple of unit_bytes
};

struct RunHead {
    std::uint64_t offset;  ///< of the image
    std::uint64_t bytes;
};

/// Heads and what follows them begin at multiples of a head's size, so that a head is never divided by the ring's end.
inline constexpr std::uint64_t unit_bytes = 16;
static_assert(sizeof(RecordHead) == unit_bytes && sizeof(RunHead) == unit_bytes);
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes; }

/// Calls visit(offset, bytes, size) for each run of a record's payload.
template <class Visit>
void visit_runs(const std::byte* payload, std::uint64_t bytes, Visit&& visit) noexcept
{
    for (std::uint64_t at = 0; at + sizeof(RunHead) <= bytes;) {
        RunHead run;
        std::memcpy(&run, payload + at, sizeof run);
        at += sizeof run;
        visit(run.offset, payload + at, run.bytes);
        at += padded(run.bytes);
    }
}

/// In shared memory; zero bytes are its first value.
class RedoRing {
public:
    static constexpr std::uint64_t bytes_max = std::uint64_t{32} << 20;
    /// The largest record: it finds room when all before it is read.
    static constexpr std::uint64_t record_bytes_max = bytes_max / 2;

    /// Before there are writers: so much may wait to be read, or one record.
    void set_limit(std::uint64_t bytes) noexcept { limit_bytes_ = bytes; }

    // -- The writer, under the lock of merges ----------------------------------------------------
    /// Adds a record of `payload`, after waiting for room; `give_up` (SharedWord): not 0 ends the wait. False: it was given up.
    [[nodiscard]] bool add(std::uint32_t thread, RecordKind kind, const std::byte* payload, std::uint64_t bytes,
                           const SharedWord& give_up) noexcept;
    /// All that was added is in the image, too: the writer need not be there any more.
    void note_applied() noexcept { applied_.store(tail_.load(std::memory_order_relaxed), std::memory_order_release); }
    /// Records that a writer added and did not live to apply: visit(head, payload). Then they are applied.
    template <class Visit>
    void apply_rest(Visit&& visit) noexcept
    {
        visit_records(applied_.load(std::memory_order_acquire), tail(), visit);
        note_applied();
    }
    /// Wakes the scribe before its time.
    void hurry() noexcept
    {
        hurried_.fetch_add(1, std::memory_order_seq_cst);
        if (reader_sleeps_.load(std::memory_order_seq_cst) != 0) {
            shared_wake(hurried_);
        }
    }

    [[nodiscard]] std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint64_t head() const noexcept { return head_.load(std::memory_order_acquire); }

    // -- The reader --------------------------------------------------------------------------------
    /// Calls visit(head, payload) for each record that is applied, and gives its room back after it. During the call head() is the record's
    /// first position.
    template <class Visit>
    void read(Visit&& visit) noexcept
    {
        while (head() != applied_.load(std::memory_order_acquire)) {
            const std::uint64_t next = visit_records(head(), next_of(head()), visit);
            head_.store(next, std::memory_order_release);
            if (room_waiters_.load(std::memory_order_seq_cst) != 0) {
                room_.fetch_add(1, std::memory_order_seq_cst);
                shared_wake(room_);
            }
        }
    }
    /// Returns when everything before that position was read, or after `ns`.
    void wait_until_read(std::uint64_t position, std::uint64_t ns) noexcept
    {
        room_waiters_.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t seen = room_.load(std::memory_order_seq_cst);
        hurry();
        if (head() < position) {
            shared_wait(room_, seen, ns);
        }
        room_waiters_.fetch_sub(1, std::memory_order_seq_cst);
    }
    /// Returns when a writer hurries, or after `ns`.
    void wait_for_records(std::uint64_t ns) noexcept
    {
        reader_sleeps_.store(1, std::memory_order_seq_cst);
        const std::uint32_t seen = hurried_.load(std::memory_order_seq_cst);
        if (seen == hurried_seen_) {
            shared_wait(hurried_, seen, ns);
        }
        reader_sleeps_.store(0, std::memory_order_relaxed);
        hurried_seen_ = hurried_.load(std::memory_order_seq_cst);
    }

private:
    template <class Visit>
    std::uint64_t visit_records(std::uint64_t from, std::uint64_t to, Visit&& visit) noexcept
    {
        while (from < to) {
            const auto* const at = bytes_ + from % bytes_max;
            RecordHead head;
            std::memcpy(&head, at, sizeof head);
            if (head.kind != RecordKind::padding) {
                visit(head, at + sizeof head);
            }
            from += head.bytes;
        }
        return from;
    }
    [[nodiscard]] std::uint64_t next_of(std::uint64_t from) const noexcept
    {
        RecordHead head;
        std::memcpy(&head, bytes_ + from % bytes_max, sizeof head);
        return from + head.bytes;
    }
    [[nodiscard]] bool has_room(std::uint64_t begin, std::uint64_t end) const noexcept
    {
        const std::uint64_t waiting = end - head();
        return waiting <= bytes_max && (limit_bytes_ == 0 || waiting <= limit_bytes_ || begin == head());
    }
    [[nodiscard]] bool wait_for_room(std::uint64_t begin, std::uint64_t end, const SharedWord& give_up) noexcept;

    std::atomic<std::uint64_t> head_{0};
    alignas(64) std::atomic<std::uint64_t> tail_{0};
    std::atomic<std::uint64_t> applied_{0};
    SharedWord room_{0};
    SharedWord room_waiters_{0};
    SharedWord hurried_{0};
    SharedWord reader_sleeps_{0};
    std::uint64_t limit_bytes_ = 0;  ///< 0: bytes_max
    std::uint32_t hurried_seen_ = 0;  ///< the reader's
    alignas(64) std::byte bytes_[bytes_max];
};

}  // namespace stillpoint::nvthreads::processes
