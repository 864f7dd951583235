#pragma once
// The versioned locks of the software transactional memory: each line of memory has one, found by its address. After TL2 (Dice, Shalev
// and Shavit, DISC 2006), with the CPU's clock in place of a shared counter (Ruan, Liu and Spear, TACO 2013): the version of a line is
// the timestamp that orders the transaction which wrote it in the log.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "logs/redo_layout.hpp"
#include "os/reserved_array.hpp"
#include "stillpoint/spht_read_view.hpp"

namespace stillpoint::spht {

using logs::Timestamp;

class VersionLocks {
public:
    /// Timestamp << 1; or owner << 1 | 1, while a transaction that writes a line commits.
    using Lock = std::atomic<std::uint64_t>;

    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve()
    {
        if (auto done = locks_.reserve(count, "the versions of memory"); !done) {
            return done;
        }
        view_.versions = word_of(locks_[0]);
        view_.versions_mask = count - 1;
        return {};
    }

    [[nodiscard]] Lock& of(std::uintptr_t address) noexcept { return *lock_at(view_.version_of(address)); }
    [[nodiscard]] static std::uint64_t* word_of(Lock& lock) noexcept { return reinterpret_cast<std::uint64_t*>(&lock); }
    [[nodiscard]] static Lock* lock_at(std::uint64_t* word) noexcept { return reinterpret_cast<Lock*>(word); }
    void show_in(read_view& view) const noexcept
    {
        view.versions = view_.versions;
        view.versions_mask = view_.versions_mask;
    }
    /// For a line that the transaction will lock.
    void prefetch(std::uintptr_t address) noexcept { __builtin_prefetch(&of(address), 1); }
    /// A transaction that reads [begin, + size_bytes) and began before `now` meets a conflict.
    void outdate(std::uintptr_t begin, std::uint64_t size_bytes, Timestamp now) noexcept;

    /// So many bytes, one after the other, have every lock.
    static constexpr std::uint64_t covered_bytes = cache_line_bytes << 17;
    /// A line that another transaction is just writing: so many looks before that counts as a conflict.
    static constexpr unsigned looks_max = 100;

    /// Timestamps of transactions that write durable memory are even, those of others odd: nothing becomes durable with the latter, so no
    /// reader waits for them, and no commit depends on them.
    [[nodiscard]] static Timestamp timestamp_for(Timestamp now, bool is_durable) noexcept
    {
        return is_durable ? (now + 1) & ~Timestamp{1} : now | 1;
    }
    /// Such a version may be of a transaction that is not durable yet.
    [[nodiscard]] static bool is_awaited(Timestamp version) noexcept { return (version & 1) == 0; }
    /// The version of lines whose transaction was durable before others saw it: the next after its own.
    [[nodiscard]] static Timestamp not_awaited(Timestamp timestamp) noexcept { return timestamp | 1; }

    [[nodiscard]] static bool is_locked(std::uint64_t word) noexcept { return (word & 1) != 0; }
    [[nodiscard]] static Timestamp version(std::uint64_t word) noexcept { return word >> 1; }

private:
    static constexpr unsigned count_bits = 17;  ///< 1 MiB: what a core's second cache holds
    static constexpr std::uint64_t count = std::uint64_t{1} << count_bits;
    static_assert(covered_bytes == count * cache_line_bytes);

    static_assert(sizeof(Lock) == sizeof(std::uint64_t) && Lock::is_always_lock_free);

    os::ReservedArray<Lock> locks_;
    read_view view_{};  ///< where they are; the rest is a transaction's
};

}  // namespace stillpoint::spht
