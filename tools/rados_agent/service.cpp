#include "service.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.hpp"

namespace stillpoint::rados {

namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t for_ever_ns = 3'600'000 * ns_per_ms;
constexpr std::uint64_t send_again_ns = 200 * ns_per_ms;

void wake(std::atomic<std::uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

/// Whether an operation, perhaps one that is guarded by the owner's lock, failed because another process owns the pool.
bool means_loss(int error, bool is_guarded)
{
    return error == -ESHUTDOWN || (is_guarded && (error == -ECANCELED || error == -EBUSY || error == -ENODATA || error == -ENOENT));
}

/// A full cluster, or a full Ceph pool.
bool means_no_room(int error) { return error == -ENOSPC || error == -EDQUOT; }

}  // namespace

Service::Service(const Cluster& cluster, Ownership& ownership, SharedState& shared, std::uint32_t lease_ms, WarmCache* cache)
    : cluster_(cluster), ownership_(ownership), shared_(shared), cache_(cache), lease_ns_(lease_ms * ns_per_ms),
      renewed_ns_(ownership.taken_ns()), refused_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    shared_.lease_until_ns.store(ownership.is_owner() ? renewed_ns_ + lease_ns_ : 0, std::memory_order_release);
}

bool Service::begin(std::uint32_t slot)
{
    SlotRequest request;
    copy_request(shared_.slots[slot], request);
    if (fault_in(request, slot, ownership_.head().size_bytes) != nullptr) {
        return false;
    }
    switch (request.operation) {
    case Operation::read: begin_read(slot, request); return true;
    case Operation::write:
        if (!ownership_.is_owner()) {
            return false;
        }
        begin_write(slot, request);
        return true;
    case Operation::resize:
    case Operation::publish:
    case Operation::claim:
        if (!ownership_.is_owner()) {
            return false;
        }
        begin_change(slot, request);
        return true;
    case Operation::close: is_closing_ = true; return true;
    case Operation::none: break;
    }
    return false;
}

void Service::begin_read(std::uint32_t slot, const SlotRequest& request)
{
    const Extent extent = request.extents[0];
    if (cache_ != nullptr && cache_->read(request.object, extent, data_of(shared_, slot))) {
        shared_.slots[slot].outcome.code = 0;
        finish_slot(slot);
        return;
    }
    auto* const call = new Call{this, slot, request.operation, os::monotonic_ns(), extent.size, false, false};
    {
        const std::lock_guard guard(mutex_);
        ++under_way_;
    }
    rados_completion_t completion = nullptr;
    rados_aio_create_completion2(call, &completed, &completion);
    const int error = rados_aio_read(cluster_.io(), cluster_.object_name(request.object).c_str(), completion,
                                     reinterpret_cast<char*>(data_of(shared_, slot)), extent.size, extent.offset);
    if (error != 0) {
        const Call failed = *call;
        delete call;
        end(failed, error);
    }
    rados_aio_release(completion);
}

void Service::begin_write(std::uint32_t slot, const SlotRequest& request)
{
    {
        const std::lock_guard guard(mutex_);
        if (!writes_.begin(slot, request.object)) {
            return;
        }
    }
    send_write(slot, request);
}

void Service::send_write(std::uint32_t slot, const SlotRequest& request)
{
    const WriteOp op = new_write_op();
    const bool is_first = request.object == 0;
    if (is_first) {
        ownership_.guard(op);
    }
    const char* data = reinterpret_cast<const char*>(data_of(shared_, slot));
    for (std::uint32_t i = 0; i < request.extent_count; ++i) {
        if (cache_ != nullptr) {
            cache_->put(request.object, request.extents[i], reinterpret_cast<const std::byte*>(data));
        }
        rados_write_op_write(op.get(), data, request.extents[i].size, request.extents[i].offset);
        data += request.extents[i].size;
    }
    // A new pool is refused where it finds no room.
    hand_over(op, request.object, {this, slot, request.operation, os::monotonic_ns(), 0, is_first, ownership_.head().is_published});
}

void Service::begin_change(std::uint32_t slot, const SlotRequest& request)
{
    const WriteOp op = new_write_op();
    ownership_.guard(op);
    Head head = ownership_.head();
    if (request.operation == Operation::resize) {
        head.size_bytes = request.size_bytes;
    } else if (request.operation == Operation::claim) {
        head.writer = request.size_bytes;
    } else {
        head.is_published = true;
    }
    ownership_.change(op, head);
    hand_over(op, 0, {this, slot, request.operation, os::monotonic_ns(), 0, true, false});
}

void Service::hand_over(const WriteOp& op, std::uint64_t object, const Call& call)
{
    auto* const kept = new Call(call);
    {
        const std::lock_guard guard(mutex_);
        ++under_way_;
    }
    rados_completion_t completion = nullptr;
    rados_aio_create_completion2(kept, &completed, &completion);
    // A full cluster refuses at once; without the flag librados would wait for room and say nothing.
    const int error = rados_aio_write_op_operate(op.get(), cluster_.io(), completion, cluster_.object_name(object).c_str(), nullptr,
                                                 LIBRADOS_OPERATION_FULL_TRY);
    if (error != 0) {
        delete kept;
        end(call, error);
    }
    rados_aio_release(completion);
}

void Service::completed(rados_completion_t completion, void* context)
{
    auto* const call = static_cast<Call*>(context);
    const Call copy = *call;
    delete call;
    copy.service->end(copy, rados_aio_get_return_value(completion));
}

void Service::end(const Call& call, int result)
{
    if (call.operation == Operation::read) {
        // Bytes that were never written are not there; the caller checks what it reads.
        const std::uint32_t got = result >= 0 ? std::min(static_cast<std::uint32_t>(result), call.size) : 0;
        if (result >= 0 || result == -ENOENT) {
            std::memset(data_of(shared_, call.slot) + got, 0, call.size - got);
            result = 0;
        }
    }
    if (result == 0 && call.renews && ownership_.is_owner()) {
        std::uint64_t until_ns = shared_.lease_until_ns.load(std::memory_order_relaxed);
        const std::uint64_t new_ns = call.sent_ns + lease_ns_;
        while (until_ns < new_ns && !shared_.lease_until_ns.compare_exchange_weak(until_ns, new_ns, std::memory_order_release)) {
        }
    }
    if (result < 0 && means_loss(result, call.renews)) {
        lose(result);
    }
    if (call.operation == Operation::write) {
        end_write(call, result);
    } else if (call.slot != no_slot) {
        note_outcome(call, result);
        finish_slot(call.slot);
    }
    const std::lock_guard guard(mutex_);
    --under_way_;
    drained_.notify_all();
}

/// Ends it, and others that have waited for it; or holds it, until there is room.
void Service::end_write(const Call& call, int result)
{
    const bool is_refused = call.waits_for_room && means_no_room(result);
    if (!is_refused) {
        note_outcome(call, result);
    }
    std::vector<std::uint32_t> ended;
    {
        const std::lock_guard guard(mutex_);
        ended = writes_.end(call.slot, is_refused);
        shared_.is_full.store(writes_.is_full() ? 1 : 0, std::memory_order_release);
    }
    if (is_refused) {
        static_cast<void>(eventfd_write(refused_.get(), 1));
    }
    for (const std::uint32_t slot : ended) {
        finish_slot(slot);
    }
}

void Service::note_outcome(const Call& call, int result)
{
    Outcome& outcome = shared_.slots[call.slot].outcome;
    if (result >= 0) {
        outcome.code = 0;
    } else if (shared_.is_lost.load(std::memory_order_acquire) != 0) {
        put_outcome(outcome, failure_in(shared_.loss));
    } else {
        put_outcome(outcome, cluster_.failure_of(result, call.operation == Operation::read ? "reading" : "writing"));
    }
}

void Service::finish_slot(std::uint32_t number)
{
    Slot& slot = shared_.slots[number];
    slot.state.store(static_cast<std::uint32_t>(SlotState::done), std::memory_order_release);
    wake(slot.state);
}

void Service::lose(int error)
{
    const std::lock_guard guard(mutex_);
    if (shared_.is_lost.load(std::memory_order_relaxed) != 0) {
        return;
    }
    put_outcome(shared_.loss,
                fail(SP_E_POOL_LOCKED, -error,
                     "another process has taken the pool, and this one was shut out: nothing that was not acknowledged before is "
                     "durable; start the program again to become the owner when that one has ended")
                    .value());
    shared_.is_lost.store(1, std::memory_order_release);
    wake(shared_.is_lost);
}

std::uint64_t Service::renew_in_ns()
{
    if (!ownership_.has_lock()) {
        return for_ever_ns;
    }
    if (cache_ != nullptr) {
        cache_->drop_if_idle();
    }
    const std::uint64_t every_ns = lease_ns_ / 3;
    const std::uint64_t now_ns = os::monotonic_ns();
    if (now_ns - renewed_ns_ >= every_ns && shared_.is_lost.load(std::memory_order_relaxed) == 0) {
        renewed_ns_ = now_ns;
        const WriteOp op = new_write_op();
        ownership_.guard(op);
        hand_over(op, 0, {this, no_slot, Operation::none, now_ns, 0, true, false});
    }
    return every_ns - std::min(every_ns, now_ns - renewed_ns_) + ns_per_ms;
}

bool Service::send_held(std::uint64_t& wait_ns)
{
    const std::uint64_t now_ns = os::monotonic_ns();
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(refused_.get(), &count));
    std::vector<std::uint32_t> again;
    {
        const std::lock_guard guard(mutex_);
        wait_ns = writes_.is_full() ? send_again_ns : for_ever_ns;
        if (now_ns - sent_again_ns_ >= send_again_ns && writes_.is_full()) {
            sent_again_ns_ = now_ns;
            again = writes_.take();
        }
    }
    for (const std::uint32_t slot : again) {
        SlotRequest request;
        copy_request(shared_.slots[slot], request);
        if (fault_in(request, slot, ownership_.head().size_bytes) != nullptr || request.operation != Operation::write) {
            return false;
        }
        send_write(slot, request);
    }
    return true;
}

void Service::drain()
{
    std::unique_lock lock(mutex_);
    drained_.wait(lock, [this] { return under_way_ == 0; });
}

void Service::end_closing()
{
    shared_.slots[control_slot].outcome.code = 0;
    finish_slot(control_slot);
}

}  // namespace stillpoint::rados
