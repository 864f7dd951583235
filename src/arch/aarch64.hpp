#pragma once
// AArch64. `dc cvap` cleans a line to the point of persistence (ARMv8.2, HWCAP_DCPOP); without
// it `dc cvac` cleans it to the point of coherency, which is as far as such a CPU can push.

#if !defined(__aarch64__)
#error "arch/native.hpp chooses the file of the CPU"
#endif

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stillpoint::arch {

class AArch64 {
public:
    /// The unit of counting. Where the CPU's own lines are shorter, write_back() does several.
    static constexpr std::size_t line_bytes = 64;

    enum class WriteBack : std::uint8_t { cvac, cvap };

    /// The best that this CPU has.
    [[nodiscard]] static AArch64 detect() noexcept;
    /// For tests: `method` must be one that has().
    explicit AArch64(WriteBack method) noexcept;
    [[nodiscard]] static bool has(WriteBack method) noexcept;

    void write_back(const void* line) const noexcept
    {
        const auto begin = reinterpret_cast<std::uintptr_t>(line);
        for (std::uintptr_t at = begin; at < begin + line_bytes; at += step_bytes_) {
            if (method_ == WriteBack::cvap) {
                // "dc cvap, at", spelt so that assemblers for ARMv8.0 take it.
                asm volatile("sys #3, c7, c12, #1, %0" : : "r"(at) : "memory");
            } else {
                asm volatile("dc cvac, %0" : : "r"(at) : "memory");
            }
        }
    }

    void fence() const noexcept { asm volatile("dsb sy" : : : "memory"); }

    void copy_nontemporal(void* to, const void* from, std::size_t size) const noexcept;

    [[nodiscard]] std::string_view write_back_name() const noexcept;

private:
    WriteBack method_;
    std::uint8_t step_bytes_;  ///< min(line_bytes, the smallest data cache line).
};

}  // namespace stillpoint::arch
