// SPHT without links (SPHT, 3.1, Algorithm 1): logs are flushed without order, and one marker in persistent memory makes all
// transactions up to a timestamp durable. The thread with the largest timestamp moves it for all.

#include "protocols.hpp"

namespace bench::model {

Task<> Spht::make_durable(Worker& worker, const Transaction& transaction, double timestamp)
{
    world_.publish(worker, timestamp, false, true);
    co_await world_.flush(worker, transaction.log_bytes());
    world_.publish(worker, timestamp, true, true);
    const bool is_followed = co_await wait_for_preceding(worker);
    co_await update_marker(worker, is_followed);
}

Task<> Spht::update_marker(Worker& worker, bool is_followed)
{
    if (marker_ < worker.timestamp && !is_followed) {
        co_await world_.access(marker_line_, worker);
        if (marker_ < worker.timestamp) {
            marker_ = worker.timestamp;
            co_await world_.flush_again(worker);
            durable_marker_.raise(world_.simulation, worker.timestamp, world_.machine.line_transfer_ns);
            co_return;
        }
    }
    co_await durable_marker_.reached(worker.timestamp);
}

}  // namespace bench::model
