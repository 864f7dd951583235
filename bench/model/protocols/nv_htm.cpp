// NV-HTM (SPHT, 2 and Figure 1a): each transaction appends a marker to its own log, and only after all transactions with smaller
// timestamps have theirs. A transaction counts as persistent when its marker is: markers follow each other, one flush after the other.

#include "protocols.hpp"

namespace bench::model {

void NvHtm::begin(Worker& worker) { world_.publish(worker, world_.timestamp(worker), false, false); }

void NvHtm::end_read_only(Worker& worker, double timestamp) { world_.publish(worker, timestamp, true, false); }

Task<> NvHtm::make_durable(Worker& worker, const Transaction& transaction, double timestamp)
{
    world_.publish(worker, timestamp, false, true);
    co_await world_.simulation.delay(world_.flush_ns(worker, transaction.log_bytes()));
    co_await wait_for_preceding(worker);
    co_await world_.simulation.delay(world_.flush_again_ns(worker));
    world_.publish(worker, timestamp, true, true);
}

}  // namespace bench::model
