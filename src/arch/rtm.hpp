#pragma once
// Hardware transactions: Intel's restricted transactional memory (RTM). Whatever the thread loads and stores between begin() and end() is
// visible to others at once or not at all; where another core is in the way, the CPU puts registers and memory back and returns from
// begin() once more. Other CPUs of this project have none.

#include <cstdint>

namespace stillpoint::arch {

class Rtm {
public:
    /// The status that begin() returns after an abort: some of these bits, or none (an interrupt, a fault, an instruction that cannot be
    /// undone).
    static constexpr unsigned aborted_by_code = 1U << 0;  ///< abort(); its code: code_in()
    static constexpr unsigned may_succeed = 1U << 1;
    static constexpr unsigned conflict = 1U << 2;
    static constexpr unsigned capacity = 1U << 3;
    static constexpr unsigned debug = 1U << 4;
    static constexpr unsigned started = ~0U;
    [[nodiscard]] static constexpr unsigned code_in(unsigned status) noexcept { return status >> 24; }

    /// The CPU says that it has RTM, and a transaction has committed: microcode lets all of them abort on many CPUs. Start-up only.
    [[nodiscard]] static bool works() noexcept;

#if defined(__x86_64__)
    // Written as assembly so that it inlines into code built for the baseline CPU. Only where works().
    [[gnu::always_inline]] static unsigned begin() noexcept
    {
        unsigned status = started;
        asm volatile("xbegin 1f\n1:" : "+a"(status) : : "memory");
        return status;
    }
    [[gnu::always_inline]] static void end() noexcept { asm volatile("xend" : : : "memory"); }
    /// Inside a transaction: does not return. Outside: nothing happens.
    template <std::uint8_t code>
    [[gnu::always_inline]] static void abort() noexcept
    {
        asm volatile("xabort %0" : : "i"(code) : "memory");
    }
    /// The thread is inside a transaction.
    [[nodiscard, gnu::always_inline]] static bool test() noexcept
    {
        bool inside = false;
        asm volatile("xtest\n\tsetnz %0" : "=q"(inside) : : "cc", "memory");
        return inside;
    }
#else
    [[nodiscard]] static unsigned begin() noexcept { return 0; }
    static void end() noexcept {}
    template <std::uint8_t code>
    static void abort() noexcept
    {
    }
    [[nodiscard]] static bool test() noexcept { return false; }
#endif
};

}  // namespace stillpoint::arch
