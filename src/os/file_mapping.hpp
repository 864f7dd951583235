#pragma once
// A file mapped into an address range that is reserved for its growth: the address never changes.

#include <cstddef>
#include <cstdint>

namespace stillpoint::os {

class FileMapping {
public:
    enum class Mode : std::uint8_t {
        read_only,
        private_copy,   ///< stores stay in this process
        shared,         ///< stores reach the page cache
        shared_direct,  ///< MAP_SYNC: stores reach the medium itself; refused by other than DAX files
    };

    FileMapping() noexcept = default;
    FileMapping(const FileMapping&) = delete;
    FileMapping& operator=(const FileMapping&) = delete;
    ~FileMapping();

    /// Reserves address space for a file of up to `wanted` bytes, less where the process may not
    /// have that much (RLIMIT_AS, small address spaces), at least `needed`, never inside the window of durable
    /// addresses. It costs no memory. 0 or an errno.
    [[nodiscard]] int reserve(std::uint64_t wanted, std::uint64_t needed) noexcept;

    /// Maps the file's bytes [size(), size) after what is mapped already. A child made by fork
    /// does not inherit them: it could only do harm there. 0 or an errno: EOPNOTSUPP where shared_direct
    /// is refused, ENOMEM beyond the reservation. No malloc.
    [[nodiscard]] int extend(int fd, std::uint64_t size, Mode mode) noexcept;

    /// Maps [offset, +size) of the file at `address`, in place of what lies there; a child does not inherit it. 0 or an errno.
    [[nodiscard]] static int map_at(std::byte* address, int fd, std::uint64_t offset, std::uint64_t size, Mode mode) noexcept;

    /// Lays the pages of [address, +size), a shared mapping, into huge pages of the CPU; threads that touch them meanwhile wait. False:
    /// this kernel or file system cannot (Linux before 6.1, other than tmpfs). A piece that is not available now is passed over.
    [[nodiscard]] static bool collapse_to_huge_pages(std::byte* address, std::uint64_t size) noexcept;

    /// Puts a page of zeroes that belongs to no file where `address` lies, so that the instruction which met a
    /// lost page (SIGBUS) can go on. False if the address is not in the mapping. Async-signal-safe.
    [[nodiscard]] bool replace_page(void* address) noexcept;

    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_; }

    /// Whether the file behind `fd` (at least one page long) grants MAP_SYNC.
    [[nodiscard]] static bool grants_direct(int fd) noexcept;

    /// In a child after fork: forgets the range, which the child has not inherited.
    void abandon_after_fork() noexcept;

private:
    std::byte* base_ = nullptr;
    std::uint64_t size_ = 0;  ///< Mapped, in whole pages.
    std::uint64_t reserved_ = 0;
};

}  // namespace stillpoint::os
