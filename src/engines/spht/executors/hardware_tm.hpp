#pragma once
// HardwareTm: what the executor in hardware needs of a CPU with transactions. RtmTm is Intel's; SimulatedTm (simulated_tm.hpp) stands in
// for it where there is none, and lets transactions abort as hardware does.

#include <concepts>
#include <cstdint>

#include "arch/rtm.hpp"
#include "engines/spht/store_word.hpp"

namespace stillpoint::spht {

/// Why a hardware transaction has aborted, as far as the CPU says.
enum class AbortKind : std::uint8_t {
    conflict,  ///< another thread has used a line that this one has
    capacity,  ///< the caches cannot hold what it has read and written
    code,      ///< abort(code)
    debug,     ///< a breakpoint
    other,     ///< an interrupt, a fault, an instruction that cannot be undone
};

/// The reason that abort() gives to begin().
enum class AbortCode : std::uint8_t {
    none,
    gate_shut,      ///< a transaction runs alone
    must_be_alone,  ///< it does what a hardware transaction cannot do
};

struct HtmStatus {
    bool started = false;
    AbortKind kind = AbortKind::other;
    AbortCode code = AbortCode::none;
};

template <class T>
concept HardwareTm = requires(T& tm, const T& seen, const std::uint64_t* word, std::uint64_t* place, std::uint64_t& value) {
    /// Returns `started`, and once more after an abort if T::resumes_at_begin; else load(), store() or end() is false from then on, and
    /// last() says why.
    { tm.begin() } noexcept -> std::same_as<HtmStatus>;
    { T::resumes_at_begin } -> std::convertible_to<bool>;
    { seen.last() } noexcept -> std::same_as<HtmStatus>;
    /// The aligned word, as of the one moment of the transaction.
    { tm.load(word, value) } noexcept -> std::same_as<bool>;
    /// The bytes of the word that the mask has.
    { tm.store(place, std::uint64_t{}, std::uint64_t{}) } noexcept -> std::same_as<bool>;
    { tm.end() } noexcept -> std::same_as<bool>;
    { tm.abort(AbortCode{}) } noexcept;
    /// The thread is inside a transaction that has not aborted.
    { seen.test() } noexcept -> std::same_as<bool>;
    /// The caller, outside of any transaction, has stored there: transactions that have loaded it abort.
    { tm.note_plain_store(word) } noexcept;
};

class RtmTm {
public:
    static constexpr bool resumes_at_begin = true;

    [[gnu::always_inline]] HtmStatus begin() noexcept
    {
        const unsigned status = arch::Rtm::begin();
        if (status == arch::Rtm::started) [[likely]] {
            return {true, AbortKind::other, AbortCode::none};
        }
        if ((status & arch::Rtm::aborted_by_code) != 0) {
            return {false, AbortKind::code, static_cast<AbortCode>(arch::Rtm::code_in(status))};
        }
        const AbortKind kind = (status & arch::Rtm::conflict) != 0   ? AbortKind::conflict
                               : (status & arch::Rtm::capacity) != 0 ? AbortKind::capacity
                               : (status & arch::Rtm::debug) != 0    ? AbortKind::debug
                                                                     : AbortKind::other;
        return {false, kind, AbortCode::none};
    }
    [[nodiscard]] HtmStatus last() const noexcept { return {}; }
    [[gnu::always_inline]] bool load(const std::uint64_t* word, std::uint64_t& value) const noexcept
    {
        value = __atomic_load_n(word, __ATOMIC_RELAXED);
        return true;
    }
    [[gnu::always_inline]] bool store(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) const noexcept
    {
        store_word(word, value, mask);
        return true;
    }
    [[gnu::always_inline]] bool end() const noexcept
    {
        arch::Rtm::end();
        return true;
    }
    void abort(AbortCode code) const noexcept
    {
        if (code == AbortCode::gate_shut) {
            arch::Rtm::abort<static_cast<std::uint8_t>(AbortCode::gate_shut)>();
        } else {
            arch::Rtm::abort<static_cast<std::uint8_t>(AbortCode::must_be_alone)>();
        }
    }
    [[nodiscard]] bool test() const noexcept { return arch::Rtm::test(); }
    /// The caches tell the others.
    void note_plain_store(const std::uint64_t* /*word*/) const noexcept {}
};
static_assert(HardwareTm<RtmTm>);

}  // namespace stillpoint::spht
