#if defined(__aarch64__)

#include "arch/aarch64.hpp"

#include <sys/auxv.h>

namespace stillpoint::arch {

namespace {

/// CTR_EL0.DminLine: log2 of the words (4 bytes) in the smallest data cache line.
std::size_t smallest_line_bytes() noexcept
{
    std::uint64_t cache_type = 0;
    asm("mrs %0, ctr_el0" : "=r"(cache_type));
    return std::size_t{4} << ((cache_type >> 16) & 0xf);
}

}  // namespace

bool AArch64::has(WriteBack method) noexcept
{
    constexpr unsigned long hwcap_dcpop = 1ul << 16;
    return method == WriteBack::cvac || (getauxval(AT_HWCAP) & hwcap_dcpop) != 0;
}

AArch64::AArch64(WriteBack method) noexcept
    : method_(method), step_bytes_(static_cast<std::uint8_t>(smallest_line_bytes() < line_bytes ? smallest_line_bytes() : line_bytes))
{
}

AArch64 AArch64::detect() noexcept { return AArch64{has(WriteBack::cvap) ? WriteBack::cvap : WriteBack::cvac}; }

void AArch64::copy_nontemporal(void* to, const void* from, std::size_t size) const noexcept
{
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    for (std::size_t done = 0; done < size; done += line_bytes) {
        asm volatile("ldnp q0, q1, [%1]\n\t"
                     "ldnp q2, q3, [%1, #32]\n\t"
                     "stnp q0, q1, [%0]\n\t"
                     "stnp q2, q3, [%0, #32]"
                     :
                     : "r"(target + done), "r"(source + done)
                     : "v0", "v1", "v2", "v3", "memory");
        // stnp is a hint: the line may be in a cache anyway, and must be cleaned.
        write_back(target + done);
    }
}

std::string_view AArch64::write_back_name() const noexcept { return method_ == WriteBack::cvap ? "dc cvap" : "dc cvac"; }

}  // namespace stillpoint::arch

#endif
