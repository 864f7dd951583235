#pragma once
// The bytes of a simulated file, sparse and cheap to copy: pages are shared until one is written.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace stillpoint::sim {

/// Pages that were never written read as zeroes and take no memory. Copies share pages.
/// Threads: one at a time, over all copies of a map.
class PageMap {
public:
    PageMap() = default;
    explicit PageMap(std::uint64_t size_bytes) { resize(size_bytes); }

    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    /// A part that is cut off is forgotten; what is added reads as zeroes.
    void resize(std::uint64_t size_bytes);

    /// The range lies inside the size.
    void write(std::uint64_t offset, const void* data, std::size_t size);
    void read(std::uint64_t offset, void* destination, std::size_t size) const noexcept;
    /// Whether the bytes at `offset` are these.
    [[nodiscard]] bool equals(std::uint64_t offset, const void* data, std::size_t size) const noexcept;

    /// Digest of size and content: two maps that read alike have the same digest.
    [[nodiscard]] std::uint64_t digest() const noexcept;

    /// Calls visit(page_index, bytes) for each page that was written.
    template <class Visit>
    void for_each_page(Visit&& visit) const
    {
        for (std::size_t i = 0; i < chunks_.size(); ++i) {
            for (std::size_t j = 0; chunks_[i] != nullptr && j < pages_in_chunk; ++j) {
                if (const Slot& slot = chunks_[i]->slots[j]; slot.page != nullptr) {
                    visit(static_cast<std::uint64_t>(i * pages_in_chunk + j), slot.page->data());
                }
            }
        }
    }

private:
    using Page = std::array<std::byte, page_bytes>;
    struct Slot {
        std::shared_ptr<Page> page;
        mutable std::uint64_t digest = 0;  ///< 0: not computed
    };
    static constexpr std::size_t pages_in_chunk = 64;
    /// Shared too, so that a copy of a large file is not long.
    struct Chunk {
        std::array<Slot, pages_in_chunk> slots;
        mutable std::uint64_t digest = 0;  ///< 0: not computed
    };
    [[nodiscard]] std::byte* writable(std::uint64_t page_index);
    [[nodiscard]] const std::byte* readable(std::uint64_t page_index) const noexcept;

    std::vector<std::shared_ptr<Chunk>> chunks_;
    std::uint64_t size_bytes_ = 0;
};

}  // namespace stillpoint::sim
