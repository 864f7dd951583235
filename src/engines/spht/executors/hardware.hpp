#pragma once
// The executor in hardware, as published [SPHT §3.1, Algorithm 1]: the body runs inside a hardware transaction, its stores go to the
// working snapshot at once, and each is logged in the write set too. The timestamp is read inside of the transaction, right before
// its end. After 10 attempts a transaction runs alone; the gate's word is read by every hardware transaction, so the store that
// shuts the gate lets all of them abort. A transaction that runs alone has its writes in the write set until its commit, since it can be
// rolled back by its body.
//
// Before the body begins: the wait at the gate, room in the log, since nothing can be waited for after the end, and the announcement.
// While the body runs the thread holds its log's lock, so it calls nothing that waits for other threads: step_aside().

#include <utility>

#include "engines/spht/executors/hardware_tm.hpp"
#include "engines/spht/executors/simulated_tm.hpp"
#include "engines/spht/transaction.hpp"

namespace stillpoint::spht {

template <HardwareTm Tm>
class Hardware final : public Transaction {
public:
    template <class... TmParts>
    Hardware(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number,
             TmParts&&... tm_parts) noexcept
        : Transaction(memory, slot, place, number), tm_(std::forward<TmParts>(tm_parts)...)
    {
    }
    [[nodiscard]] Result<void> reserve() override;
    [[nodiscard]] int read(const std::uint64_t* word, std::uint64_t& value) noexcept override;
    [[nodiscard]] bool write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept override;
    void step_aside() noexcept override;

private:
    void enter() noexcept override;
    void heap_call_begins() noexcept override;
    void heap_call_ends() noexcept override;
    [[nodiscard]] bool reads_hold() noexcept override { return wishes_.alone || tm_.test(); }
    [[nodiscard]] Outcome finish() noexcept override;
    void release() noexcept override;
    [[nodiscard]] Timestamp choose_timestamp(bool is_durable) const noexcept override;
    [[nodiscard]] Timestamp newest_to_await() noexcept override;
    // For a transaction that runs alone.
    [[nodiscard]] Timestamp acquire(bool is_durable) noexcept override { return choose_timestamp(is_durable); }
    void publish(Timestamp /*timestamp*/) noexcept override { write_back(); }
    /// A transaction that began before this one's commit, and had read what it has made private, has aborted.
    void await_others(Timestamp /*timestamp*/) noexcept override {}

    void enter_alone() noexcept;
    [[nodiscard]] bool prepare() noexcept;
    void unprepare() noexcept;
    [[nodiscard]] bool attempt_failed(const HtmStatus& status) noexcept;
    [[nodiscard]] bool fits_log() const noexcept;

    Tm tm_;
    bool is_prepared_ = false;       ///< room in the log is made, and the transaction is announced
    bool must_be_alone_ = false;     ///< the next attempt
};

extern template class Hardware<RtmTm>;
extern template class Hardware<SimulatedTm>;

}  // namespace stillpoint::spht
