// cc-HTM (SPHT, 2 and 4): logs are flushed by their threads, and one thread in the background applies them to persistent memory, in the
// order of their timestamps. With immediate durability a transaction returns after it has been applied.

#include "protocols.hpp"

namespace bench::model {

Task<> CcHtm::make_durable(Worker& worker, const Transaction& transaction, double timestamp)
{
    world_.publish(worker, timestamp, false, true);
    co_await world_.flush(worker, transaction.log_bytes());
    world_.publish(worker, timestamp, true, true);
    const auto [queued, is_new] = queue_.emplace(timestamp, Queued{&worker, transaction, false});
    co_await wait_for_preceding(worker);
    queued->second.is_ready = is_new;
    changed_.notify_all(world_.simulation, world_.machine.line_transfer_ns);
    co_await applied_.reached(timestamp);
}

Task<> CcHtm::background()
{
    const Machine& machine = world_.machine;
    Worker applier;
    while (true) {
        if (queue_.empty() || !queue_.begin()->second.is_ready) {
            co_await changed_.wait();
            continue;
        }
        const auto [timestamp, next] = *queue_.begin();
        queue_.erase(queue_.begin());
        const Transaction& transaction = next.transaction;
        const double read_ns = world_.transfer_ns(*next.worker, applier) + machine.flushed_read_ns +
                               transaction.log_bytes() / 64 * machine.line_scan_ns + transaction.written_words * machine.log_word_ns;
        const double write_ns = transaction.written_lines * machine.scattered_write_ns;
        co_await world_.simulation.delay(read_ns + write_ns);
        co_await world_.flush(applier, 64 * transaction.written_lines);
        applied_.raise(world_.simulation, timestamp, machine.line_transfer_ns);
    }
}

}  // namespace bench::model
