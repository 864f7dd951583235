// DudeTM [SPHT §2]. A shared counter, which each commit increments, gives the timestamps. The redo logs of threads are volatile; one thread
// in the background copies them to one log in the pool, in the order of their numbers, and makes as many durable at a time as there are.
// With immediate durability a commit waits for that.
//
// A number that no record will have (a transaction that failed after it, or has written volatile memory only) is handed over too.

#include <algorithm>
#include <array>
#include <atomic>

#include "core/canary.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "logs/durable_marker.hpp"
#include "os/futex.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::spht {

namespace {

class DudeTm final : public CommitProtocol {
public:
    explicit DudeTm(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}
    ~DudeTm() override { stop(); }

    Result<void> start() override
    {
        passed_.store(memory_.clock().now(), std::memory_order_relaxed);
        return thread_.start("sp-persist", [](void* self) { static_cast<DudeTm*>(self)->persist(); }, this);
    }

    void stop() noexcept override
    {
        stopping_.store(true, std::memory_order_release);
        wake();
        thread_.join();
    }

    void detach_after_fork() noexcept override { thread_.forget(); }

    /// Here only the size is checked: the thread in the background makes room in its log.
    Result<void> make_room(Committing& /*commit*/, std::uint64_t words) noexcept override { return memory_.check_size(words); }
    void cancel(Committing& /*commit*/) noexcept override {}
    void announce(Committing& /*commit*/) noexcept override {}
    bool settle(Committing& /*commit*/, Timestamp /*timestamp*/) noexcept override { return true; }
    void log(Committing& commit, Timestamp timestamp) noexcept override { hand_over(timestamp, &commit); }
    void skip(Timestamp timestamp) noexcept override { hand_over(timestamp, nullptr); }
    bool make_durable(Committing& /*commit*/, Timestamp timestamp) noexcept override { return await_durable(timestamp); }

    /// Waits: the record is the library's only one.
    Timestamp commit_stores(Committing& commit) noexcept override
    {
        const Timestamp timestamp = memory_.clock().next();
        hand_over(timestamp, &commit);
        static_cast<void>(await_durable(timestamp));
        return timestamp;
    }

private:
    /// A number's place, in turn. A thread has one that it waits for, and may have passed over others.
    struct alignas(cache_line_bytes) Place {
        std::atomic<Timestamp> timestamp{0};
        Committing* commit = nullptr;
    };
    static constexpr std::size_t places_max = 2 * logs::CommitOrder::slots_max;

    Place& place_of(Timestamp timestamp) noexcept { return places_[timestamp / logs::CommitClock::counter_step % places_max]; }
    static Timestamp number_of(Timestamp timestamp) noexcept
    {
        return timestamp / logs::CommitClock::counter_step * logs::CommitClock::counter_step;
    }

    void hand_over(Timestamp timestamp, Committing* commit) noexcept
    {
        const Timestamp number = number_of(timestamp);
        for (unsigned turns = 0; number > passed_.load(std::memory_order_acquire) + (places_max - 1) * logs::CommitClock::counter_step;) {
            if (memory_.has_failed()) {
                return;
            }
            logs::wait_turn(turns);
        }
        Place& place = place_of(number);
        place.commit = commit;
        place.timestamp.store(number, std::memory_order_seq_cst);
        if (sleeps_.load(std::memory_order_seq_cst)) {
            wake();
        }
    }

    void wake() noexcept
    {
        wakes_.fetch_add(1, std::memory_order_acq_rel);
        os::futex_wake(wakes_, 1);
    }

    /// Returns when the number after `last` was handed over. False: the end.
    [[nodiscard]] bool await_next(Timestamp last) noexcept
    {
        constexpr unsigned turns_max = 2000;
        const Timestamp next = last + logs::CommitClock::counter_step;
        const auto is_there = [&] { return place_of(next).timestamp.load(std::memory_order_seq_cst) == next; };
        for (unsigned turns = 0; !is_there();) {
            if (stopping_.load(std::memory_order_acquire) || memory_.has_failed()) {
                return false;
            }
            if (is_removed(Canary::dude_tm_order) && memory_.clock().now() >= next) {
                return true;
            }
            if (turns < turns_max) {
                logs::wait_turn(turns);
                continue;
            }
            const std::uint32_t seen = wakes_.load(std::memory_order_acquire);
            sleeps_.store(true, std::memory_order_seq_cst);
            if (!is_there() && !stopping_.load(std::memory_order_seq_cst) && !is_removed(Canary::dude_tm_order)) {
                os::futex_wait(wakes_, seen);
            }
            sleeps_.store(false, std::memory_order_relaxed);
        }
        return true;
    }

    /// The number up to which all was durable goes with each record: recovery learns how many must be there.
    [[nodiscard]] bool copy(Timestamp number, Committing& commit) noexcept
    {
        logs::RedoLog& log = memory_.log(0);
        if (!memory_.make_room(log, commit.record.words())) {
            return false;
        }
        log.append(commit.record, number, logs::encode_marker(memory_.order().durable()));
        return true;
    }

    void persist() noexcept
    {
        Timestamp last = passed_.load(std::memory_order_relaxed);
        while (await_next(last)) {
            Timestamp next = last + logs::CommitClock::counter_step;
            // A batch has an end although numbers keep coming: its threads wait.
            const Timestamp batch_end = next + places_max / 2 * logs::CommitClock::counter_step;
            do {
                Place& place = place_of(next);
                if (place.timestamp.load(std::memory_order_acquire) == next && place.commit != nullptr && !copy(next, *place.commit)) {
                    return;
                }
                last = next;
                next += logs::CommitClock::counter_step;
            } while (next != batch_end && place_of(next).timestamp.load(std::memory_order_acquire) == next);
            memory_.medium().fence();
            if (memory_.medium().has_lost_pages()) {
                return;
            }
            memory_.order().raise_durable(last);
            passed_.store(last, std::memory_order_release);
        }
    }

    std::array<Place, places_max> places_{};
    std::atomic<Timestamp> passed_{0};  ///< numbers up to it are done with
    os::ServiceThread thread_;
    std::atomic<std::uint32_t> wakes_{0};
    std::atomic<bool> sleeps_{false};
    std::atomic<bool> stopping_{false};
};

}  // namespace

std::unique_ptr<CommitProtocol> make_dude_tm(TransactionalMemory& memory) { return std::make_unique<DudeTm>(memory); }

}  // namespace stillpoint::spht
