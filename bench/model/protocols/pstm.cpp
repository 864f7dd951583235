// PSTM (SPHT, 4): TinySTM with Mnemosyne's redo log. Every access is instrumented; a written line is locked from its first write until the
// log is flushed and the values are written to their places. There is no order to wait for, no capacity and no global lock.

#include "protocols.hpp"

namespace bench::model {

Task<> Pstm::run(Worker& worker, const Transaction& transaction)
{
    const Machine& machine = world_.machine;
    const double body_ns = machine.stm_begin_ns + transaction.body_ns + transaction.read_words * machine.stm_read_ns +
                           transaction.written_words * (machine.stm_write_ns + machine.log_word_ns) +
                           transaction.missed_lines * machine.persistent_miss_ns;
    const double validate_ns = transaction.read_words * machine.stm_validate_read_ns;
    const double write_back_ns = transaction.written_words * machine.stm_commit_write_ns;
    const double planned_ns = body_ns + validate_ns + machine.flush_first_line_ns + write_back_ns;
    while (true) {
        co_await speculation_.begin(worker, transaction, planned_ns);
        bool is_alive = co_await speculation_.run(worker, body_ns);
        if (is_alive && !transaction.is_read_only()) {
            co_await world_.access(clock_line_, worker);
            is_alive = co_await speculation_.run(worker, validate_ns);
        }
        if (is_alive && !transaction.is_read_only()) {
            co_await world_.flush(worker, transaction.log_bytes());
            is_alive = co_await speculation_.run(worker, write_back_ns);
        }
        if (is_alive) {
            break;
        }
        co_await speculation_.clean_up(worker);
    }
    speculation_.commit(worker);
    finish(worker);
}

Task<> Pstm::make_durable(Worker&, const Transaction&, double) { co_return; }

}  // namespace bench::model
