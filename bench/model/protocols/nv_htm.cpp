// NV-HTM (SPHT, 2 and Figure 1a): each transaction appends a marker to its own log, and only after all transactions with smaller
// timestamps have theirs. A transaction counts as persistent when its marker is: markers follow each other, one flush after the other.

#include "protocols.hpp"

namespace bench::model {

Task<> NvHtm::make_durable(Worker& worker, const Transaction& transaction, double timestamp)
{
    world_.publish(worker, timestamp, false, true);
    co_await world_.flush(worker, transaction.log_bytes());
    co_await wait_for_preceding(worker);
    co_await world_.flush_again(worker);
    world_.publish(worker, timestamp, true, true);
}

}  // namespace bench::model
