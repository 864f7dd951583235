#pragma once
// The activation records of one log [Breeze, thesis §3.2.7, Algorithm 2]: which pointers its transactions have changed, in a ring of the
// pool, and which of them wait for the reference counts.

#include <cstdint>
#include <mutex>
#include <span>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/pool_memory.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "os/futex.hpp"

namespace stillpoint::breeze {

/// A record of a committed transaction, in the ring until it is applied.
struct CommittedRecord {
    std::uint64_t transaction;
    std::uint64_t place;
};

class ActivationLog {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key, unsigned number);
    /// Pairs of the largest record.
    [[nodiscard]] std::uint64_t changes_max() const noexcept { return (capacity_ - sizeof(ActivationRecord)) / sizeof(PointerChange); }

    /// Writes a record, and begins to write it back. The thread that has the log. False: older records must be applied first.
    [[nodiscard]] bool append(std::uint64_t transaction, std::span<const PointerChange> changes) noexcept;
    /// The transaction of the record that was appended has committed.
    void committed(std::uint64_t transaction) noexcept;

    /// Most records that can wait.
    [[nodiscard]] std::uint64_t records_max() const noexcept { return capacity_ / sizeof(ActivationRecord); }
    /// Adds the records that wait to `records`, in their order. Any thread.
    void take(ReservedList<CommittedRecord>& records) noexcept;
    [[nodiscard]] std::span<const PointerChange> changes(const CommittedRecord& record) const noexcept;
    /// Where the next record is looked for once this one is applied.
    [[nodiscard]] std::uint64_t end_of(const CommittedRecord& record) const noexcept;
    /// The records up to this one are applied: their room may be used.
    void applied(const CommittedRecord& record) noexcept;

    /// Recovery: finds what waits, and voids the record of a transaction that did not finish.
    void recover() noexcept;
    [[nodiscard]] LogHeader& header() const noexcept { return *header_; }
    [[nodiscard]] std::uint64_t applied_offset() const noexcept { return memory_->offset_of(&header_->applied); }
    [[nodiscard]] std::uint64_t applied_end_offset() const noexcept { return memory_->offset_of(&header_->applied_end); }

private:
    [[nodiscard]] ActivationRecord& at(std::uint64_t place) const noexcept { return *reinterpret_cast<ActivationRecord*>(bytes_ + place); }
    [[nodiscard]] std::uint64_t checksum_of(const ActivationRecord& record) const noexcept;
    /// The transaction of the record there; 0: there is none that is newer than `after`.
    [[nodiscard]] std::uint64_t transaction_at(std::uint64_t place, std::uint64_t after) const noexcept;
    [[nodiscard]] static std::uint64_t bytes_of(std::uint64_t count) noexcept
    {
        return sizeof(ActivationRecord) + count * sizeof(PointerChange);
    }

    alignas(2 * cache_line_bytes) PoolMemory* memory_ = nullptr;  // Another thread has the next log.
    LogHeader* header_ = nullptr;
    std::byte* bytes_ = nullptr;
    std::uint64_t capacity_ = 0;
    std::uint64_t seed_ = 0;
    os::FutexLock lock_;
    std::uint64_t head_ = 0;      ///< the next record goes there
    std::uint64_t tail_ = 0;      ///< the oldest one that is not applied
    std::uint64_t count_ = 0;     ///< records that are not applied
    std::uint64_t appended_ = 0;  ///< place of the record that was appended last
    ReservedList<CommittedRecord> waiting_;
};

}  // namespace stillpoint::breeze
