#pragma once
// Reads and writes block and object headers. Checks are bound to the place and to the pool's key, so bytes that an object happens to hold
// do not pass for a header.

#include <cstring>

#include "arch/checksum.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/pool_memory.hpp"

namespace stillpoint::breeze {

struct BlockHead {
    BlockState state;
    std::uint64_t granules;
};

[[nodiscard]] inline std::uint64_t head_of(std::uint64_t key, std::uint64_t offset, BlockHead head) noexcept
{
    const std::uint64_t value = head.granules | static_cast<std::uint64_t>(head.state) << head_state_shift;
    return value | mix64(key ^ offset, value) >> head_check_shift << head_check_shift;
}

/// False: the word is not the head of a block at that place.
[[nodiscard]] inline bool read_head(std::uint64_t key, std::uint64_t offset, std::uint64_t word, BlockHead& head) noexcept
{
    head.granules = word & head_granules_mask;
    head.state = static_cast<BlockState>(word >> head_state_shift & 0xf);
    return head.granules != 0 && (head.state == BlockState::free || head.state == BlockState::allocated) &&
           head_of(key, offset, head) == word;
}

[[nodiscard]] inline std::uint64_t header_check(std::uint64_t key, std::uint64_t offset, const ObjectHeader& header) noexcept
{
    const std::uint64_t words[4] = {key ^ offset, load_word(header.counts) >> type_shift, load_word(header.version),
                                    load_word(header.size)};
    return checksum64(words, sizeof words, key) & 0xffffffff;
}

/// In a copy of an object, which other threads do not change.
[[nodiscard]] inline std::uint64_t word_at(const std::byte* place) noexcept
{
    std::uint64_t value = 0;
    std::memcpy(&value, place, sizeof value);
    return value;
}

[[nodiscard]] inline std::uint32_t type_in(std::uint64_t counts) noexcept { return static_cast<std::uint32_t>(counts >> type_shift); }
[[nodiscard]] inline std::uint32_t references_in(std::uint64_t counts) noexcept { return static_cast<std::uint32_t>(counts); }
[[nodiscard]] inline std::uint64_t generation_in(std::uint64_t word) noexcept { return word & 0xffffffff; }

/// The block is allocated; its head is sound. Any thread.
[[nodiscard]] inline bool is_allocated(const PoolMemory& memory, std::uint64_t key, std::uint64_t offset) noexcept
{
    BlockHead head{};
    return read_head(key, offset, load_word(memory.object(offset).head), head) && head.state == BlockState::allocated;
}

/// The header of an allocated block fits its check and its block. Any thread: a block that is being allocated again fits or does not.
[[nodiscard]] inline bool is_sound(std::uint64_t key, std::uint64_t offset, std::uint64_t granules, const ObjectHeader& header) noexcept
{
    return load_word(header.generation) >> header_check_shift == header_check(key, offset, header) &&
           load_word(header.size) <= granules * granule_bytes - object_header_bytes;
}

}  // namespace stillpoint::breeze
