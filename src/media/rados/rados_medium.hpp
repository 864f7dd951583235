#pragma once
// A pool in Ceph's object store. The bytes lie in objects of 4 MiB; write() hands one operation for each object to the agent and returns,
// sync() waits until all replicas have them. The agent (tools/rados_agent) is a process of its own, since librados brings threads, locks
// and memory of its own, and this library replaces those functions in the program.

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "core/sync.hpp"
#include "media/block_medium.hpp"
#include "media/counter.hpp"
#include "media/fault_plan.hpp"
#include "media/open.hpp"
#include "media/rados/agent_link.hpp"
#include "media/rados/cluster_wait.hpp"
#include "os/futex.hpp"

namespace stillpoint {

class RadosMedium final : public BlockMedium {
public:
    /// `options.path` is a rados name; `size_bytes` of a pool that Mode::create makes. Errors: as create_medium() and open_medium(), and
    /// timed_out (the cluster does not answer), unsupported (no agent is installed).
    [[nodiscard]] static Result<std::unique_ptr<Medium>> open(const MediumOptions& options, rados::Mode mode, std::uint64_t size_bytes = 0);
    /// The process of this machine that owns the pool; 0: none, or it cannot be seen.
    [[nodiscard]] static int owner_process(const std::string& path);
    ~RadosMedium() override;

    [[nodiscard]] std::string_view path() const noexcept override { return path_; }
    [[nodiscard]] Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return size_bytes_; }
    [[nodiscard]] std::string_view mechanism() const noexcept override { return mechanism_.data(); }
    [[nodiscard]] MediumCounters counters() const noexcept override;

    [[nodiscard]] Result<void> resize(std::uint64_t size) override;
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override;
    [[nodiscard]] Result<void> publish() override;
    [[nodiscard]] Result<void> claim(std::uint64_t writer) override;
    [[nodiscard]] std::uint64_t last_writer() const noexcept override { return last_writer_; }
    void detach_after_fork() noexcept override;
    [[nodiscard]] Result<void> write(std::span<const BlockWrite> batch) override;
    [[nodiscard]] Result<void> sync() override;
    [[nodiscard]] Result<void> check_intact() override;

private:
    /// Bytes of one object.
    struct Piece {
        std::uint64_t object;
        std::uint32_t offset;
        std::uint32_t size;
    };
    struct ReadsInFlight;

    RadosMedium(const MediumOptions& options, rados::Mode mode, std::unique_ptr<rados::AgentLink> link, const rados::OpenReply& reply);
    [[nodiscard]] static Piece piece_at(std::uint64_t offset, std::uint64_t size) noexcept;
    [[nodiscard]] Result<void> check_writable() const;
    [[nodiscard]] tl::unexpected<Failure> freeze(const Failure& failure) noexcept;
    [[nodiscard]] tl::unexpected<Failure> freeze(int error, std::string_view action) noexcept;
    [[nodiscard]] Result<void> control(rados::Operation operation, std::uint64_t size);
    [[nodiscard]] Result<void> add(const Piece& piece, const std::byte* data);
    [[nodiscard]] Result<std::uint32_t> take_slot();
    [[nodiscard]] Result<void> hand_over(std::uint32_t open_index);
    [[nodiscard]] Result<void> finish_write(std::uint32_t slot);
    void await_writes_of(const Piece& piece) const noexcept;
    [[nodiscard]] Result<void> begin_read(ReadsInFlight& reads, const Piece& piece, std::byte* destination) const;

    std::string path_;
    std::unique_ptr<rados::AgentLink> link_;
    std::uint64_t size_bytes_;
    std::uint64_t last_writer_ = 0;
    Durability durability_ = Durability::power;
    bool is_writable_;
    bool is_frozen_ = false;
    bool is_detached_ = false;
    rados::ClusterWait wait_;
    std::array<char, 64> mechanism_{};

    /// Slots that are being filled, one for each object at a time; of the thread that writes.
    std::array<std::uint32_t, rados::write_slots> open_{};
    std::uint32_t open_count_ = 0;
    std::array<std::uint32_t, rados::write_slots> filled_bytes_{};
    /// Which slots the agent has. Guarded by lock_, since readers wait for those that write what they read.
    std::array<bool, rados::write_slots> in_flight_{};
    mutable os::FutexLock lock_;
    std::uint32_t next_ = 0;  ///< where the search for a free slot begins: the oldest

    /// One bit for each slot of reads that is free.
    mutable sync::Atomic<std::uint32_t> free_reads_{(1u << rados::read_slots) - 1};

    Counter bytes_written_;
    Counter write_calls_;
    Counter syncs_;
    mutable FaultPlan faults_;
};

}  // namespace stillpoint
