#pragma once
// The executor in software, after TL2 (Dice, Shalev and Shavit, DISC 2006): reads check a version for each line, writes wait in the write
// set and are stored at the commit, under locks on their lines. What a body has read is at all times as of one moment.
//
// Privatization: see serial_gate.hpp.

#include <algorithm>

#include "engines/spht/executors/version_locks.hpp"
#include "engines/spht/transaction.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

class Tl2 : public Transaction {
public:
    /// `number`: of no other thread of the pool at this time.
    Tl2(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number) noexcept
        : Transaction(memory, slot, place), own_lock_word_(number << 1 | 1)
    {
    }
    [[nodiscard]] Result<void> reserve() override;
    [[nodiscard]] int read(const std::uint64_t* word, std::uint64_t& value) noexcept override;

protected:
    /// Locks the line before the commit: from here on no other transaction reads or writes it. False: conflict.
    [[nodiscard]] bool own_line(std::uintptr_t address) noexcept;

private:
    void enter() noexcept override;
    [[nodiscard]] bool reads_hold() noexcept override;
    [[nodiscard]] Timestamp acquire(bool is_durable) noexcept override;
    void publish(Timestamp timestamp) noexcept override;
    void release() noexcept override;
    [[nodiscard]] Timestamp choose_timestamp(bool is_durable) const noexcept override;
    [[nodiscard]] Timestamp newest_to_await() noexcept override { return newest_durable_read_; }
    void await_others(Timestamp timestamp) noexcept override;

    struct LockedLine {
        VersionLocks::Lock* lock;
        std::uint64_t before;
    };

    void note_read(Timestamp version) noexcept
    {
        newest_durable_read_ = std::max(newest_durable_read_, VersionLocks::is_of_durable(version) ? version : 0);
    }
    [[nodiscard, gnu::noinline]] bool read_with_care(const std::uint64_t* word, std::uint64_t& value) noexcept;
    [[nodiscard]] bool extend() noexcept;
    [[nodiscard]] bool lock_line(std::uintptr_t address) noexcept;
    [[nodiscard]] bool lock_lines() noexcept;
    [[nodiscard]] bool is_own(std::uint64_t lock_word) const noexcept { return lock_word == own_lock_word_; }

    const std::uint64_t own_lock_word_;
    Timestamp read_version_ = 0;         ///< lines with older versions may be read
    Timestamp newest_durable_read_ = 0;  ///< the newest of them of a transaction that has written durable memory
    os::ReservedArray<VersionLocks::Lock*> reads_;  ///< not where the transaction only reads
    std::uint64_t read_count_ = 0;
    os::ReservedArray<LockedLine> locked_;
    std::uint64_t locked_count_ = 0;
};

}  // namespace stillpoint::spht
