#pragma once
// The executor in software, after NOrec (Dalessandro, Spear and Scott, PPoPP 2010): one sequence lock for all, and reads that are checked
// by their values. It has no versions of memory, and commits follow one another.

#include <algorithm>
#include <atomic>

#include "engines/spht/transaction.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

/// The state that the transactions of a pool share.
struct alignas(128) NorecClock {
    std::atomic<std::uint64_t> sequence{0};  ///< odd: a transaction stores its words
    // As of the sequence.
    std::atomic<Timestamp> newest{0};
    std::atomic<Timestamp> newest_durable{0};  ///< of a transaction that has written durable memory
};

class Norec final : public Transaction {
public:
    Norec(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number,
          NorecClock& clock) noexcept
        : Transaction(memory, slot, place, number), clock_(clock)
    {
    }
    [[nodiscard]] Result<void> reserve() override;
    [[nodiscard]] int read(const std::uint64_t* word, std::uint64_t& value) noexcept override;

private:
    struct ReadWord {
        const std::uint64_t* word;
        std::uint64_t value;
    };

    [[nodiscard, gnu::noinline]] bool read_with_care(const std::uint64_t* word, std::uint64_t& value) noexcept;
    void enter() noexcept override;
    [[nodiscard]] bool reads_hold() noexcept override;
    [[nodiscard]] Timestamp acquire(bool is_durable) noexcept override;
    void publish(Timestamp timestamp) noexcept override;
    void release() noexcept override;
    [[nodiscard]] Timestamp choose_timestamp(bool is_durable) const noexcept override;
    [[nodiscard]] Timestamp newest_to_await() noexcept override { return newest_durable_; }
    /// Stores are over when the sequence is even, and each read of another transaction is checked after this one's commit.
    void await_others(Timestamp /*timestamp*/) noexcept override {}

    NorecClock& clock_;
    std::uint64_t snapshot_ = 0;  ///< the sequence as of which all was read
    Timestamp newest_durable_ = 0;
    bool holds_sequence_ = false;
    os::ReservedArray<ReadWord> reads_;
    std::uint64_t read_count_ = 0;
};

}  // namespace stillpoint::spht
