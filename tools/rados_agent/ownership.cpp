#include "ownership.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "../stillpoint/output.hpp"
#include "os/clock.hpp"

namespace stillpoint::rados {

using tool::text_of;

namespace {

constexpr std::chrono::milliseconds between_attempts{20};
constexpr std::uint64_t ns_per_ms = 1'000'000;
/// An owner that this process was, or that ends at this moment, needs so long to give the lock back.
constexpr std::uint64_t end_wait_ns = 2'000 * ns_per_ms;
constexpr std::uint32_t reader_lease_ms = 30'000;

}  // namespace

Ownership::Ownership(const Cluster& cluster, const OpenRequest& request)
    : cluster_(cluster), request_(request), own_(own_identity(static_cast<std::uint64_t>(request.process))), begun_ns_(os::monotonic_ns())
{
}

std::string Ownership::lock_call() const
{
    const bool owns = lock_type_ != LockType::shared;
    return lock_message({.type = owns ? LockType::exclusive : LockType::shared,
                         .name = lock_name,
                         .cookie = lock_cookie,
                         .description = name_of(own_),
                         .lease_ms = owns ? request_.lease_ms : reader_lease_ms});
}

Result<void> Ownership::note_address()
{
    auto address = cluster_.address();
    if (!address) {
        return pass_on(address.error());
    }
    address_ = *address;
    return {};
}

Result<void> Ownership::look()
{
    if (auto noted = note_address(); !noted) {
        return noted;
    }
    const auto state = cluster_.read_head(true);
    if (!state) {
        return pass_on(state.error());
    }
    return is_missing(*state) ? Result<void>{missing()} : Result<void>{};
}

Result<bool> Ownership::try_take_free(const std::function<void(const char*)>& step)
{
    const auto state = cluster_.read_head(true);
    if (!state) {
        return pass_on(state.error());
    }
    if (is_missing(*state)) {
        return missing();
    }
    if (!state->lock.lockers.empty() && !owner_is_dead(*state)) {
        head_ = *state->head;
        return false;
    }
    return take_existing(*state, step);
}

/// There is none, or only what a creation left that ended before its end: the next one begins again.
bool Ownership::is_missing(const HeadState& state) const
{
    return !state.head || (!state.head->is_published && (state.lock.lockers.empty() || owner_is_dead(state) || request_.take_over != 0));
}

tl::unexpected<Failure> Ownership::missing() const
{
    return fail(SP_E_POOL_MISSING, 0, "{}: there is no such pool; check the name, `rados --pool {} ls` shows the objects", cluster_.title(),
                cluster_.place().ceph_pool);
}

Result<void> Ownership::take(const std::function<void(const char*)>& step)
{
    if (auto noted = note_address(); !noted) {
        return noted;
    }
    for (;;) {
        step("reading the pool's first object");
        const auto done = try_once(step);
        if (!done) {
            return pass_on(done.error());
        }
        if (*done) {
            return {};
        }
        std::this_thread::sleep_for(between_attempts);
    }
}

/// False: another attempt may do.
Result<bool> Ownership::try_once(const std::function<void(const char*)>& step)
{
    const bool only_reads = request_.mode == Mode::read || request_.mode == Mode::owner;
    const auto state = cluster_.read_head(!only_reads);
    if (!state) {
        return pass_on(state.error());
    }
    if (request_.mode == Mode::create) {
        if (!state->head) {
            return make(*state);
        }
        if (state->head->is_published) {
            return fail(SP_E_POOL_EXISTS, 0, "{} exists already: choose another name, or remove it first", cluster_.title());
        }
        return take_existing(*state, step);
    }
    if (is_missing(*state)) {
        return missing();
    }
    if (only_reads) {
        head_ = *state->head;
        last_writer_ = head_.writer;
        return true;
    }
    return take_existing(*state, step);
}

Head Ownership::next_head(const HeadState& state) const
{
    Head next = state.head.value_or(Head{});
    next.object_bytes = object_bytes;
    if (request_.mode == Mode::create) {
        // A creation that was cut off may have left more objects: the head says how many until they are removed.
        next.size_bytes = std::max(request_.size_bytes, next.size_bytes);
        next.is_published = false;
    }
    const bool owns = request_.mode != Mode::read_locked;
    next.generation += owns ? 1 : 0;
    if (owns && request_.writer == 0) {
        next.writer = 0;  // One with a number claims the pool before it changes a byte.
    }
    next.address = owns ? address_ : std::string{};
    next.owner = owns ? own_ : Identity{};
    return next;
}

bool Ownership::owner_is_dead(const HeadState& state) const
{
    // The program that asks may be the owner itself, whose agent has ended.
    const Identity& owner = state.head->owner;
    const bool is_own = owner.process == own_.process && owner.started == own_.started;
    const Life program = life_of_program(owner, own_);
    return state.lock.type == LockType::exclusive && (program == Life::dead || (is_own && program == Life::alive)) &&
           life_of_agent(owner, own_) == Life::dead;
}

Result<bool> Ownership::make(const HeadState& state)
{
    const Head next = next_head(state);
    const WriteOp op = new_write_op();
    rados_write_op_create(op.get(), LIBRADOS_CREATE_EXCLUSIVE, nullptr);
    lock_type_ = LockType::exclusive;
    add_lock_call(op, "lock", lock_call());
    add_head(op, next.text());
    taken_ns_ = os::monotonic_ns();
    const int error = cluster_.operate(op, 0);
    return outcome_of(error == -EEXIST ? -ECANCELED : error, next);
}

Result<bool> Ownership::take_existing(const HeadState& state, const std::function<void(const char*)>& step)
{
    if (!state.lock.lockers.empty()) {
        const bool both_read = request_.mode == Mode::read_locked && state.lock.type == LockType::shared;
        if (!both_read && !owner_is_dead(state) && request_.take_over == 0) {
            return refuse_or_wait(state);
        }
    }
    if (!state.head->address.empty()) {
        if (auto blocked = block_last_owner(state, step); !blocked) {
            return pass_on(blocked.error());
        }
    }
    step("taking the pool's lock");
    const bool shares = request_.mode == Mode::read_locked;
    if (!shares || state.lock.type == LockType::exclusive) {
        // Each in an operation of its own: a call of the class sees what earlier operations did, not earlier parts of its own.
        for (const Locker& locker : state.lock.lockers) {
            const WriteOp breaking = new_write_op();
            add_comparison(breaking, state.text);
            add_lock_call(breaking, "break_lock", break_message(lock_name, locker));
            if (const int error = cluster_.operate(breaking, 0); error != 0 && error != -ENOENT) {
                return outcome_of(error, *state.head);
            }
        }
    }
    const Head next = next_head(state);
    const WriteOp op = new_write_op();
    add_comparison(op, state.text);
    lock_type_ = shares ? LockType::shared : LockType::exclusive;
    add_lock_call(op, "lock", lock_call());
    add_head(op, next.text());
    if (request_.mode == Mode::create) {
        rados_write_op_truncate(op.get(), 0);
    }
    taken_ns_ = os::monotonic_ns();
    auto taken = outcome_of(cluster_.operate(op, 0), next);
    last_writer_ = state.head->writer;
    if (taken && *taken && request_.mode == Mode::create) {
        if (auto removed = remove_leftover(state.head->size_bytes); !removed) {
            return pass_on(removed.error());
        }
    }
    return taken;
}

/// Objects of a creation that was cut off, all but the first: bytes that a pool has never written must read as zeroes when it grows.
Result<void> Ownership::remove_leftover(std::uint64_t size_bytes)
{
    if (auto removed = cluster_.remove_objects(size_bytes, false); !removed) {
        return removed;
    }
    if (head_.size_bytes == request_.size_bytes) {
        return {};
    }
    const WriteOp op = new_write_op();
    guard(op);
    Head fitted = head_;
    fitted.size_bytes = request_.size_bytes;
    change(op, fitted);
    const int error = cluster_.operate(op, 0);
    return error == 0 ? Result<void>{} : Result<void>{pass_on(cluster_.failure_of(error, "noting the size of the new pool"))};
}

Result<bool> Ownership::outcome_of(int error, const Head& next)
{
    if (error == 0) {
        head_ = next;
        head_text_ = next.text();
        return true;
    }
    lock_type_ = LockType::none;
    // Another process was quicker, or a lock that was to be broken has ended: the next look tells.
    if (error == -ECANCELED || error == -EBUSY || error == -ENOENT) {
        return false;
    }
    return pass_on(cluster_.failure_of(error, "taking the pool's lock"));
}

Result<bool> Ownership::refuse_or_wait(const HeadState& state)
{
    const Identity& owner = state.head->owner;
    const bool is_ending = state.lock.type == LockType::exclusive && life_of_program(owner, own_) == Life::dead;
    const bool is_own = owner.process == own_.process && owner.started == own_.started && owner.boot == own_.boot &&
                        owner.space == own_.space;
    // The agent of a program that has ended, or became another program, finishes what it was given.
    const std::uint64_t wait_ns = is_ending ? request_.lease_ms * ns_per_ms : is_own ? end_wait_ns : 0;
    if (os::monotonic_ns() - begun_ns_ < wait_ns) {
        return false;
    }
    if (state.lock.type == LockType::shared) {
        return fail(SP_E_POOL_LOCKED, 0,
                    "{}: another process reads the pool (a check or a copy); try again when that has ended, or say --take-over",
                    cluster_.title());
    }
    const std::uint64_t now_s = os::wall_clock_ns() / 1'000'000'000;
    const std::uint64_t expires_s = state.lock.lockers.front().expires_s;
    const std::uint64_t most_s = (request_.lease_ms + 999) / 1000;
    const std::uint64_t left_s = expires_s > now_s ? std::min(expires_s - now_s, most_s) : 0;
    return fail(
        SP_E_POOL_LOCKED, 0,
        "{}: {} has the pool (client {}), and its lease runs for about {} s unless that process renews it; stop that program, wait if it "
        "is gone, or say --take-over, which shuts it out first",
        cluster_.title(), name_of(owner), state.head->address, left_s);
}

Result<void> Ownership::block_last_owner(const HeadState& state, const std::function<void(const char*)>& step) const
{
    step("putting the last owner on the cluster's block list");
    return cluster_.block(state.head->address);
}

void Ownership::guard(const WriteOp& op) const
{
    if (is_owner()) {
        add_comparison(op, head_text_);
    }
    add_lock_call(op, "lock", lock_call());
}

void Ownership::change(const WriteOp& op, const Head& head)
{
    head_ = head;
    head_text_ = head.text();
    add_head(op, head_text_);
}

void Ownership::release()
{
    if (lock_type_ == LockType::none) {
        return;
    }
    const WriteOp op = new_write_op();
    if (is_owner()) {
        add_comparison(op, head_text_);
    }
    if (is_owner() && !head_.is_published) {
        if (cluster_.remove_objects(head_.size_bytes, false)) {
            rados_write_op_remove(op.get());
        }
    } else {
        add_lock_call(op, "unlock", unlock_message(lock_name, lock_cookie));
        if (is_owner()) {
            Head last = head_;
            last.address.clear();
            last.owner = {};
            add_head(op, last.text());
        }
    }
    // A failure leaves the lock to its lease, and the block list to the next owner.
    static_cast<void>(cluster_.operate(op, 0));
    lock_type_ = LockType::none;
}

}  // namespace stillpoint::rados
