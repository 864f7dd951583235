#pragma once
// Digests of the pages of a file: they tell whether two states of it are the same, and which pages differ, without the file of the
// earlier state.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "core/units.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint {

/// True if all bytes are zero; `size` is not 0.
[[nodiscard]] bool are_zero(const std::byte* bytes, std::size_t size) noexcept;

/// 8 bytes for each page of a file, 0 for a page of zeroes. Two pages that differ have one digest with a chance of 2^-64.
/// Memory: only what was set, in units of 512 pages. Not thread-safe.
class PageDigests {
public:
    PageDigests() = default;  ///< of an empty file
    /// Of a file of `bytes`, a multiple of page_bytes, all zero at first. Digests of different seeds cannot be compared.
    /// Errors: no_memory (no address space).
    [[nodiscard]] static Result<PageDigests> of_zeroes(std::uint64_t bytes, std::uint64_t seed);
    /// Reads the first `bytes` of `file`, which must not change meanwhile; holes are not read. Errors: no_memory, io, pool_truncated.
    [[nodiscard]] static Result<PageDigests> of_file(int file, const std::string& path, std::uint64_t bytes, std::uint64_t seed);

    [[nodiscard]] std::uint64_t pages() const noexcept { return pages_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    /// 0 for a page after the end too: what a file gains reads as zeroes.
    [[nodiscard]] std::uint64_t operator[](std::uint64_t page) const noexcept { return page < pages_ ? digests_[page] : 0; }
    void set(std::uint64_t page, std::uint64_t digest) noexcept
    {
        if (digests_[page] != digest) {  // A page of zeroes takes no memory.
            digests_[page] = digest;
        }
    }
    /// The digest of a page with these bytes.
    [[nodiscard]] std::uint64_t digest_of(const std::byte* page) const noexcept;
    /// Whether the pages from `first` on hold these bytes; `size` is a multiple of page_bytes.
    [[nodiscard]] bool match(std::uint64_t first, const std::byte* bytes, std::size_t size) const noexcept;
    /// One number for the whole state: length, and what each page holds.
    [[nodiscard]] std::uint64_t of_all() const noexcept;

private:
    os::ReservedArray<std::uint64_t> digests_;
    std::uint64_t pages_ = 0;
    std::uint64_t seed_ = 0;
};

}  // namespace stillpoint
