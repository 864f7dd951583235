// DudeTM (SPHT, 2): a logical clock, incremented inside each hardware transaction, orders transactions: whatever increments it aborts the
// others that just do. Logs are volatile; one thread in the background copies them in the clock's order to a log in persistent memory, as
// many at a time as there are, and threads wait for it.

#include "protocols.hpp"

namespace bench::model {

void DudeTm::begin(Worker&) {}

/// The persist thread has read the lines of the last log: they come back at the first write.
double DudeTm::instrumentation_ns(const Transaction& transaction) const
{
    return Protocol::instrumentation_ns(transaction) + (transaction.is_read_only() ? 0 : world_.machine.line_transfer_ns);
}

void DudeTm::end_read_only(Worker&, double) {}

Task<bool> DudeTm::commit_speculation(Worker& worker, const Transaction& transaction)
{
    const double commit_ns = speculation_.commit_ns(transaction);
    if (transaction.is_read_only()) {
        co_return co_await speculation_.run(worker, commit_ns);
    }
    co_return co_await clock_.increment_and_commit(worker, commit_ns);
}

Task<> DudeTm::make_durable(Worker& worker, const Transaction& transaction, double)
{
    if (last_number_ == clock_.value()) {
        clock_.increment();  // it ran under the lock
    }
    const std::uint64_t number = last_number_ = clock_.value();
    waiting_.emplace(number, VolatileLog{&worker, transaction.log_bytes()});
    arrived_.notify_all(world_.simulation, world_.machine.line_transfer_ns);
    co_await durable_number_.reached(static_cast<double>(number));
}

Task<> DudeTm::background()
{
    Worker persister;
    std::uint64_t durable = 0;
    while (true) {
        if (waiting_.empty() || waiting_.begin()->first != durable + 1) {
            co_await arrived_.wait();
            continue;
        }
        double bytes = 0;
        // The look for one more, which ends the batch, is at a line that a thread of the program writes.
        double copy_ns = world_.machine.line_transfer_ns;
        while (!waiting_.empty() && waiting_.begin()->first == durable + 1) {
            const VolatileLog& log = waiting_.begin()->second;
            copy_ns += world_.transfer_ns(*log.worker, persister) + log.bytes / 64 * world_.machine.line_scan_ns +
                       log.bytes / 16 * world_.machine.log_word_ns;
            bytes += log.bytes;
            waiting_.erase(waiting_.begin());
            ++durable;
        }
        co_await world_.simulation.delay(copy_ns);
        co_await world_.flush(persister, bytes);
        durable_number_.raise(world_.simulation, static_cast<double>(durable), world_.machine.line_transfer_ns);
    }
}

}  // namespace bench::model
