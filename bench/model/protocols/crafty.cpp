// Crafty (SPHT, 2): transactions work in persistent memory, without a shadow copy. A first hardware transaction logs the old values and
// undoes its writes; the undo log is flushed; a second one does the writes, if no other transaction has committed since, and moves a
// global clock. Otherwise the whole transaction runs again, and must write the same. The marker follows those of all earlier ones.

#include <cmath>

#include "protocols.hpp"

namespace bench::model {

/// Old and new value are logged, and each write is undone.
double Crafty::instrumentation_ns(const Transaction& transaction) const
{
    const Machine& machine = world_.machine;
    return transaction.written_words * 3 * machine.log_word_ns + transaction.missed_lines * machine.persistent_miss_ns;
}

Task<bool> Crafty::log_phase(Worker& worker, const Transaction& transaction)
{
    const double planned_ns = speculation_.body_ns(transaction) + instrumentation_ns(transaction) + speculation_.commit_ns(transaction);
    co_await speculation_.begin(worker, transaction, planned_ns);
    if (!co_await speculation_.run(worker, planned_ns)) {
        co_await speculation_.clean_up(worker);
        co_return false;
    }
    speculation_.commit(worker);
    const double since_ns = world_.simulation.now_ns();
    if (!transaction.is_read_only()) {
        co_await world_.flush(worker, transaction.log_bytes());
    }
    world_.account(worker, Activity::commit_phase, since_ns);
    co_return true;
}

Task<bool> Crafty::redo_phase(Worker& worker, const Transaction& transaction, std::uint64_t clock_seen)
{
    const Machine& machine = world_.machine;
    const double writes_ns = machine.htm_begin_ns + transaction.written_words * machine.log_word_ns;
    const double planned_ns = writes_ns + machine.htm_commit_ns;
    co_await speculation_.begin(worker, transaction, planned_ns);
    bool is_alive = co_await clock_.read(worker);
    if (is_alive && clock_.value() != clock_seen) {
        clock_.leave(worker);
        speculation_.commit(worker);  // it has read the clock and nothing else
        co_return false;
    }
    if (is_alive) {
        is_alive = co_await speculation_.run(worker, writes_ns);
    }
    if (is_alive) {
        is_alive = co_await clock_.increment_and_commit(worker, machine.htm_commit_ns);
    }
    clock_.leave(worker);
    if (is_alive) {
        speculation_.commit(worker);
    } else {
        co_await speculation_.clean_up(worker);
    }
    co_return is_alive;
}

Task<bool> Crafty::validate_phase(Worker& worker, const Transaction& transaction, std::uint64_t clock_seen)
{
    const double body_ns = speculation_.body_ns(transaction) + instrumentation_ns(transaction);
    const double commit_ns = speculation_.commit_ns(transaction);
    const double planned_ns = body_ns + commit_ns;
    co_await speculation_.begin(worker, transaction, planned_ns);
    bool is_alive = co_await speculation_.run(worker, body_ns);
    // The second run writes the same, unless a transaction that has committed in between had a conflict with it.
    const double others = static_cast<double>(clock_.value() - clock_seen);
    if (is_alive && worker.uniform() > std::exp(-others * speculation_.conflicts_with_any(transaction))) {
        speculation_.abort(worker, Abort::validation);
        is_alive = false;
    }
    if (is_alive) {
        is_alive = co_await clock_.read(worker);
    }
    if (is_alive) {
        is_alive = co_await clock_.increment_and_commit(worker, commit_ns);
    }
    if (is_alive) {
        speculation_.commit(worker);
    } else {
        co_await speculation_.clean_up(worker);
    }
    co_return is_alive;
}

Task<bool> Crafty::run_phases(Worker& worker, const Transaction& transaction)
{
    for (int left = static_cast<int>(world_.machine.htm_attempts); left > 0; --left) {
        begin(worker);
        const std::uint64_t clock_seen = clock_.value();
        if (!co_await log_phase(worker, transaction)) {
            continue;
        }
        bool is_done = transaction.is_read_only();
        if (!is_done) {
            is_done = co_await redo_phase(worker, transaction, clock_seen);
        }
        if (!is_done) {
            is_done = co_await validate_phase(worker, transaction, clock_seen);
        }
        if (is_done) {
            co_return true;
        }
    }
    co_return false;
}

Task<> Crafty::run(Worker& worker, const Transaction& transaction)
{
    double timestamp = 0;
    if (co_await run_phases(worker, transaction)) {
        timestamp = world_.timestamp(worker);
    } else {
        co_await run_locked(worker, transaction, timestamp);
        clock_.increment();
    }
    const double since_ns = world_.simulation.now_ns();
    if (transaction.is_read_only()) {
        end_read_only(worker, timestamp);
    } else {
        co_await make_durable(worker, transaction, timestamp);
    }
    world_.account(worker, Activity::commit_phase, since_ns);
    finish(worker);
}

Task<> Crafty::make_durable(Worker& worker, const Transaction& transaction, double timestamp)
{
    world_.publish(worker, timestamp, false, true);
    co_await wait_for_preceding(worker);
    // The written lines and the marker, with one fence.
    co_await world_.flush(worker, 64 * (transaction.written_lines + 1));
    world_.publish(worker, timestamp, true, true);
}

}  // namespace bench::model
