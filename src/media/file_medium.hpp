#pragma once
// The default medium: a regular file, written with explicit I/O, so that a bad disk or a full one is an
// error to report and never a signal (docs/internals/decisions/file-medium.md).

#include <array>
#include <memory>

#include "media/batch_runs.hpp"
#include "media/block_medium.hpp"
#include "media/counter.hpp"
#include "media/open.hpp"
#include "media/pool_file.hpp"
#include "os/io_ring.hpp"

namespace stillpoint {

/// How pages reach the file:
///   Durability::power    io_uring, many writes in flight, with O_DIRECT where the file system has it, so
///                        that sync() finds little to do. Without io_uring pwritev and the page cache.
///   Durability::process  into the page cache by pwritev: the kernel keeps what was written.
class FileMedium final : public BlockMedium {
public:
    /// `file` is open and locked. Falls back silently where the kernel refuses io_uring or O_DIRECT;
    /// mechanism() tells.
    FileMedium(PoolFile file, const MediumOptions& options);

    [[nodiscard]] std::string_view path() const noexcept override { return file_.path(); }
    [[nodiscard]] Durability durability() const noexcept override { return file_.durability(); }
    void set_durability(Durability durability) noexcept override { file_.set_durability(durability); }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return file_.size_bytes(); }
    [[nodiscard]] std::string_view mechanism() const noexcept override;
    [[nodiscard]] MediumCounters counters() const noexcept override;
    [[nodiscard]] Result<void> publish() override { return file_.publish(); }
    void begin_turn() noexcept override { file_.turns().begin(); }
    void end_turn() noexcept override { file_.turns().end(); }
    [[nodiscard]] Result<void> resize(std::uint64_t size) override { return resize_with_room(size, size); }
    [[nodiscard]] Result<void> resize_with_room(std::uint64_t size, std::uint64_t room_end) override;
    [[nodiscard]] Room room() const noexcept override { return file_.room(); }
    [[nodiscard]] Result<void> allocate(FileRange range) override { return file_.allocate(range); }
    void release(FileRange range) noexcept override { file_.release(range); }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;
    [[nodiscard]] Result<void> check_intact() override;
    void detach_after_fork() noexcept override;

private:
    using Vectors = std::array<iovec, BatchRuns::vectors_max>;
    static constexpr unsigned queue_depth = 64;
    /// One write in flight.
    struct Slot {
        Run run;
        Vectors vectors;
    };
    struct InFlight;

    void open_direct();
    void open_ring();
    [[nodiscard]] bool writes_direct() const noexcept;
    [[nodiscard]] int write_fd() const noexcept;
    [[nodiscard]] Result<void> write_one_by_one(std::span<const BlockWrite> batch);
    [[nodiscard]] Result<void> write_queued(std::span<const BlockWrite> batch);
    [[nodiscard]] Result<void> start_run(InFlight& flight, unsigned slot);
    [[nodiscard]] Result<void> end_run(Slot& slot, int result);
    [[nodiscard]] Result<void> finish_run(int fd, Run& run);

    PoolFile file_;
    os::Descriptor direct_;              ///< the file again, opened with O_DIRECT where that exists
    std::unique_ptr<os::IoRing> ring_;   ///< Where the kernel grants one.
    std::unique_ptr<std::array<Slot, queue_depth>> slots_;
    bool ring_is_usable_ = false;
    Counter bytes_written_;
    Counter write_calls_;
    Counter syncs_;
};

}  // namespace stillpoint
