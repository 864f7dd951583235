#pragma once
// Handle directory: names of durable objects, a fixed open-addressing table inside the image.
// Callers hold a lock of their own and are inside a FASE; the directory does neither.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "pool/directory_layout.hpp"
#include "pool/image.hpp"

namespace stillpoint {

struct DirectoryEntry {
    std::string_view handle;  ///< points into the table: valid until the next insert or erase
    std::uintptr_t address;
    std::uint64_t size_bytes;
};

class Directory {
public:
    static constexpr std::size_t handle_bytes_max = 79;

    /// `base` is the mapped image. The table is used in place; nothing is copied.
    Directory(std::byte* base, const ImageGeometry& geometry) noexcept;

    /// The most names that it can hold.
    [[nodiscard]] std::uint64_t capacity() const noexcept { return geometry_.directory_capacity; }
    [[nodiscard]] static bool valid_handle(std::string_view handle) noexcept;
    [[nodiscard]] std::optional<DirectoryEntry> find(std::string_view handle) const noexcept;
    /// Errors: directory_full; invalid_argument (bad handle, or it exists already).
    [[nodiscard]] Result<void> insert(std::string_view handle, std::uintptr_t address, std::uint64_t size_bytes);
    /// Gives an existing name to another object. Errors: handle_missing.
    [[nodiscard]] Result<void> replace(std::string_view handle, std::uintptr_t address, std::uint64_t size_bytes);
    /// Errors: handle_missing.
    [[nodiscard]] Result<void> erase(std::string_view handle);
    /// Finds the name of an address (a walk over the table).
    [[nodiscard]] std::optional<DirectoryEntry> find_by_address(std::uintptr_t address) const noexcept;

    /// Calls visit(entry) for each; a bool result of false stops.
    template <class Visit>
    void for_each(Visit&& visit) const;

    /// Every invariant: hashes in their probe runs, names terminated, addresses inside the heap of
    /// an image of `image_bytes` bytes at the header's base address (so that an image mapped elsewhere
    /// can be checked), no name twice, free entries zero. Call check_image() first. Errors: pool_corrupt, naming entry and field.
    /// With `findings` it tells each and returns ok.
    [[nodiscard]] Result<void> check(std::uint64_t image_bytes, Findings* findings = nullptr) const;

private:
    [[nodiscard]] Result<void> check_record(std::uint64_t slot, std::uint64_t image_bytes) const;
    [[nodiscard]] layout::DirectoryRecord* records() const noexcept;
    [[nodiscard]] static DirectoryEntry entry_of(const layout::DirectoryRecord& record) noexcept;
    [[nodiscard]] std::uint64_t home_of(std::uint64_t hash) const noexcept;
    [[nodiscard]] std::uint64_t next_slot(std::uint64_t slot) const noexcept;
    /// The record of `handle`, or nullptr.
    [[nodiscard]] layout::DirectoryRecord* locate(std::string_view handle) const noexcept;

    std::byte* base_;
    ImageGeometry geometry_;
};

template <class Visit>
void Directory::for_each(Visit&& visit) const
{
    for (std::uint64_t slot = 0; slot < geometry_.directory_capacity; ++slot) {
        const layout::DirectoryRecord& record = records()[slot];
        if (record.hash == 0) {
            continue;
        }
        if constexpr (std::is_convertible_v<std::invoke_result_t<Visit&, DirectoryEntry>, bool>) {
            if (!visit(entry_of(record))) {
                return;
            }
        } else {
            visit(entry_of(record));
        }
    }
}

}  // namespace stillpoint
