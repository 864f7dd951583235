#pragma once
// The undo log of one transaction at a time [Breeze, thesis §3.2.3]: old bytes, durable before the program stores new ones. Each word of
// the pool is logged once in a transaction, so an entry always has the value from before it.

#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/pool_memory.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::breeze {

struct LoggedRange {
    std::uint64_t offset;
    std::uint64_t size;
    const std::byte* old_bytes;
};

/// The words of the pool that a transaction has logged: for each line eight bits.
class LoggedWords {
    struct Place {
        std::uint64_t line;
        std::uint64_t stamp_and_mask;  ///< of a transaction: places of older ones are free
    };

public:
    [[nodiscard]] static std::uint64_t space_bytes(std::uint64_t log_bytes) noexcept
    {
        return os::ReservedArray<Place>::bytes_for(places_for(log_bytes));
    }
    void prepare(std::uint64_t log_bytes, os::ReservedSpace& space) noexcept;
    void begin(std::uint64_t transaction) noexcept { stamp_ = transaction; }
    /// The bits of `mask` that are new; they are logged from here on.
    [[nodiscard]] std::uint8_t add(std::uint64_t line, std::uint8_t mask) noexcept;

private:
    [[nodiscard]] static std::uint64_t places_for(std::uint64_t log_bytes) noexcept;
    os::ReservedArray<Place> places_;
    std::uint64_t places_mask_ = 0;
    std::uint64_t stamp_ = 0;
};

class UndoLog {
public:
    /// The address space that a log takes.
    [[nodiscard]] static std::uint64_t space_bytes(const Geometry& geometry) noexcept;
    /// The log of that number.
    void prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key, unsigned number, os::ReservedSpace& space) noexcept;
    [[nodiscard]] LogHeader& header() const noexcept { return *header_; }
    /// The number of the next one. After recovery; no load of the pool's own line, which is not in the caches.
    [[nodiscard]] std::uint64_t next_transaction() noexcept
    {
        if (finished_ == 0) {
            finished_ = header_->finished;
        }
        return finished_ + 1;
    }
    /// The transaction has committed, or was rolled back. Durable on return.
    void finish(std::uint64_t transaction) noexcept;

    void begin(std::uint64_t transaction) noexcept;
    /// Logs those words of the range that are not logged yet; durable after wait(). False: the log is full; nothing of the range may be
    /// stored to.
    [[nodiscard]] bool log(std::uint64_t offset, std::uint64_t size) noexcept;
    /// One fence for everything that was logged since the last one.
    void wait() noexcept;
    /// Calls visit(LoggedRange) for each entry of the running transaction, in their order.
    template <class Visit>
    void visit(Visit&& visit) const
    {
        for (std::uint64_t place = 0; place < used_;) {
            const UndoEntry& entry = entry_at(place);
            visit(LoggedRange{entry.offset, entry.size, reinterpret_cast<const std::byte*>(&entry + 1)});
            place += bytes_of_entry(entry.size);
        }
    }
    /// Stores the old bytes of the running transaction, latest first, durably.
    void roll_back() noexcept;
    [[nodiscard]] bool is_empty() const noexcept { return used_ == 0; }

    /// Recovery: finds the entries of the transaction that a crash has left, if there are any, as the running one. True: there are.
    /// Errors: pool_corrupt (an entry names bytes that no transaction logs).
    [[nodiscard]] Result<bool> find_unfinished() noexcept;

private:
    /// In the copy: entries are made there, and go to the pool as whole lines, past the caches.
    [[nodiscard]] const UndoEntry& entry_at(std::uint64_t place) const noexcept
    {
        return *reinterpret_cast<const UndoEntry*>(copy_.data() + place);
    }
    [[nodiscard]] static std::uint64_t bytes_of_entry(std::uint64_t size) noexcept
    {
        return round_up(sizeof(UndoEntry) + size, cache_line_bytes);
    }
    [[nodiscard]] bool append(std::uint64_t offset, std::uint64_t size) noexcept;
    [[nodiscard]] std::uint64_t checksum_of(const UndoEntry& entry) const noexcept;

    PoolMemory* memory_ = nullptr;
    LogHeader* header_ = nullptr;
    std::uint64_t offset_ = 0;  ///< of the log in the image
    os::ReservedArray<std::byte> copy_;
    std::uint64_t capacity_ = 0;
    std::uint64_t used_ = 0;
    std::uint64_t transaction_ = 0;
    bool waits_ = false;  ///< entries were made since the last fence
    bool is_full_ = false;  ///< the running transaction can only be rolled back
    std::uint64_t finished_ = 0;  ///< by transactions of this run; 0: none yet
    std::uint64_t seed_ = 0;
    std::uint64_t zones_offset_ = 0;
    LoggedWords logged_;
};

}  // namespace stillpoint::breeze
