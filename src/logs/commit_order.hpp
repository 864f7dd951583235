#pragma once
// CommitOrder: when a transaction may be called durable, and which thread says so [SPHT Algorithm 1]. Transactions write their logs in
// any order; one of those that commit at a time moves the marker for all of them, once every earlier one has its log durable.
//
// Names: `stamp` is the paper's ts with isPers as its lowest bit, `updates` its isUpd.
// One difference: `marked`, which the paper keeps by thread, is one word that only rises: a waiting thread reads one line.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "logs/commit_clock.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::logs {

class CommitOrder {
public:
    static constexpr std::uint32_t slots_max = 1024;

    /// A thread's place. It alone writes it.
    struct alignas(128) Slot {
        std::atomic<std::uint64_t> stamp;  ///< timestamp, or a lower bound of it, << 1 | persistent; 0: none yet
        std::atomic<bool> updates;         ///< the transaction of `stamp` has committed, has a log record, and will move the marker
        std::atomic<std::uint64_t> open;   ///< lower bound of the timestamp of a transaction that is not known to be durable; 0: none
        // Of CommitLinks: which words belong together, and the records.
        std::atomic<std::uint64_t> sequence;             ///< odd: they change
        std::atomic<Position> position;                  ///< of the record of `stamp`'s transaction
        std::atomic<Position> previous_position;         ///< of the newest one before it that has committed; 0: none
        std::atomic<Timestamp> previous_timestamp;
    };

    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve() { return slots_.reserve(slots_max, "the threads that commit"); }
    /// Slots below `count` are in use. Rises only.
    void set_slots(std::uint32_t count) noexcept { slot_count_.store(count, std::memory_order_release); }
    [[nodiscard]] std::uint32_t slot_count() const noexcept { return slot_count_.load(std::memory_order_acquire); }
    [[nodiscard]] Slot& slot(std::uint32_t number) noexcept { return slots_[number]; }

    /// Lines 3 to 8: a transaction begins whose timestamp will not be below `now`. A full fence: from here on others wait for it.
    static void announce(Slot& slot, Timestamp now) noexcept
    {
        slot.updates.store(false, std::memory_order_relaxed);
        slot.open.store(now, std::memory_order_relaxed);
        slot.stamp.exchange(now << 1, std::memory_order_seq_cst);
    }
    /// As announce(), for a transaction whose timestamp a counter gives next. A thread that finds the counter there or beyond finds this
    /// too: the counter's increment releases it. `least`: the timestamp will be later; not 0.
    static void announce_to_counter(Slot& slot, Timestamp least) noexcept
    {
        slot.updates.store(false, std::memory_order_relaxed);
        slot.open.store(least, std::memory_order_relaxed);
        slot.stamp.store(least << 1, std::memory_order_relaxed);
    }
    /// Line 16: it has its timestamp, and others may see what it wrote.
    static void settle(Slot& slot, Timestamp timestamp, bool moves_marker = true) noexcept
    {
        slot.updates.store(moves_marker, std::memory_order_relaxed);
        slot.stamp.store(timestamp << 1, std::memory_order_release);
    }
    /// As settle(), for a protocol whose transactions say by `updates` that their record is in the log.
    static void settle_without_log(Slot& slot, Timestamp timestamp) noexcept
    {
        slot.stamp.store(timestamp << 1, std::memory_order_release);
    }
    /// Lines 20 to 22: its log is durable.
    static void persisted(Slot& slot, Timestamp timestamp) noexcept { slot.stamp.store(timestamp << 1 | 1, std::memory_order_release); }
    /// The transaction is durable.
    static void close(Slot& slot) noexcept { slot.open.store(0, std::memory_order_release); }
    /// The transaction wrote nothing, or was rolled back.
    static void withdraw(Slot& slot) noexcept
    {
        close(slot);
        slot.stamp.store(slot.stamp.load(std::memory_order_relaxed) | 1, std::memory_order_release);
    }

    /// Lines 26 to 31: returns when no transaction up to `timestamp` but that of `own` (nullptr: of no thread) is without its log. True: a
    /// later one that updates was seen: it will move the marker.
    [[nodiscard]] bool await_preceding(const Slot* own, Timestamp timestamp) noexcept;
    /// Where each transaction has a commit marker of its own, and is `persisted` with it: returns when all earlier ones are. Of those with
    /// the same timestamp the lower slots are the earlier ones, and of the others the records are in the log.
    void await_markers_before(std::uint32_t number, Timestamp timestamp) noexcept;

    /// The newest transaction up to `timestamp` that has a log record, among those that may not be durable yet; 0: there is none. Returns
    /// when each of them has its log persistent: one that has only been announced may get a later timestamp, or no record.
    [[nodiscard]] Timestamp newest_up_to(Timestamp timestamp) const noexcept;

    /// Everything up to it is durable, as far as this process knows.
    [[nodiscard]] Timestamp durable() const noexcept { return durable_.load(std::memory_order_acquire); }
    void raise_durable(Timestamp timestamp) noexcept;
    /// Raises durable() to just before the oldest transaction that is open. `now`: the clock's moment, before the call. Slot `stores` has
    /// transactions that are durable when the marker has passed them.
    void find_durable(Timestamp now, const Slot& stores) noexcept;
    /// Where the marker is, as far as this process knows.
    [[nodiscard]] Timestamp marked() const noexcept { return marked_.load(std::memory_order_acquire); }
    void raise_marked(Timestamp timestamp) noexcept;
    void set_durable(Timestamp timestamp) noexcept
    {
        durable_.store(timestamp, std::memory_order_release);
        marked_.store(timestamp, std::memory_order_release);
    }

private:
    os::ReservedArray<Slot> slots_;
    std::atomic<std::uint32_t> slot_count_{0};
    alignas(128) std::atomic<Timestamp> durable_{0};
    alignas(128) std::atomic<Timestamp> marked_{0};
};

/// Waits a little, in turn n of a wait for another thread's few instructions: first the CPU's pause, then another thread's turn.
void wait_turn(unsigned& turns) noexcept;

}  // namespace stillpoint::logs
