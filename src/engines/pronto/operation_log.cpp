#include "engines/pronto/operation_log.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "core/canary.hpp"
#include "engines/pronto/commit_order.hpp"
#include "engines/pronto/entry_writer.hpp"
#include "os/clock.hpp"
#include "runtime/fase.hpp"

namespace stillpoint::pronto {

namespace {

Operation& operation_in(sp_pronto_operation& memory) noexcept { return reinterpret_cast<Operation&>(memory); }

/// How long an operation waits for room in the log while no snapshot can be captured.
constexpr std::uint64_t room_wait_ns = 30'000'000'000;

}  // namespace

OperationLog::OperationLog(const SnapshotLinks& links, const Settings& settings)
    : links_(links), settings_(settings), medium_(&links.pool->medium()), byte_addressable_(medium_->byte_addressable()),
      has_groups_(links.pool->facts().engine_layout_version >= layout_version),
      objects_(links_, space_, settings.verify_replay, settings.accept_damaged_log)
{
}

OperationLog::~OperationLog() { stop(); }

Result<void> OperationLog::recover(const Pool& pool)
{
    if (auto done = space_.reserve(pool.facts().image_bytes_max / page_bytes, *medium_); !done) {
        return done;
    }
    for (const Segment& segment : pool.segments()) {
        space_.add_segment(segment);
    }
    return objects_.read_logs(pool);
}

Result<void> OperationLog::run()
{
    if (settings_.check_commit_order) {
        commit_order::begin();
    }
    if (byte_addressable_) {
        siblings_.prepare(*medium_, settings_.siblings);
        return {};
    }
    return group_.start(
        *medium_, *links_.medium_lock, space_,
        [](void* self, const Failure& failure) noexcept {
            auto& here = *static_cast<OperationLog*>(self);
            here.links_.give_up(here.links_.engine, failure);
            here.space_.wake_waiters();
        },
        this);
}

void OperationLog::stop() noexcept
{
    if (!stopped_.exchange(true)) {
        group_.stop();
        siblings_.stop();
    }
}

void OperationLog::detach_after_fork() noexcept
{
    group_.detach_after_fork();
    siblings_.detach_after_fork();
    thread_logs_reset_after_fork();
    stopped_.store(true);
}

void OperationLog::add_segment(const Segment& segment) noexcept
{
    const ChunkIndex first = space_.chunk_count();
    space_.add_segment(segment);
    for (ChunkIndex chunk = first; chunk < space_.chunk_count(); ++chunk) {
        space_.give_back(chunk);
    }
    space_.wake_waiters();
}

void OperationLog::snapshot_durable() noexcept
{
    if (!byte_addressable_) {
        group_.drain();  // A chunk that is given to another log must not be written for this one any more.
    }
    objects_.release_retired_chunks();
    space_.note_snapshot(links_.pages_of_last_snapshot(links_.engine), os::monotonic_ns());
    space_.wake_waiters();
    space_.give_room_back();
}

Result<void*> OperationLog::object(Session& session, const sp_pronto_type& type, const char* name, unsigned flags, const void* arguments,
                                   std::size_t bytes)
{
    return objects_.open(session, {&type, name, flags, arguments, bytes});
}

Result<void> OperationLog::delete_object(Session& session, const char* name) { return objects_.remove(session, name); }

Result<void> OperationLog::check_medium() const noexcept
{
    // A refused object ends the snapshots, and lets other objects' operations go on while the log has room.
    if (const Failure* const failure = links_.failure(links_.engine); failure != nullptr && objects_.refusal() == nullptr) {
        return pass_on(*failure);
    }
    if (medium_->has_lost_pages()) {
        return medium_->check_intact();
    }
    return group_.failed() ? pass_on(group_.failure()) : Result<void>{};
}

Result<void> OperationLog::check_usable(const LiveObject& object, std::uint32_t method) const
{
    const std::uint32_t state = object.state.load(std::memory_order_acquire);
    if (state == LiveObject::refused) {
        return pass_on(object.refusal);
    }
    if (state != LiveObject::open) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the durable object \"{}\" {}", object.name.data(),
                    state == LiveObject::deleted ? "was deleted" : "has not been asked for yet");
    }
    if (method >= object.pool_methods.size()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the type \"{}\" has no method number {}", object.type->name, method);
    }
    return check_medium();
}

Result<void*> OperationLog::begin_unlogged(Operation& operation, ThreadLog& thread, std::uint64_t bytes)
{
    operation.state = Operation::inactive;
    auto place = thread.place_for_nothing(bytes);
    if (!place) {
        return pass_on(place.error());
    }
    return *place;
}

Result<void*> OperationLog::begin(sp_pronto_operation& memory, void* address, std::uint32_t method, std::size_t bytes)
{
    Operation& operation = operation_in(memory);
    operation = {};
    ThreadLog* const thread = own_thread_log();
    if (thread == nullptr) {
        return fail(SP_E_NO_MEMORY, 0, "no memory for one more thread that does operations on durable objects");
    }
    if (thread->replaying != nullptr || thread->current != nullptr) {
        const LiveObject* const outer = thread->replaying != nullptr ? thread->replaying : thread->current->object;
        if (address == outer->object || objects_.is_twin_of(address, *outer)) {
            return begin_unlogged(operation, *thread, bytes);
        }
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "an operation on another durable object begins inside one on \"{}\": it would be run twice after a crash. Call "
                    "them one after the other",
                    outer->name.data());
    }
    LiveObject* const object = objects_.find(address);
    if (object == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} is not a durable object of the open pool: get it by its name", address);
    }
    if (auto usable = check_usable(*object, method); !usable) {
        return pass_on(usable.error());
    }
    auto place = thread->place_for(bytes);
    if (!place) {
        return pass_on(place.error());
    }
    operation.session = object->session;
    operation.object = object;
    operation.thread = thread;
    operation.arguments = *place;
    operation.argument_bytes = bytes;
    operation.program_method = static_cast<std::uint16_t>(method);
    operation.method = object->pool_methods[method];
    if (settings_.verify_replay) {
        object->verifying_lock.lock();
        operation.is_verifying = true;
    }
    if (auto entered = enter_with_room(operation); !entered) {
        end_verifying(operation);
        return pass_on(entered.error());
    }
    operation.state = Operation::begun;
    operation.chosen_before = std::exchange(sessions::chosen, object->session);
    thread->current = &operation;
    constexpr std::uint32_t one_in = 256;
    operation.timed_ns = thread->operations++ % one_in == 0 ? os::monotonic_ns() : 0;
    return *place;
}

Result<void> OperationLog::enter_with_room(Operation& operation)
{
    const std::uint64_t parts = (operation.argument_bytes + entry_argument_bytes_max - 1) / entry_argument_bytes_max;
    if (parts > space_.chunk_count() / 2) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{} bytes of arguments of one operation are more than half of the pool's log: divide the operation, or make a "
                    "pool with a larger pool_size_mb",
                    operation.argument_bytes);
    }
    if (parts > 1) {
        try {
            operation.thread->parts.reserve(parts);
        } catch (const std::bad_alloc&) {
            return fail(SP_E_NO_MEMORY, 0, "no memory to log an operation in {} parts", parts);
        }
    }
    for (std::uint64_t deadline_ns = 0;;) {
        const std::uint32_t seen = space_.returns().load(std::memory_order_acquire);
        fase_enter_section();
        if (take_room(operation)) {
            operation.inside_fase = true;
            return {};
        }
        fase_leave(nullptr);
        if (auto sound = check_medium(); !sound) {
            return sound;
        }
        if (const Failure* const held = objects_.refusal(); held != nullptr) {
            return pass_on(*held);  // No snapshot will make room.
        }
        if (deadline_ns == 0 || links_.is_writing(links_.engine)) {
            deadline_ns = os::monotonic_ns() + room_wait_ns;
        }
        fase_pause();
        links_.request_snapshot(links_.engine);
        os::futex_wait(space_.returns(), seen, os::monotonic_ns() + 100'000'000);
        fase_resume();
        if (os::monotonic_ns() > deadline_ns) {
            if (space_.disk_is_full()) {
                return fail(SP_E_NO_SPACE, 0, "{}: the log is full, and the disk has no room for more of it; free some space",
                            medium_->path());
            }
            return fail(SP_E_TIMED_OUT, 0,
                        "the log is full, and no snapshot could be taken in {} s: an operation does not end, or waits for a lock that "
                        "a thread holds which begins one. Begin operations before locks are acquired",
                        room_wait_ns / 1'000'000'000);
        }
    }
}

bool OperationLog::start_chunk(LiveObject& object)
{
    const ChunkIndex chunk = space_.take();
    if (chunk == no_chunk) {
        return false;
    }
    if (space_.is_snapshot_due()) {
        links_.request_snapshot(links_.engine);
    }
    ChunkHeader header{};
    std::memcpy(header.magic, chunk_magic, sizeof header.magic);
    header.object = object.identity;
    header.sequence = object.next_sequence++;
    header.generation = links_.pool->facts().generation;
    header.first_number = object.first_number;
    header.beginning = space_.next_beginning();
    header.checksum = chunk_checksum(header);
    space_.state(chunk) = {header.sequence, sizeof header, 0, 0, object.chunk, no_chunk, false};
    object.chunk = chunk;
    if (byte_addressable_) {
        medium_->append_lines(space_.file_offset(chunk), &header, sizeof header);
        medium_->append_lines(space_.file_offset(chunk) + header_copy_offset, &header, sizeof header);
        if (!is_removed(Canary::chunk_header_fence)) {
            medium_->fence();  // Other threads' entries rely on it, and their fences do not cover it.
        }
    } else {
        std::memcpy(space_.mirror(chunk), &header, sizeof header);
        std::memcpy(space_.mirror(chunk) + header_copy_offset, &header, sizeof header);
    }
    return true;
}

bool OperationLog::take_part(LiveObject& object, std::uint64_t argument_begin, std::uint64_t argument_bytes, EntryPlace& part)
{
    const std::uint64_t bytes = entry_bytes_for(argument_bytes);
    if ((object.chunk == no_chunk || space_.state(object.chunk).used + bytes > header_copy_offset) && !start_chunk(object)) {
        return false;
    }
    ChunkState& state = space_.state(object.chunk);
    part = {object.chunk, state.used, place_of(state.sequence, state.used), argument_begin, static_cast<std::uint32_t>(argument_bytes)};
    state.used += static_cast<std::uint32_t>(bytes);
    return true;
}

/// From the thread's own piece of the object's log, or a new one. Inside a FASE, which no capture overlaps.
bool OperationLog::take_from_piece(Operation& operation, std::uint32_t bytes)
{
    LiveObject& object = *operation.object;
    LogPiece& piece = operation.thread->piece_of(object);
    const bool is_void = piece.sequence < object.live_sequence && !is_removed(Canary::void_piece);
    if (piece.incarnation != object.incarnation || is_void || piece.end - piece.next < bytes) {
        const std::lock_guard guard(object.log_lock);
        EntryPlace first{};
        if (!take_part(object, 0, operation.argument_bytes, first)) {
            return false;
        }
        ChunkState& state = space_.state(object.chunk);
        const auto end =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(first.offset + std::max(bytes, LogPiece::bytes_wanted), header_copy_offset));
        state.used = end;
        const std::uint64_t number = piece.incarnation == object.incarnation ? piece.number : 0;
        piece = {object.incarnation, state.sequence, object.chunk, first.offset, end, number};
    }
    operation.first = {piece.chunk, piece.next, place_of(piece.sequence, piece.next), 0,
                       static_cast<std::uint32_t>(operation.argument_bytes)};
    piece.next += bytes;
    return true;
}

/// Where there is not enough, what was taken stays unused: the scanner steps over it.
bool OperationLog::take_room(Operation& operation)
{
    LiveObject& object = *operation.object;
    if (const std::uint64_t bytes = entry_bytes_for(operation.argument_bytes); byte_addressable_ && bytes <= LogPiece::entry_bytes_max) {
        return take_from_piece(operation, static_cast<std::uint32_t>(bytes));
    }
    const std::lock_guard guard(object.log_lock);
    if (operation.argument_bytes <= entry_argument_bytes_max) {
        return take_part(object, 0, operation.argument_bytes, operation.first);
    }
    const std::uint64_t parts = (operation.argument_bytes + entry_argument_bytes_max - 1) / entry_argument_bytes_max;
    if (space_.free_chunks() < parts) {
        return false;
    }
    operation.thread->parts.clear();
    for (std::uint64_t at = 0; at < operation.argument_bytes; at += entry_argument_bytes_max) {
        EntryPlace& part = operation.thread->parts.emplace_back();
        if (!take_part(object, at, std::min(entry_argument_bytes_max, operation.argument_bytes - at), part)) {
            return false;
        }
    }
    operation.first = operation.thread->parts.front();
    return true;
}

std::uint32_t OperationLog::part_count(const Operation& operation) const noexcept
{
    return operation.argument_bytes <= entry_argument_bytes_max ? 1 : static_cast<std::uint32_t>(operation.thread->parts.size());
}

void OperationLog::start_logging(sp_pronto_operation& memory) noexcept
{
    Operation& operation = operation_in(memory);
    if (operation.state != Operation::begun) {
        return;
    }
    operation.state = Operation::logging;
    if (!byte_addressable_) {
        return;
    }
    ThreadLog& thread = *operation.thread;
    SiblingJob& job = thread.job;
    job.arguments = operation.arguments;
    job.argument_bytes = operation.first.argument_bytes;
    job.log_key = operation.object->log_key;
    job.place = operation.first.place;
    job.file_offset = space_.file_offset(operation.first.chunk) + operation.first.offset;
    bool measured = false;
    // Arguments that fit in the first line are stored with it, at the commit.
    const bool hands_over = job.argument_bytes > inline_argument_bytes && siblings_.should_hand_over(thread, measured);
    operation.begun_ns = measured ? os::monotonic_ns() : 0;
    if (hands_over) {
        operation.by_sibling = siblings_.hand_over(thread);
    }
    if (!operation.by_sibling) {
        Siblings::store_rest(*medium_, job);
        operation.hash = job.hash;
    }
}

void OperationLog::leave_fase(Operation& operation) noexcept
{
    if (operation.inside_fase) {
        operation.inside_fase = false;
        fase_leave(nullptr);
    }
}

Result<void> OperationLog::commit(sp_pronto_operation& memory, WaitsUntilDurable waits)
{
    Operation& operation = operation_in(memory);
    if (operation.state == Operation::begun) {
        start_logging(memory);
    }
    if (operation.state != Operation::logging) {
        return {};
    }
    if (operation.timed_ns != 0) {
        const std::uint64_t ns = os::monotonic_ns() - operation.timed_ns;
        std::atomic<std::uint64_t>& mean = operation.object->operation_ns;
        const std::uint64_t before = mean.load(std::memory_order_relaxed);
        mean.store(before == 0 ? ns : before - before / 16 + ns / 16, std::memory_order_relaxed);
    }
    if (settings_.verify_replay) {
        if (auto same = objects_.run_on_twin(operation); !same) {
            return same;
        }
        end_verifying(operation);  // The commit's outcome is not the check's business.
    }
    if (settings_.check_commit_order) {
        commit_order::committing(operation);
        commit_order::finished(operation);
    }
    return finish_commit(operation, waits);
}

void OperationLog::end_verifying(Operation& operation) noexcept
{
    if (operation.is_verifying) {
        operation.is_verifying = false;
        operation.object->verifying_lock.unlock();
    }
}

void OperationLog::refuse(LiveObject& object, const Operation& operation) noexcept
{
    const sp_pronto_method& method = object.type->methods[operation.program_method];
    const Failure reason = fail(SP_E_OBJECT_REFUSED, 0,
                                "the operation {} of the durable object \"{}\" ended by an exception and may have changed it: the "
                                "object is refused, and no snapshot is taken, until the pool is opened again",
                                method.name, object.name.data())
                               .value();
    objects_.refuse(object, reason);
}

Result<void> OperationLog::end(sp_pronto_operation& memory, bool by_exception)
{
    Operation& operation = operation_in(memory);
    if (operation.state == Operation::inactive) {
        return {};
    }
    LiveObject& object = *operation.object;
    if (operation.by_sibling && operation.state == Operation::logging) {
        static_cast<void>(Siblings::await(operation.thread->job));
    }
    const bool uncommitted = operation.state == Operation::begun || operation.state == Operation::logging;
    if (uncommitted && by_exception && (object.type->methods[operation.program_method].promises & SP_PRONTO_UNCHANGED_BY_EXCEPTION) == 0) {
        refuse(object, operation);
    }
    if (settings_.check_commit_order) {
        commit_order::finished(operation);
    }
    leave_fase(operation);
    end_verifying(operation);
    operation.thread->current = nullptr;
    sessions::chosen = operation.chosen_before;
    const bool wait = operation.state == Operation::early && !is_removed(Canary::log_wait);
    operation.state = Operation::inactive;
    return wait ? group_.wait(object, operation.number) : Result<void>{};
}

Result<void> OperationLog::wait_read(const void* address)
{
    const LiveObject* const object = byte_addressable_ ? nullptr : objects_.find(address);
    if (object == nullptr) {
        return {};  // On byte-addressable media nothing is to be seen before it is durable.
    }
    const std::uint64_t number = object->number.load(std::memory_order_acquire);
    return object->durable.load(std::memory_order_acquire) >= number ? Result<void>{} : group_.wait(*object, number);
}

Result<void> OperationLog::wait(const sp_pronto_ticket& ticket, std::int64_t timeout_ms)
{
    return ticket.turn == 0 ? check_medium() : group_.wait_for_turn(ticket.turn, os::deadline_after_ms(timeout_ms));
}

Result<void> OperationLog::numbers(const void* address, std::uint64_t* committed, std::uint64_t* durable)
{
    const LiveObject* const object = objects_.find(address);
    if (object == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} is not a durable object of the open pool", address);
    }
    if (committed != nullptr) {
        *committed = object->number.load(std::memory_order_acquire);
    }
    if (durable != nullptr) {
        *durable = byte_addressable_ ? durable_number_of(*object) : object->durable.load(std::memory_order_acquire);
    }
    return {};
}

}  // namespace stillpoint::pronto
