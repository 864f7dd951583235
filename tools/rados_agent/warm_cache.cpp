#include "warm_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <thread>

#include "os/clock.hpp"

namespace stillpoint::rados {

namespace {

constexpr std::size_t worker_count = 6;
/// A round looks at every object once. Rounds, looks of one thread, and objects that are read again have a least distance or a limit for
/// each round, so that a standby takes a small part of the cluster.
constexpr std::chrono::milliseconds between_rounds{1000};
constexpr std::chrono::milliseconds between_looks{2};
constexpr std::int64_t rereads_of_a_round = 16;
constexpr std::uint64_t idle_ns = 60'000'000'000;

struct ReadOpDeleter {
    void operator()(void* op) const noexcept { rados_release_read_op(op); }
};
using ReadOp = std::unique_ptr<void, ReadOpDeleter>;

}  // namespace

Result<std::unique_ptr<WarmCache>> WarmCache::make(const Cluster& cluster, SharedState& shared, std::uint64_t bytes_max)
{
    const std::size_t capacity = std::min(bytes_max, file_bytes_max) / object_bytes;
    void* const memory = mmap(nullptr, capacity * object_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "{}: no address space for {} bytes of it; say a smaller --memory", cluster.title(),
                    capacity * object_bytes);
    }
    std::unique_ptr<WarmCache> cache(new WarmCache(cluster, shared, static_cast<std::byte*>(memory), capacity));
    if (auto started = cache->start_workers(); !started) {
        return pass_on(started.error());
    }
    return cache;
}

WarmCache::WarmCache(const Cluster& cluster, SharedState& shared, std::byte* memory, std::size_t capacity)
    : cluster_(cluster), shared_(shared), memory_(memory), entries_(capacity)
{
}

Result<void> WarmCache::start_workers()
{
    for (std::size_t number = 0; number < worker_count; ++number) {
        rados_ioctx_t io = nullptr;
        if (const int error = rados_ioctx_create2(rados_ioctx_get_cluster(cluster_.io()), rados_ioctx_get_id(cluster_.io()), &io);
            error != 0) {
            return pass_on(cluster_.failure_of(error, "following the pool"));
        }
        workers_.push_back({io});
    }
    for (std::size_t number = 0; number < worker_count; ++number) {
        std::thread([this, number] {
            follow_until_verified(workers_[number], number);
            verify_all(workers_[number]);
        }).detach();
    }
    return {};
}

std::size_t WarmCache::followed() const noexcept
{
    const std::uint64_t size = size_bytes_.load(std::memory_order_acquire);
    return std::min<std::size_t>(entries_.size(), (size + object_bytes - 1) / object_bytes);
}

void WarmCache::follow(std::uint64_t size_bytes)
{
    size_bytes_.store(size_bytes, std::memory_order_release);
    shared_.wanted_bytes.store(followed() * object_bytes, std::memory_order_relaxed);
}

void WarmCache::follow_until_verified(const Worker& worker, std::size_t number)
{
    while (!is_verifying_.load(std::memory_order_acquire)) {
        const auto begun = std::chrono::steady_clock::now();
        const std::size_t count = followed();
        if (number == 0) {
            rereads_left_.store(rereads_of_a_round, std::memory_order_relaxed);
        }
        // Each worker has every worker_count-th object; a round begins elsewhere each time, so that every object has its turn.
        const std::size_t turns = (count + worker_count - 1) / worker_count;
        const std::size_t first = turns != 0 ? next_.fetch_add(1, std::memory_order_relaxed) * 7 % turns : 0;
        for (std::size_t turn = 0; turn < turns && !is_verifying_.load(std::memory_order_acquire); ++turn) {
            const std::size_t object = (first + turn) % turns * worker_count + number;
            if (object < count) {
                look_at(worker, object);
                std::this_thread::sleep_for(between_looks);
            }
        }
        while (std::chrono::steady_clock::now() - begun < between_rounds && !is_verifying_.load(std::memory_order_acquire)) {
            std::this_thread::sleep_for(between_looks * 5);
        }
    }
}

bool WarmCache::is_current(const Worker& worker, std::size_t object) const
{
    const ReadOp op(rados_create_read_op());
    rados_read_op_assert_version(op.get(), entries_[object].version);
    rados_read_op_stat(op.get(), nullptr, nullptr, nullptr);
    return rados_read_op_operate(op.get(), worker.io, cluster_.object_name(object).c_str(), 0) == 0;
}

/// Reads the object unless the copy is as it is now.
void WarmCache::look_at(const Worker& worker, std::size_t object)
{
    Entry& entry = entries_[object];
    if (entry.state.load(std::memory_order_acquire) == State::held &&
        (is_current(worker, object) || rereads_left_.fetch_sub(1, std::memory_order_relaxed) <= 0)) {
        return;
    }
    {
        // Once verification has begun its bytes are not this thread's any more.
        const std::lock_guard guard(mutex_);
        if (is_verifying_.load(std::memory_order_relaxed)) {
            return;
        }
        entry.state.store(State::empty, std::memory_order_release);
    }
    const ReadOp op(rados_create_read_op());
    std::size_t got = 0;
    int error = 0;
    rados_read_op_read(op.get(), 0, object_bytes, reinterpret_cast<char*>(copy_of(object)), &got, &error);
    if (rados_read_op_operate(op.get(), worker.io, cluster_.object_name(object).c_str(), 0) != 0 || error != 0 || got > object_bytes) {
        return;  // One that was never written, for the most part.
    }
    const std::uint64_t version = rados_get_last_version(worker.io);
    std::memset(copy_of(object) + got, 0, object_bytes - got);
    const std::lock_guard guard(mutex_);
    if (!is_verifying_.load(std::memory_order_relaxed)) {
        shared_.warm_bytes.fetch_add(entry.version == 0 ? object_bytes : 0, std::memory_order_relaxed);
        entry.version = version;
        entry.state.store(State::held, std::memory_order_release);
    }
}

void WarmCache::verify()
{
    next_.store(0, std::memory_order_relaxed);
    const std::lock_guard guard(mutex_);
    used_ns_ = os::monotonic_ns();
    is_verifying_.store(true, std::memory_order_release);
}

void WarmCache::verify_all(const Worker& worker)
{
    for (std::size_t object = 0; (object = next_.fetch_add(1, std::memory_order_relaxed)) < entries_.size();) {
        Entry& entry = entries_[object];
        if (entry.state.load(std::memory_order_acquire) != State::held) {
            continue;
        }
        // A write of this client that the cluster has done before this makes the copy useless; one that it does later was put there.
        State expected = State::held;
        entry.state.compare_exchange_strong(expected, is_current(worker, object) ? State::current : State::empty,
                                            std::memory_order_acq_rel);
    }
}

bool WarmCache::read(std::uint64_t object, Extent extent, std::byte* to)
{
    if (object >= entries_.size() || entries_[object].state.load(std::memory_order_acquire) != State::current) {
        return false;
    }
    used_ns_ = os::monotonic_ns();
    std::memcpy(to, copy_of(object) + extent.offset, extent.size);
    return true;
}

void WarmCache::put(std::uint64_t object, Extent extent, const std::byte* from)
{
    if (object < entries_.size() && entries_[object].state.load(std::memory_order_acquire) != State::empty) {
        std::memcpy(copy_of(object) + extent.offset, from, extent.size);
    }
}

void WarmCache::drop_if_idle()
{
    if (is_dropped_ || os::monotonic_ns() - used_ns_ < idle_ns || next_.load(std::memory_order_relaxed) < entries_.size()) {
        return;
    }
    is_dropped_ = true;
    for (Entry& entry : entries_) {
        entry.state.store(State::empty, std::memory_order_release);
    }
    // Not unmapped: a thread may still wait for a read that the cluster does not answer.
    madvise(memory_, entries_.size() * object_bytes, MADV_DONTNEED);
}

}  // namespace stillpoint::rados
