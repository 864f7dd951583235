#pragma once
// A pool's file for a program that may not change it: reads come from the file, and what is written stays in memory. So a damaged pool
// can be put in order and recovered for one run, and the file is as it was.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "media/block_medium.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint {

/// Memory: a page of it for each page that was written.
class PrivateMedium final : public BlockMedium {
public:
    /// `file` is open for reading. Errors: no_memory (no address space).
    [[nodiscard]] static Result<std::unique_ptr<PrivateMedium>> over(std::unique_ptr<Medium> file);

    /// From here on nothing may pass for durable: write() and sync() fail with pool_read_only.
    void seal() noexcept { is_sealed_.store(true, std::memory_order_release); }

    [[nodiscard]] std::string_view path() const noexcept override { return file_->path(); }
    [[nodiscard]] Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return file_->size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return "read only: a copy in memory"; }
    [[nodiscard]] MediumCounters counters() const noexcept override { return {}; }
    /// Errors: pool_read_only, unless it is the present size.
    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    void detach_after_fork() noexcept override { file_->detach_after_fork(); }
    [[nodiscard]] std::uint64_t last_writer() const noexcept override { return file_->last_writer(); }
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;

private:
    explicit PrivateMedium(std::unique_ptr<Medium> file) noexcept : file_(std::move(file)), durability_(file_->durability()) {}
    [[nodiscard]] tl::unexpected<Failure> refusal() const;

    std::unique_ptr<Medium> file_;
    Durability durability_;
    os::ReservedArray<std::byte> written_;
    os::ReservedArray<std::atomic<std::uint8_t>> is_written_;  ///< by page
    std::atomic<bool> is_sealed_{false};
};

}  // namespace stillpoint
