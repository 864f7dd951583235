#pragma once
// Does what the program's requests say: reads and writes of objects, changes of the head, renewals of the lease.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "cluster.hpp"
#include "held_writes.hpp"
#include "media/rados/agent_protocol.hpp"
#include "os/descriptor.hpp"
#include "ownership.hpp"
#include "warm_cache.hpp"

namespace stillpoint::rados {

/// Threads: one calls everything; completions come in a thread of librados.
class Service {
public:
    Service(const Cluster& cluster, Ownership& ownership, SharedState& shared, std::uint32_t lease_ms, WarmCache* cache = nullptr);

    /// Begins the request in a slot. False: it was malformed, and the agent ends.
    [[nodiscard]] bool begin(std::uint32_t slot);
    /// Renews the lease if that is due. Returns how long until it is again.
    [[nodiscard]] std::uint64_t renew_in_ns();
    /// Sends again what a full cluster has refused, if that is due. Returns how long until it is again. False: as begin().
    [[nodiscard]] bool send_held(std::uint64_t& wait_ns);
    /// Readable where a write was refused: send_held() has something to do.
    [[nodiscard]] int refused() const noexcept { return refused_.get(); }
    /// Whether the program has asked to close the pool.
    [[nodiscard]] bool is_closing() const noexcept { return is_closing_; }
    /// Waits until no operation is under way.
    void drain();
    /// Ends the request to close.
    void end_closing();

private:
    struct Call {
        Service* service;
        std::uint32_t slot;     ///< no_slot: a renewal
        Operation operation;
        std::uint64_t sent_ns;
        std::uint32_t size;     ///< of a read
        bool renews;
        bool waits_for_room;  ///< where the cluster is full; else that is an error
    };
    static constexpr std::uint32_t no_slot = slot_count;

    void begin_read(std::uint32_t slot, const SlotRequest& request);
    void begin_write(std::uint32_t slot, const SlotRequest& request);
    void send_write(std::uint32_t slot, const SlotRequest& request);
    void begin_change(std::uint32_t slot, const SlotRequest& request);
    void hand_over(const WriteOp& op, std::uint64_t object, const Call& call);
    static void completed(rados_completion_t completion, void* context);
    void end(const Call& call, int result);
    void end_write(const Call& call, int result);
    void note_outcome(const Call& call, int result);
    void finish_slot(std::uint32_t slot);
    void lose(int error);

    const Cluster& cluster_;
    Ownership& ownership_;
    SharedState& shared_;
    WarmCache* cache_;  ///< of what was a standby; nullptr: none
    std::uint64_t lease_ns_;
    std::uint64_t renewed_ns_;  ///< when the last renewal was sent
    bool is_closing_ = false;
    std::mutex mutex_;
    std::condition_variable drained_;
    std::uint64_t under_way_ = 0;
    HeldWrites writes_;  ///< under mutex_
    std::uint64_t sent_again_ns_ = 0;
    os::Descriptor refused_;  ///< an eventfd
};

}  // namespace stillpoint::rados
