#pragma once
// How a process becomes the owner of a pool, stays it and ends it.
//
// The owner has a lock with a lease on the pool's first object, and its address stands in the head. Another process takes over only when
// the lease has ended, when this machine knows that the owner is dead, or when it is told to; in each case the old owner's client goes on
// the cluster's block list first. So a pool has one writer even where clocks differ and the old owner is only paused: the lease decides
// when another process may try, the block list decides which one can write. Every write of the first object, which has the commit records,
// also compares the head and renews the lock, in the same operation.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "cluster.hpp"
#include "media/rados/agent_protocol.hpp"

namespace stillpoint::rados {

class Ownership {
public:
    Ownership(const Cluster& cluster, const OpenRequest& request);

    /// Does what the request says. `step` is told what is being done, for the message of a time-out. Errors: pool_missing, pool_exists,
    /// pool_locked, those of Cluster.
    [[nodiscard]] Result<void> take(const std::function<void(const char*)>& step);
    /// Whether there is such a pool, whichever process has it. Errors: as take().
    [[nodiscard]] Result<void> look();
    /// One attempt of a standby, after look(): false while another process has the pool; head() is then that one's. Errors: as take().
    [[nodiscard]] Result<bool> try_take_free(const std::function<void(const char*)>& step);
    /// The head as it will be once every operation handed over so far has happened.
    [[nodiscard]] const Head& head() const noexcept { return head_; }
    [[nodiscard]] bool has_lock() const noexcept { return lock_type_ != LockType::none; }
    [[nodiscard]] bool is_owner() const noexcept { return lock_type_ == LockType::exclusive; }
    /// The head's, before this process took the pool.
    [[nodiscard]] std::uint64_t last_writer() const noexcept { return last_writer_; }
    /// When the operation that took the lock was sent, on the monotonic clock.
    [[nodiscard]] std::uint64_t taken_ns() const noexcept { return taken_ns_; }

    /// Adds what makes an operation on the first object happen only if this process still is the owner, and renews its lease.
    void guard(const WriteOp& op) const;
    /// Adds a change of the head, after guard().
    void change(const WriteOp& op, const Head& head);
    /// Gives the lock back, once no operation is under way; removes a pool that was never published.
    void release();

private:
    [[nodiscard]] Result<void> note_address();
    [[nodiscard]] bool is_missing(const HeadState& state) const;
    [[nodiscard]] tl::unexpected<Failure> missing() const;
    [[nodiscard]] Result<bool> try_once(const std::function<void(const char*)>& step);
    /// This machine knows that program and agent of the owner have ended.
    [[nodiscard]] bool owner_is_dead(const HeadState& state) const;
    [[nodiscard]] Result<bool> make(const HeadState& state);
    [[nodiscard]] Result<bool> take_existing(const HeadState& state, const std::function<void(const char*)>& step);
    [[nodiscard]] Result<void> remove_leftover(std::uint64_t size_bytes);
    [[nodiscard]] Result<bool> refuse_or_wait(const HeadState& state);
    [[nodiscard]] Result<void> block_last_owner(const HeadState& state, const std::function<void(const char*)>& step) const;
    [[nodiscard]] Result<bool> outcome_of(int error, const Head& next);
    [[nodiscard]] std::string lock_call() const;
    [[nodiscard]] Head next_head(const HeadState& state) const;

    const Cluster& cluster_;
    const OpenRequest& request_;
    Identity own_;
    std::string address_;
    LockType lock_type_ = LockType::none;
    Head head_;
    std::string head_text_;
    std::uint64_t begun_ns_;
    std::uint64_t taken_ns_ = 0;
    std::uint64_t last_writer_ = 0;
};

}  // namespace stillpoint::rados
