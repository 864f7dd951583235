#pragma once
// The memory that the program reads and writes: the medium's own where it is written by stores, otherwise private memory whose lines are
// handed to the medium at checkpoints (docs/internals/decisions/respct-on-files.md). The tables in front of the heap are private in both.

#include <cstdint>

#include "core/result.hpp"
#include "pool/pool.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::respct {

class ImageMemory {
public:
    /// Maps the present image at the pool's base address; `heap_offset` bytes of it are private and zero. Where the medium is not
    /// mapped the rest is zero too, and is to be loaded; otherwise it is a private copy of the medium until share(). Errors: window_taken,
    /// no_memory, io.
    [[nodiscard]] Result<void> map(const Pool& pool, std::uint64_t heap_offset);
    /// Maps the medium itself in place of the copy, which is lost: stores are the medium's from here on. Only where in_place().
    /// Errors: no_memory, io.
    [[nodiscard]] Result<void> share(const Pool& pool);
    /// Maps what Pool::grow has appended. Errors: no_memory, io.
    [[nodiscard]] Result<void> extend(const Pool& pool, std::uint64_t image_bytes);
    /// In a child made by fork: a private copy in place of what it did not inherit. Before the medium is detached.
    void make_private_after_fork(const Pool& pool) noexcept;

    [[nodiscard]] std::byte* base() const noexcept { return memory_.base(); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return memory_.bytes(); }
    [[nodiscard]] bool in_place() const noexcept { return in_place_; }
    /// The bytes in front of the medium's own memory.
    [[nodiscard]] std::uint64_t private_bytes() const noexcept { return heap_offset_; }

private:
    using MapAt = Result<void> (Medium::*)(std::byte* address, std::uint64_t offset, std::uint64_t size);
    [[nodiscard]] Result<void> map_segments(const Pool& pool, std::uint64_t from_byte, MapAt map_at);

    Shadow memory_;
    std::uint64_t heap_offset_ = 0;
    bool in_place_ = false;
    bool shared_ = false;  ///< in place, and no copy any more
};

}  // namespace stillpoint::respct
