#pragma once
// x86-64. The baseline build runs everywhere: what the CPU has is found once, by CPUID.

#if !defined(__x86_64__)
#error "arch/native.hpp chooses the file of the CPU"
#endif

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <emmintrin.h>

namespace stillpoint::arch {

class X86_64 {
public:
    static constexpr std::size_t line_bytes = 64;

    enum class WriteBack : std::uint8_t {
        clflush,     ///< evicts the line, one after the other; every x86-64 has it
        clflushopt,  ///< evicts it, unordered until the fence
        clwb,        ///< may keep the line in the cache, unordered until the fence
    };

    /// The best that this CPU has.
    [[nodiscard]] static X86_64 detect() noexcept;
    /// For tests: `method` must be one that has().
    explicit X86_64(WriteBack method) noexcept;
    [[nodiscard]] static bool has(WriteBack method) noexcept;

    // Written as assembly so that it inlines into code built for the baseline CPU.
    void write_back(const void* line) const noexcept
    {
        const auto* const byte = static_cast<const volatile char*>(line);
        switch (method_) {
        case WriteBack::clwb: asm volatile("clwb %0" : : "m"(*byte) : "memory"); break;
        case WriteBack::clflushopt: asm volatile("clflushopt %0" : : "m"(*byte) : "memory"); break;
        case WriteBack::clflush: asm volatile("clflush %0" : : "m"(*byte) : "memory"); break;
        }
    }

    void fence() const noexcept { _mm_sfence(); }

    void copy_nontemporal(void* to, const void* from, std::size_t size) const noexcept { copy_(to, from, size); }

    [[nodiscard]] std::string_view write_back_name() const noexcept;

private:
    WriteBack method_;
    void (*copy_)(void* to, const void* from, std::size_t size) noexcept;
};

}  // namespace stillpoint::arch
