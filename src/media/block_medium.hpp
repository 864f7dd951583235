#pragma once
// The media that are written by calls alone, and cannot be read or stored to as memory: they refuse the calls of byte-addressable memory.

#include <cstddef>
#include <cstdint>

#include "media/medium.hpp"

namespace stillpoint {

/// An owner asks byte_addressable() first: a store, write back or fence that arrives here all the same would be lost. It ends the process.
class BlockMedium : public Medium {
public:
    [[nodiscard]] bool byte_addressable() const noexcept final { return false; }
    [[nodiscard]] const std::byte* mapping() const noexcept final { return nullptr; }
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept final;
    void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept final;
    void write_back(std::uint64_t offset, std::size_t size) noexcept final;
    void fence() noexcept final;
};

}  // namespace stillpoint
