#pragma once
// A pool's file for an offline look: reads come from the file, and what is written stays in memory. So recovery can run on a pool that is
// opened for reading, and the file is as it was.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "core/units.hpp"
#include "media/medium.hpp"

namespace stillpoint::breeze {

/// Threads: one, but for the members that store to the mapped bytes: any number, to different places.
class OverlayMedium final : public Medium {
public:
    using Progress = void (*)(std::uint64_t done, std::uint64_t total);
    /// `file` outlives it. `progress` may be null: it is told of the pages that map_at() reads.
    OverlayMedium(Medium& file, bool byte_addressable, Progress progress) noexcept
        : file_(file), byte_addressable_(byte_addressable), progress_(progress), durability_(file.durability())
    {
    }

    [[nodiscard]] std::string_view path() const noexcept override { return file_.path(); }
    [[nodiscard]] Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return file_.size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return "copy in memory"; }
    [[nodiscard]] MediumCounters counters() const noexcept override { return {}; }
    /// Errors: unsupported, unless it is the present size.
    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override { return {}; }
    [[nodiscard]] bool byte_addressable() const noexcept override { return byte_addressable_; }
    [[nodiscard]] const std::byte* mapping() const noexcept override { return nullptr; }
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept override;
    void store_nontemporal(std::uint64_t offset, const void* data, std::size_t size) noexcept override { store(offset, data, size); }
    void write_back(std::uint64_t, std::size_t) noexcept override {}
    void fence() noexcept override {}
    /// A copy of these bytes, which store() changes from then on. Errors: no_memory, io.
    [[nodiscard]] Result<void> map_at(std::byte* address, std::uint64_t offset, std::uint64_t size) override;

private:
    using Page = std::array<std::byte, page_bytes>;
    Medium& file_;
    bool byte_addressable_;
    Progress progress_;
    Durability durability_;
    std::map<std::uint64_t, std::unique_ptr<Page>> written_;  ///< by number of the page
    std::byte* mapped_ = nullptr;
    std::uint64_t mapped_offset_ = 0;
    std::uint64_t mapped_bytes_ = 0;
};

}  // namespace stillpoint::breeze
