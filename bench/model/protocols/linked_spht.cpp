// SPHT with links (SPHT, 3.2, Algorithm 2): a transaction also finds its predecessor, for the log replay, and writes a link. That needs a
// pass over the other threads before the transaction counts as persistent, a look into the log of each thread it waits for, and the link:
// in the predecessor's log (forward), or in its own (backward).

#include "protocols.hpp"

namespace bench::model {

template <LinkDirection direction>
Task<> LinkedSpht<direction>::make_durable(Worker& worker, const Transaction& transaction, double timestamp)
{
    world_.publish(worker, timestamp, false, true);
    co_await world_.flush(worker, transaction.log_bytes() + 8);
    co_await world_.scan(worker);
    std::vector<const Worker*> preceding;
    for (const auto& other : world_.workers) {
        if (other->timestamp < timestamp && !other->is_persistent) {
            preceding.push_back(other.get());
        }
    }
    world_.publish(worker, timestamp, true, true);
    bool is_followed = false;
    for (const Worker* const one : preceding) {
        Worker& other = *world_.workers[static_cast<std::size_t>(one->id)];
        while (other.timestamp < timestamp && !other.is_persistent) {
            co_await other.changed.wait();
        }
        is_followed = is_followed || (other.timestamp > timestamp && other.is_update);
        // The slot in the other's log says whether it is the predecessor.
        co_await world_.simulation.delay(world_.machine.flushed_read_ns);
    }
    co_await update_marker(worker, is_followed);
    // The link is written back without a fence.
    const double link_ns = direction == LinkDirection::forward ? world_.machine.flushed_read_ns : world_.machine.log_word_ns;
    co_await world_.simulation.delay(link_ns);
    world_.write_back_unfenced(worker);
}

template class LinkedSpht<LinkDirection::forward>;
template class LinkedSpht<LinkDirection::backward>;

}  // namespace bench::model
