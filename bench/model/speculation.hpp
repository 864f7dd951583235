#pragma once
// Speculative execution of transactions: hardware transactions with their conflicts, capacity and single global lock; or the same by an
// STM, on a machine without them.
//
// Conflicts: accesses of a transaction are spread evenly over its time and uniformly over the lines of each area of the workload. When a
// transaction begins, a draw decides for each running one whether, when, and to whose harm the two will access one line. The thread that
// accesses the line later wins, as in TSX; with an STM that locks at the first write, a thread that meets a lock aborts itself.

#include <cstdint>
#include <vector>

#include "world.hpp"

namespace bench::model {

enum class ConflictRule : std::uint8_t { later_access_wins, locked_line_wins };

class Speculation {
public:
    Speculation(World& world, ConflictRule rule);

    /// Begins an attempt that will take `planned_ns` until its commit. Waits while the single global lock is held.
    [[nodiscard]] Task<> begin(Worker& worker, const Transaction& transaction, double planned_ns);
    /// Computes for `duration_ns` inside the attempt; false: it has aborted.
    [[nodiscard]] Task<bool> run(Worker& worker, double duration_ns);
    /// Ends the attempt successfully, now. The time since its beginning counts as committed.
    void commit(Worker& worker);
    /// Ends the attempt of another thread; its run() returns false at once.
    void abort(Worker& worker, Abort cause);
    /// The attempt has ended by abort: what that costs until the thread can begin again.
    [[nodiscard]] Task<> clean_up(Worker& worker);

    [[nodiscard]] bool is_running(const Worker& worker) const noexcept { return state(worker).is_running; }

    /// Takes the single global lock: every attempt aborts. Then release().
    [[nodiscard]] Task<> acquire_lock(Worker& worker);
    void release_lock();

    /// Times of an attempt for the body of a transaction and for its commit: with the STM's instrumentation, where a machine has no
    /// hardware transactions.
    [[nodiscard]] double body_ns(const Transaction& transaction) const noexcept;
    [[nodiscard]] double commit_ns(const Transaction& transaction) const noexcept;
    /// Expected conflicts of a whole transaction with one of the workload, on average.
    [[nodiscard]] double conflicts_with_any(const Transaction& transaction) const;

private:
    /// An access of `killer`, at a time, that aborts; void where its attempt has ended before.
    struct Doom {
        double at_ns;
        const Worker* killer;
        std::uint64_t killer_attempt;
    };
    struct State {
        bool is_running = false;
        bool is_aborted = false;
        Abort cause = Abort::conflict;
        std::uint64_t attempt = 0;
        double began_ns = 0;
        double planned_end_ns = 0;
        double slowdown = 1;
        double capacity_end_ns = 0;
        std::size_t class_number = 0;
        std::vector<Doom> dooms;
    };

    [[nodiscard]] State& state(const Worker& worker) noexcept { return states_[static_cast<std::size_t>(worker.id)]; }
    [[nodiscard]] const State& state(const Worker& worker) const noexcept { return states_[static_cast<std::size_t>(worker.id)]; }
    [[nodiscard]] bool is_valid(const Doom& doom) const noexcept;
    void draw_overflow(Worker& worker);
    void draw_conflicts(Worker& worker);
    void draw_conflict(Worker& later, Worker& earlier);
    void end(Worker& worker, Activity activity);

    World& world_;
    std::vector<State> states_;
    /// Expected accesses of a whole transaction to units that another whole one has written, or only read.
    struct Hits {
        double on_written;
        double on_read;
    };
    [[nodiscard]] const Hits& hits(std::size_t accessing, std::size_t holding) const noexcept
    {
        return hits_[accessing * world_.workload.classes.size() + holding];
    }

    std::vector<Hits> hits_;  ///< by the classes of the accessing and the holding transaction
    ConflictRule rule_;
    bool is_locked_ = false;
    Signal unlocked_;
};

}  // namespace bench::model
