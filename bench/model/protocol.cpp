#include "protocol.hpp"

namespace bench::model {

Task<> Protocol::background() { co_return; }

double Protocol::instrumentation_ns(const Transaction& transaction) const { return transaction.written_words * world_.machine.log_word_ns; }

void Protocol::begin(Worker& worker) { world_.publish(worker, world_.timestamp(worker), false, false); }

void Protocol::end_read_only(Worker& worker, double timestamp) { world_.publish(worker, timestamp, true, false); }

Task<bool> Protocol::commit_speculation(Worker& worker, const Transaction& transaction)
{
    const double commit_ns = speculation_.commit_ns(transaction);
    co_return co_await speculation_.run(worker, commit_ns);
}

Task<> Protocol::run(Worker& worker, const Transaction& transaction)
{
    double timestamp = 0;
    if (!co_await speculate(worker, transaction, timestamp)) {
        co_await run_locked(worker, transaction, timestamp);
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

void Protocol::finish(Worker& worker)
{
    ++worker.counters.committed;
    ++world_.committed;
}

Task<bool> Protocol::speculate(Worker& worker, const Transaction& transaction, double& timestamp)
{
    const double body_ns = world_.machine.timestamp_ns + speculation_.body_ns(transaction) + instrumentation_ns(transaction);
    const double planned_ns = body_ns + speculation_.commit_ns(transaction);
    for (int left = static_cast<int>(world_.machine.htm_attempts); left > 0; --left) {
        begin(worker);
        co_await speculation_.begin(worker, transaction, planned_ns);
        bool is_alive = co_await speculation_.run(worker, body_ns);
        if (is_alive) {
            is_alive = co_await commit_speculation(worker, transaction);
        }
        if (is_alive) {
            speculation_.commit(worker);
            timestamp = world_.timestamp(worker);
            co_return true;
        }
        co_await speculation_.clean_up(worker);
    }
    co_return false;
}

Task<> Protocol::run_locked(Worker& worker, const Transaction& transaction, double& timestamp)
{
    begin(worker);
    co_await speculation_.acquire_lock(worker);
    const double body_ns = transaction.body_ns + instrumentation_ns(transaction);
    co_await world_.compute(worker, body_ns, Activity::fallback);
    timestamp = world_.timestamp(worker);
    speculation_.release_lock();
}

Task<bool> Protocol::wait_for_preceding(Worker& worker)
{
    co_await world_.scan(worker);
    bool is_followed = false;
    for (const auto& other : world_.workers) {
        while (other->timestamp < worker.timestamp && !other->is_persistent) {
            co_await other->changed.wait();
        }
        is_followed = is_followed || (other->timestamp > worker.timestamp && other->is_update);
    }
    co_return is_followed;
}

}  // namespace bench::model
