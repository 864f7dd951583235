#pragma once
// The default medium: a regular file, written with explicit I/O, so that a bad disk or a full one is an
// error to report and never a signal (docs/decisions/file-medium.md).

#include <array>
#include <atomic>
#include <memory>

#include "media/batch_runs.hpp"
#include "media/medium.hpp"
#include "media/open.hpp"
#include "media/pool_file.hpp"

namespace stillpoint {

class FileMedium final : public Medium {
public:
    FileMedium(PoolFile file, const MediumOptions& options);

    [[nodiscard]] MediumKind kind() const noexcept override { return MediumKind::file; }
    [[nodiscard]] std::string_view path() const noexcept override { return file_.path(); }
    [[nodiscard]] Durability durability() const noexcept override { return file_.durability(); }
    void set_durability(Durability durability) noexcept override
    {
        file_.set_durability(durability);
    }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return file_.size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override;
    [[nodiscard]] MediumCounters counters() const noexcept override;
    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Result<void> read(std::uint64_t offset,
                                    std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;
    void detach_after_fork() noexcept override;

    // A file has no byte-addressable capability: its owner asks byte_addressable() first.
    [[nodiscard]] bool byte_addressable() const noexcept override { return false; }
    [[nodiscard]] const std::byte* mapping() const noexcept override { return nullptr; }
    void store(std::uint64_t offset, const void* data, std::size_t size) noexcept override;
    void store_nontemporal(std::uint64_t offset, const void* data,
                           std::size_t size) noexcept override;
    void write_back(std::uint64_t offset, std::size_t size) noexcept override;
    void fence() noexcept override;

private:
    using Vectors = std::array<iovec, BatchRuns::vectors_max>;

    [[nodiscard]] Result<void> write_one_by_one(std::span<const BlockWrite> batch);
    [[nodiscard]] Result<void> finish_run(int fd, Run run);
    void count_write(std::size_t bytes) noexcept;

    PoolFile file_;
    std::unique_ptr<Vectors> vectors_;
    std::atomic<std::uint64_t> bytes_written_{0};
    std::atomic<std::uint64_t> write_calls_{0};
    std::atomic<std::uint64_t> syncs_{0};
};

}  // namespace stillpoint
