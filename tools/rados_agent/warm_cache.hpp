#pragma once
// The objects of a pool in memory, for a standby. Each has the version that the cluster gave it, and is compared again and again while
// another process owns the pool. Once this client owns the pool, and no other can write, a comparison of the version says for each object
// whether the copy is the object; reads are answered from such copies, and all others go to the cluster.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cluster.hpp"
#include "media/rados/agent_protocol.hpp"

namespace stillpoint::rados {

/// Lives until the process ends: an operation of its threads may wait for the cluster for as long. Threads: one calls everything.
class WarmCache {
public:
    /// Keeps the first `bytes_max` bytes of a pool. Errors: no_memory, io.
    [[nodiscard]] static Result<std::unique_ptr<WarmCache>> make(const Cluster& cluster, SharedState& shared, std::uint64_t bytes_max);
    WarmCache(const WarmCache&) = delete;
    WarmCache& operator=(const WarmCache&) = delete;

    /// Follows the pool, which has that many bytes now.
    void follow(std::uint64_t size_bytes);
    /// This client owns the pool: compares every copy with its object. Returns at once; until a copy is compared it is not used.
    void verify();

    /// Copies these bytes of an object, if its copy is known to be the object.
    [[nodiscard]] bool read(std::uint64_t object, Extent extent, std::byte* to);
    /// These bytes of an object are about to be written. After verify().
    void put(std::uint64_t object, Extent extent, const std::byte* from);
    /// Gives the memory back when nothing was read from it for a while.
    void drop_if_idle();

private:
    enum class State : std::uint8_t { empty, held, current };
    struct Entry {
        std::atomic<State> state{State::empty};
        std::uint64_t version = 0;  ///< 0: never read
    };
    /// Each thread has a connection of its own: librados notes the version of the last operation there.
    struct Worker {
        rados_ioctx_t io;
    };

    WarmCache(const Cluster& cluster, SharedState& shared, std::byte* memory, std::size_t capacity);
    [[nodiscard]] Result<void> start_workers();
    void follow_until_verified(const Worker& worker, std::size_t number);
    void look_at(const Worker& worker, std::size_t object);
    void verify_all(const Worker& worker);
    [[nodiscard]] bool is_current(const Worker& worker, std::size_t object) const;
    [[nodiscard]] std::size_t followed() const noexcept;
    [[nodiscard]] std::byte* copy_of(std::size_t object) const noexcept { return memory_ + object * object_bytes; }

    const Cluster& cluster_;
    SharedState& shared_;
    std::byte* memory_;
    std::vector<Entry> entries_;
    std::vector<Worker> workers_;
    std::atomic<std::uint64_t> size_bytes_{0};
    std::atomic<bool> is_verifying_{false};
    std::mutex mutex_;  ///< an entry becomes held only while is_verifying_ is false
    std::atomic<std::size_t> next_{0};
    std::atomic<std::int64_t> rereads_left_{0};
    bool is_dropped_ = false;
    std::uint64_t used_ns_ = 0;
};

}  // namespace stillpoint::rados
