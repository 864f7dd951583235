#pragma once
// The executor in software, after TL2 (Dice, Shalev and Shavit, DISC 2006): reads check a version for each line, writes wait in the write
// set and are stored at the commit, under locks on their lines. What a body has read is at all times as of one moment.
//
// Privatization: see serial_gate.hpp.

#include "engines/spht/executors/version_locks.hpp"
#include "engines/spht/transaction.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

class Tl2 : public Transaction {
public:
    /// `number`: of no other thread of the pool at this time.
    Tl2(TransactionalMemory& memory, logs::CommitOrder::Slot& slot, SerialGate::Place& place, std::uint64_t number) noexcept;
    [[nodiscard]] Result<void> reserve() override;
    [[nodiscard]] int read(const std::uint64_t* word, std::uint64_t& value) noexcept override
    {
        return view_.try_read(word, value) || read_with_care(word, value) ? SP_OK : SP_E_CONFLICT;
    }
    [[nodiscard]] bool write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept override
    {
        locks_.prefetch(reinterpret_cast<std::uintptr_t>(word));
        return Transaction::write(word, value, mask);
    }

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
    [[nodiscard]] Timestamp newest_to_await() noexcept override { return view_.newest_durable_read; }
    void await_others(Timestamp timestamp) noexcept override;

    struct LockedLine {
        VersionLocks::Lock* lock;
        std::uint64_t before;
    };

    [[nodiscard, gnu::noinline]] bool read_with_care(const std::uint64_t* word, std::uint64_t& value) noexcept;
    struct Seen {
        Timestamp newest;
        Timestamp awaited;
    };
    [[nodiscard]] Seen newest_seen() const noexcept;
    void look_at_clock() noexcept;
    [[nodiscard]] bool lines_are_older_than(Timestamp moment) const noexcept;
    [[nodiscard]] bool extend() noexcept;
    [[nodiscard]] bool lock_line(std::uintptr_t address) noexcept;
    [[nodiscard]] bool lock_lines() noexcept;
    [[nodiscard]] bool is_own(std::uint64_t lock_word) const noexcept { return lock_word == own_lock_word_; }

    VersionLocks& locks_;
    const std::uint64_t own_lock_word_;
    bool always_looks_ = false;
    std::uint32_t looks_left_ = 0;  ///< so many transactions look at the clock when they begin
    os::ReservedArray<std::uint64_t*> reads_;
    os::ReservedArray<LockedLine> locked_;
    std::uint64_t locked_count_ = 0;
};

}  // namespace stillpoint::spht
