#pragma once
// Sets of locks under small numbers, so that a variable's set takes four bytes [Eraser §3.2]. The caller serialises.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stillpoint {

class LockSets {
public:
    using Locks = std::span<const void* const>;
    static constexpr std::uint32_t empty = 0;    ///< the number of the set without locks
    static constexpr std::uint32_t unknown = 1;  ///< of a set that there was no room for: it never gets empty

    /// The number of that set.
    [[nodiscard]] std::uint32_t number_of(Locks locks) noexcept
    {
        if (locks.empty()) {
            return empty;
        }
        if (locks.size() > locks_max) {
            return unknown;
        }
        std::uint64_t sum = 0;
        for (const void* lock : locks) {
            sum += reinterpret_cast<std::uintptr_t>(lock);
        }
        const std::size_t first = (sum * 0x9e3779b97f4a7c15ULL) >> 32;
        for (std::size_t probe = 0; probe < probes_max; ++probe) {
            const std::size_t index = (first + probe) % sets_max;
            Set& set = sets_[index];
            if (set.count == 0) {
                std::copy(locks.begin(), locks.end(), set.locks.begin());
                set.count = static_cast<std::uint32_t>(locks.size());
            }
            if (set.count == locks.size() && std::all_of(locks.begin(), locks.end(), [&](const void* lock) { return has(set, lock); })) {
                return static_cast<std::uint32_t>(index) + first_number;
            }
        }
        return unknown;
    }

    /// The number of what both have.
    [[nodiscard]] std::uint32_t common(std::uint32_t number, Locks locks) noexcept
    {
        if (number < first_number) {
            return number;
        }
        const Set& set = sets_[number - first_number];
        std::array<const void*, locks_max> both{};
        std::size_t count = 0;
        for (std::size_t index = 0; index < set.count; ++index) {
            if (std::find(locks.begin(), locks.end(), set.locks[index]) != locks.end()) {
                both[count++] = set.locks[index];
            }
        }
        return count == set.count ? number : number_of({both.data(), count});
    }

private:
    static constexpr std::size_t locks_max = 7;
    static constexpr std::size_t sets_max = 1 << 16;
    static constexpr std::size_t probes_max = 32;
    static constexpr std::uint32_t first_number = 2;

    struct Set {
        std::array<const void*, locks_max> locks;
        std::uint32_t count;  ///< 0: unused
    };

    static bool has(const Set& set, const void* lock) noexcept
    {
        const auto end = set.locks.begin() + set.count;
        return std::find(set.locks.begin(), end, lock) != end;
    }

    std::array<Set, sets_max> sets_{};
};

}  // namespace stillpoint
