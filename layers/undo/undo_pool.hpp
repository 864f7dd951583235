#pragma once
// A pool's bytes in memory: where its parts are, and whether they can be believed. Also recovery, which needs nothing else.

#include <cstddef>
#include <cstdint>

#include "undo_layout.hpp"

namespace stillpoint::undo {

class Pool {
public:
    /// The bytes at `base` must begin with a header that check() accepted.
    explicit constexpr Pool(std::byte* base) noexcept : base_(base) {}

    [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return base_ + offset; }
    [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept
    {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    }
    [[nodiscard]] const Geometry& geometry() const noexcept { return header().geometry; }
    [[nodiscard]] Variables& variables() const noexcept { return header().variables; }
    [[nodiscard]] SlotHeader& slot(std::uint32_t number) const noexcept
    {
        return *reinterpret_cast<SlotHeader*>(at(geometry().slots_offset + number * geometry().slot_bytes));
    }
    [[nodiscard]] std::uint64_t& used(std::uint64_t chunk) const noexcept
    {
        return reinterpret_cast<std::uint64_t*>(at(geometry().table_offset))[chunk];
    }
    [[nodiscard]] std::uint64_t chunk_offset(std::uint64_t chunk) const noexcept { return geometry().chunks_offset + chunk * chunk_bytes; }
    /// Whether [offset, offset + size) may be the subject of a log entry: variables, chunk table, lists of free blocks, chunks.
    [[nodiscard]] bool may_be_logged(std::uint64_t offset, std::uint64_t size) const noexcept;
    /// Whether a whole block's header lies there. Its mark and class are checked too.
    [[nodiscard]] bool is_block(std::uint64_t offset) const noexcept;

    /// The geometry of a new pool of `size_bytes`, at least 1 MiB.
    [[nodiscard]] static Geometry plan(std::uint64_t size_bytes) noexcept;
    /// NULL where `header` is that of a pool in a file of `size_bytes`, otherwise what is wrong.
    [[nodiscard]] static const char* check(const Header& header, std::uint64_t size_bytes) noexcept;
    /// Whether the variable parts that the runtime follows are in bounds; NULL or what is wrong. After recover().
    [[nodiscard]] const char* check_contents() const noexcept;

    /// The seed that binds the entries of a log to it and to the FASE that is running there.
    [[nodiscard]] std::uint64_t log_seed(std::uint32_t slot_number) const noexcept;

    /// Undoes every FASE that has not ended. May be cut off at any point, and begun again. NULL, or what is wrong:
    /// then nothing was changed.
    [[nodiscard]] const char* recover() const noexcept;

private:
    [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }

    std::byte* base_;
};

/// The checksum of an entry: `old_bytes` are entry.size bytes, none where it is a jump.
[[nodiscard]] std::uint64_t entry_checksum(const EntryHeader& entry, const void* old_bytes, std::uint64_t seed) noexcept;

/// Bytes that an entry takes in the log.
constexpr std::uint64_t entry_bytes(std::uint32_t size) noexcept
{
    return sizeof(EntryHeader) + (size == jump_mark ? 0 : (std::uint64_t{size} + 7) / 8 * 8);
}

}  // namespace stillpoint::undo
