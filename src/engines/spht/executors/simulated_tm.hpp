#pragma once
// A simulated hardware transactional memory: SimulatedMachine is the CPU's caches, SimulatedTm a core. Lines of 64 bytes that a
// transaction has used belong to it until it ends; another one that wants such a line, and one of the two writes, lets it abort, as caches
// do: the one that asks wins. Stores become visible at the end, all at once, so no transaction sees half of another. On top of that aborts
// of all kinds are drawn from a seed.
//
// It is for tests, and takes one lock for each access. Lines are told apart by a hash: two of one hash are taken for one line.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/spht/executors/hardware_tm.hpp"
#include "engines/spht/write_set.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

class SimulatedMachine {
public:
    /// `seed`: of the aborts that are drawn; 0: only conflicts and capacity. Errors: no_memory.
    [[nodiscard]] Result<void> prepare(std::uint64_t cores, std::uint64_t seed);
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    void reset_after_fork() noexcept { lock_.reset_after_fork(); }

private:
    friend class SimulatedTm;

    static constexpr std::uint64_t line_numbers = std::uint64_t{1} << 14;
    using Lines = std::uint64_t[line_numbers / 64];
    /// Under the lock.
    struct Core {
        bool runs;
        bool lost;  ///< another core has taken a line
        Lines loaded;
        Lines stored;
    };

    [[nodiscard]] static std::uint64_t line_number(const void* address) noexcept
    {
        const std::uint64_t line = reinterpret_cast<std::uintptr_t>(address) / cache_line_bytes;
        return (line ^ (line >> 14) * 0x9e37'79b9) % line_numbers;
    }
    [[nodiscard]] Core& use_core(std::uint64_t number) noexcept;
    /// Transactions of other cores that have the line lose: those that have stored there, and with `stores` those that have loaded it.
    void take_line(std::uint64_t line, const Core* own, bool stores) noexcept;

    os::FutexLock lock_;
    os::ReservedArray<Core> cores_;
    std::uint64_t core_count_ = 0;  ///< in use
    std::uint64_t seed_ = 0;
};

/// Threads: one.
class SimulatedTm {
public:
    static constexpr bool resumes_at_begin = false;
    /// The lines that a transaction can hold: a first cache of 32 KiB for stores, a second one of 512 KiB for loads.
    static constexpr std::uint64_t lines_stored_max = 512;
    static constexpr std::uint64_t lines_loaded_max = 8192;

    SimulatedTm(SimulatedMachine& machine, std::uint64_t number) noexcept;
    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve() { return buffer_.reserve(); }

    [[nodiscard]] HtmStatus begin() noexcept;
    [[nodiscard]] HtmStatus last() const noexcept { return last_; }
    [[nodiscard]] bool load(const std::uint64_t* word, std::uint64_t& value) noexcept;
    [[nodiscard]] bool store(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept;
    [[nodiscard]] bool end() noexcept;
    void abort(AbortCode code) noexcept { stop(AbortKind::code, code); }
    [[nodiscard]] bool test() const noexcept;
    void note_plain_store(const std::uint64_t* word) noexcept;

private:
    [[nodiscard]] std::uint64_t draw() noexcept;
    /// One step of the transaction; false: an abort was drawn.
    [[nodiscard]] bool step() noexcept;
    bool stop(AbortKind kind, AbortCode code = AbortCode::none) noexcept;
    /// Under the machine's lock. False: it has lost a line, or has no room for this one.
    [[nodiscard]] bool use_line(const std::uint64_t* word, bool stores) noexcept;

    SimulatedMachine& machine_;
    SimulatedMachine::Core& core_;
    std::uint64_t random_;
    bool runs_ = false;
    std::uint64_t steps_left_ = 0;  ///< until the abort that was drawn
    AbortKind drawn_ = AbortKind::other;
    std::uint64_t lines_loaded_ = 0;
    std::uint64_t lines_stored_ = 0;
    WriteSet buffer_;
    HtmStatus last_;
};
static_assert(HardwareTm<SimulatedTm>);

}  // namespace stillpoint::spht
