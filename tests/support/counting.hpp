#pragma once
// An Arch for tests: it copies, and counts what hardware would be asked to do.

#include <cstdint>
#include <cstring>
#include <vector>

#include "arch/arch.hpp"

namespace stillpoint::arch {

class Counting {
public:
    static constexpr std::size_t line_bytes = 64;

    void write_back(const void* line) noexcept { written_back.push_back(reinterpret_cast<std::uintptr_t>(line)); }
    void fence() noexcept { ++fences; }
    void copy_nontemporal(void* to, const void* from, std::size_t size) noexcept
    {
        std::memcpy(to, from, size);
        nontemporal_bytes += size;
    }
    [[nodiscard]] std::string_view write_back_name() const noexcept { return "counted"; }

    std::vector<std::uintptr_t> written_back;  ///< Addresses, in order.
    std::size_t fences = 0;
    std::size_t nontemporal_bytes = 0;
};

static_assert(Arch<Counting>);

}  // namespace stillpoint::arch
