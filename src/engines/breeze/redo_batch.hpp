#pragma once
// Words of the image that change together: first their new values are durable in the pool's redo record, then they are stored. Reference
// counts are changed by this alone, since adding to them twice would be wrong [Breeze, thesis §3.2.7].

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/pool_memory.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::breeze {

/// Threads: one at a time; the lock of the reference counts.
class RedoBatch {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key);
    /// Stores what a record that a crash has left says. Errors: pool_corrupt.
    [[nodiscard]] Result<void> recover() noexcept;

    /// Words of a usual batch, which is small enough for the caches.
    [[nodiscard]] std::uint64_t usual() const noexcept { return std::min(capacity_, usual_words); }
    [[nodiscard]] std::uint64_t room() const noexcept { return limit_ - count_; }
    /// An empty batch gets room for what the record can hold; until it is committed.
    void widen() noexcept { set_limit(capacity_); }
    /// The word as it will be.
    [[nodiscard]] std::uint64_t value_of(std::uint64_t offset) const noexcept;
    /// There is room for it.
    void set(std::uint64_t offset, std::uint64_t value) noexcept;
    /// Durable on return; the batch is empty then.
    void commit() noexcept;

private:
    struct Place {
        std::uint64_t offset;
        std::uint64_t number;  ///< of the batch, and the word's index in the lower half
    };
    static constexpr std::uint64_t usual_words = 4096;
    void set_limit(std::uint64_t words) noexcept
    {
        limit_ = words;
        places_mask_ = std::bit_ceil(2 * words) - 1;
    }
    [[nodiscard]] std::uint64_t place_of(std::uint64_t offset) const noexcept;
    [[nodiscard]] RedoWord* words() const noexcept { return reinterpret_cast<RedoWord*>(record_ + 1); }
    [[nodiscard]] std::uint64_t checksum(std::uint64_t count) const noexcept;
    void store_words(std::uint64_t count) const noexcept;

    PoolMemory* memory_ = nullptr;
    RedoRecord* record_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t capacity_ = 0;
    std::uint64_t limit_ = 0;  ///< of words in this batch
    std::uint64_t count_ = 0;
    std::uint64_t number_ = 1;
    os::ReservedArray<Place> places_;
    std::uint64_t places_mask_ = 0;
};

}  // namespace stillpoint::breeze
