#pragma once
// A copy as a medium, before it has its first block and its name, and where it leaves out what its base has: so that the pool in it can
// be examined.

#include <cstdint>
#include <string>

#include "media/block_medium.hpp"
#include "media/copied_file.hpp"

namespace stillpoint {

/// The copy lives as long, and takes no pass meanwhile.
class CopiedMedium final : public BlockMedium {
public:
    /// `path` is for messages. `base` is open for reading and has what the copy leaves out; -1: that cannot be read (io).
    CopiedMedium(const CopiedFile& copy, std::string path, int base) : copy_(copy), path_(std::move(path)), base_(base) {}
    /// For writing too: what is written becomes durable with CopiedFile::finish().
    CopiedMedium(CopiedFile& copy, std::string path) : copy_(copy), changed_(&copy), path_(std::move(path)) {}

    [[nodiscard]] std::string_view path() const noexcept override { return path_; }
    [[nodiscard]] Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return copy_.size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return "read only: an unfinished copy"; }
    [[nodiscard]] MediumCounters counters() const noexcept override { return {}; }
    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;

private:
    [[nodiscard]] Result<void> read_block(std::uint64_t offset, std::span<std::byte> destination) const;
    [[nodiscard]] Result<void> read_base(std::uint64_t offset, std::span<std::byte> destination) const;

    const CopiedFile& copy_;
    CopiedFile* changed_ = nullptr;  ///< nullptr: it is for reading only
    std::string path_;
    int base_ = -1;
    Durability durability_ = Durability::process;
};

}  // namespace stillpoint
