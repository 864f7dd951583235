#pragma once
// SharedHeap: blocks in memory that all processes of a program share.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "shared_heap/chunk_map.hpp"
#include "shared_heap/robust_lock.hpp"

namespace stillpoint::shared_heap {

inline constexpr std::size_t least_alignment = 16;
inline constexpr std::size_t small_bytes_max = std::size_t{32} << 10;

namespace size_classes {

// 16, 32, ... 128; then four to each doubling.
inline constexpr std::size_t linear = 8;
inline constexpr std::size_t linear_bytes_max = linear * least_alignment;
inline constexpr std::size_t per_doubling = 4;
inline constexpr std::size_t count = linear + per_doubling * 8;

[[nodiscard]] constexpr std::size_t bytes_of(std::size_t size_class) noexcept
{
    if (size_class < linear) {
        return (size_class + 1) * least_alignment;
    }
    const std::size_t doubling = (size_class - linear) / per_doubling;
    const std::size_t step = (size_class - linear) % per_doubling + 1;
    return (linear_bytes_max << doubling) + ((linear_bytes_max / per_doubling) << doubling) * step;
}

[[nodiscard]] constexpr std::size_t class_for(std::size_t bytes) noexcept
{
    if (bytes <= linear_bytes_max) {
        return bytes == 0 ? 0 : (bytes - 1) / least_alignment;
    }
    const auto doubling = static_cast<std::size_t>(std::bit_width((bytes - 1) / linear_bytes_max)) - 1;
    const std::size_t step_bytes = (linear_bytes_max / per_doubling) << doubling;
    return linear + doubling * per_doubling + ((bytes - 1) - (linear_bytes_max << doubling)) / step_bytes;
}
static_assert(bytes_of(count - 1) == small_bytes_max);
static_assert(class_for(129) == linear && bytes_of(class_for(129)) == 160 && bytes_of(class_for(small_bytes_max)) == small_bytes_max);

}  // namespace size_classes

class SharedHeap {
public:
    /// In the first process, before there are others. False: no memory.
    [[nodiscard]] bool begin() noexcept;
    [[nodiscard]] bool has_begun() const noexcept { return base_ != nullptr; }
    [[nodiscard]] bool contains(const void* block) const noexcept
    {
        return base_ != nullptr && static_cast<std::size_t>(static_cast<const std::byte*>(block) - base_) < chunks_max * chunk_bytes;
    }

    /// nullptr: no memory. `is_zeroed`: the block was never used.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, bool* is_zeroed) noexcept;
    void free(void* block) noexcept;
    [[nodiscard]] std::size_t usable_size(const void* block) const noexcept;

private:
    struct Class {
        RobustLock lock;
        std::byte* free;  ///< each begins with the address of the next
        std::byte* fresh;      ///< never used, up to fresh_end
        std::byte* fresh_end;
    };
    struct Shared {
        ChunkMap chunks;
        std::array<Class, size_classes::count> classes;
    };

    [[nodiscard]] void* allocate_small(std::size_t size_class) noexcept;
    [[nodiscard]] std::size_t chunk_of(const void* block) const noexcept
    {
        return static_cast<std::size_t>(static_cast<const std::byte*>(block) - base_) / chunk_bytes;
    }

    Shared* shared_ = nullptr;
    std::byte* base_ = nullptr;
};

}  // namespace stillpoint::shared_heap
