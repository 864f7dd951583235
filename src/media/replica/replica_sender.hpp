#pragma once
// The thread that gives the replica what its stream has, and connects again where the replica was lost.

#include <atomic>
#include <memory>

#include "media/replica/replica_stream.hpp"
#include "media/replica/replicated_medium.hpp"

namespace stillpoint {

class ReplicatedMedium::Sender {
public:
    Sender(std::unique_ptr<Medium> remote, const ReplicaSettings& settings, ReplicatedMedium& owner)
        : remote_(std::move(remote)), settings_(settings), owner_(&owner)
    {
    }
    /// Errors: no_memory.
    [[nodiscard]] Result<void> start();
    /// Gives the replica what is left. False: it has taken nothing for `patience_ns`, and this object must not be deleted.
    [[nodiscard]] bool stop(std::uint64_t patience_ns) noexcept;
    void detach_after_fork() noexcept;
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }

    [[nodiscard]] ReplicaStream& stream() noexcept { return stream_; }
    /// Why nothing is given to the replica any more; valid where the stream is closed.
    [[nodiscard]] const Failure& failure() const noexcept { return failure_; }
    [[nodiscard]] std::uint64_t newest_epoch(std::uint64_t newest_here) const noexcept;

private:
    static constexpr std::size_t batch_max = 256;

    void run() noexcept;
    [[nodiscard]] Result<void> give_next();
    [[nodiscard]] Result<void> confirm();
    [[nodiscard]] Result<void> give_writes(std::span<const ReplicaEntry> entries);
    [[nodiscard]] Result<void> grow(const ReplicaEntry& entry);
    [[nodiscard]] bool connect_again(const Failure& reason) noexcept;
    void tell_figures() noexcept;
    void wait_quietly() noexcept;
    void pause(std::uint64_t ns) noexcept;
    void end_for_good(const Failure& failure) noexcept;

    std::unique_ptr<Medium> remote_;
    const ReplicaSettings settings_;
    os::FutexLock owner_lock_;
    ReplicatedMedium* owner_;  ///< nullptr: it has ended, and the replica had not got everything
    ReplicaStream stream_;
    os::ServiceThread thread_;
    std::atomic<bool> is_stopping_{false};
    std::atomic<bool> has_ended_{false};
    std::atomic<std::uint32_t> end_word_{0};  ///< futex
    Failure failure_;
    std::uint64_t told_ns_ = 0;
};

}  // namespace stillpoint
