// How a committed operation becomes durable: by non-temporal stores and a fence, or by the group commit.

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "core/canary.hpp"
#include "engines/pronto/entry_writer.hpp"
#include "engines/pronto/operation_log.hpp"
#include "os/clock.hpp"

namespace stillpoint::pronto {

namespace {

/// Entries of the thread's group become durable.
void fence_group(ThreadLog& thread) noexcept
{
    LogGroup& group = thread.group;
    group.medium->append_each(std::span(group.places.data(), group.line_count));
    group.line_count = 0;
    if (!is_removed(Canary::group_fence)) {
        group.medium->fence();
    }
    group.object = nullptr;
    if (group.medium->has_lost_pages()) {
        group.lost = group.medium;
    }
}

void keep_line(LogGroup& group, std::uint64_t file_offset, const FirstLine& line) noexcept
{
    std::byte* const kept = group.lines[group.line_count].data();
    std::memcpy(kept, line.bytes, sizeof line.bytes);
    group.places[group.line_count++] = {file_offset, kept};
}

}  // namespace

void OperationLog::store_part(Operation& operation, const EntryPlace& part, std::uint32_t part_number, std::uint64_t durable,
                              std::uint8_t flags) noexcept
{
    const std::byte* const arguments = operation.arguments + part.argument_begin;
    const std::uint64_t file_offset = space_.file_offset(part.chunk) + part.offset;
    std::uint64_t hash = operation.hash;
    if (part_number != 0) {
        hash = arguments_hash(arguments, part.argument_bytes, operation.object->log_key, part.place);
        if (const std::uint64_t rest = rest_bytes_for(part.argument_bytes); rest != 0) {
            medium_->append_lines(file_offset + cache_line_bytes, arguments + inline_argument_bytes, rest);
        }
    }
    const bool has_more = part_number + 1 < part_count(operation);
    const EntryHeader header = make_header(operation, part, part_number, has_more, hash, durable, flags);
    const FirstLine line(header, arguments);
    if (is_grouped(*operation.thread) && part_number == 0 && !has_more) {
        keep_line(operation.thread->group, file_offset, line);
    } else {
        medium_->append_lines(file_offset, line.bytes, sizeof line.bytes);
    }
}

/// How many operations an entry calls durable. One thread knows exactly. Of several that do small operations each looks at the others now
/// and then: each look is at cache lines that they write all the time.
std::uint64_t OperationLog::known_durable(LiveObject& object, const ThreadLog& thread, bool is_first) noexcept
{
    constexpr std::uint32_t operations_between_looks = 8;
    if (thread_log_count() > 1 && !is_first && thread.operations % operations_between_looks != 0) {
        return object.durable.load(std::memory_order_relaxed);
    }
    const std::uint64_t durable = durable_number_of(object);
    object.durable.store(durable, std::memory_order_relaxed);
    return durable;
}

std::uint8_t OperationLog::take_number(Operation& operation) noexcept
{
    LiveObject& object = *operation.object;
    ThreadLog& thread = *operation.thread;
    LogGroup& group = thread.group;
    LogPiece& piece = thread.piece_of(object);
    if (group.object != nullptr && (group.object != &object || group.line_count == LogGroup::lines_max)) {
        fence_group(thread);
    }
    if (group.object == nullptr) {
        // Said before the number is taken, which publishes it: see durable_number_of.
        if (thread.committing.load(std::memory_order_relaxed) != &object && !is_removed(Canary::announced_commit)) {
            thread.committing.store(&object, std::memory_order_release);
        }
        const std::uint64_t before = piece.has_number_on(object) ? piece.number : object.number.load(std::memory_order_relaxed);
        thread.committing_from.store(before + 1, std::memory_order_relaxed);
    }
    operation.number = object.number.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (piece.incarnation == object.incarnation) {
        piece.number = operation.number;
    }
    if (group.object == nullptr) {
        return 0;
    }
    if (operation.number == group.last + 1) {
        return entry_follows_previous;
    }
    // Another thread's operation came between: this one relies on durable ones only.
    fence_group(thread);
    thread.committing_from.store(operation.number, std::memory_order_release);
    return 0;
}

Result<void> OperationLog::commit_lines(Operation& operation)
{
    LiveObject& object = *operation.object;
    ThreadLog& thread = *operation.thread;
    if (operation.by_sibling) {
        if (Siblings::await(thread.job)) {
            thread.choice.note_late();
        }
        operation.hash = thread.job.hash;
    }
    const std::uint64_t durable = known_durable(object, thread, !thread.piece_of(object).has_number_on(object));
    const std::uint8_t flags = take_number(operation);
    const std::uint32_t parts = part_count(operation);
    for (std::uint32_t part = 0; part < parts; ++part) {
        store_part(operation, parts == 1 ? operation.first : thread.parts[part], part, durable, flags);
    }
    if (is_grouped(thread)) {
        thread.group.object = &object;
        thread.group.medium = medium_;
        thread.group.last = operation.number;
    } else {
        if (!is_removed(Canary::commit_fence)) {
            medium_->fence();
        }
        thread.committing_from.store(0, std::memory_order_release);
    }
    if (operation.begun_ns != 0) {
        thread.choice.note(operation.by_sibling, os::monotonic_ns() - operation.begun_ns);
    }
    return medium_->has_lost_pages() ? medium_->check_intact() : Result<void>{};
}

Result<void> OperationLog::end_group(ThreadLog& thread)
{
    fence_group(thread);
    thread.committing_from.store(0, std::memory_order_release);
    Medium* const lost = std::exchange(thread.group.lost, nullptr);
    return lost != nullptr ? lost->check_intact() : Result<void>{};
}

void OperationLog::note_dirty(LiveObject& object, ChunkIndex chunk, std::uint32_t begin, std::uint32_t end) noexcept
{
    ChunkState& state = space_.state(chunk);
    begin = state.header_is_noted ? begin : 0;
    state.header_is_noted = true;
    if (state.dirty_low == state.dirty_high) {
        state.next_dirty = object.dirty;
        object.dirty = chunk;
        state.dirty_low = begin;
        state.dirty_high = end;
    } else {
        state.dirty_low = std::min(state.dirty_low, begin);
        state.dirty_high = std::max(state.dirty_high, end);
    }
}

void OperationLog::mirror_part(Operation& operation, const EntryPlace& part, std::uint32_t part_number, std::uint64_t durable)
{
    LiveObject& object = *operation.object;
    const std::byte* const arguments = operation.arguments + part.argument_begin;
    const std::uint64_t hash = arguments_hash(arguments, part.argument_bytes, object.log_key, part.place);
    const EntryHeader header = make_header(operation, part, part_number, part_number + 1 < part_count(operation), hash, durable,
                                           entry_follows_all);
    std::byte* const target = space_.mirror(part.chunk) + part.offset;
    std::memcpy(target, &header, sizeof header);
    std::memcpy(target + sizeof header, arguments, part.argument_bytes);
    note_dirty(object, part.chunk, part.offset, part.offset + static_cast<std::uint32_t>(entry_bytes_for(part.argument_bytes)));
}

std::uint64_t OperationLog::commit_to_mirror(Operation& operation)
{
    LiveObject& object = *operation.object;
    const std::lock_guard guard(object.log_lock);
    operation.number = object.number.load(std::memory_order_relaxed) + 1;
    object.number.store(operation.number, std::memory_order_release);
    const std::uint64_t durable = object.durable.load(std::memory_order_acquire);
    const std::uint32_t parts = part_count(operation);
    for (std::uint32_t part = 0; part < parts; ++part) {
        mirror_part(operation, parts == 1 ? operation.first : operation.thread->parts[part], part, durable);
    }
    return group_.add(object);
}

Result<void> OperationLog::finish_commit(Operation& operation, WaitsUntilDurable waits)
{
    ThreadLog& thread = *operation.thread;
    thread.newest = {operation.object->object, 0};
    if (byte_addressable_) {
        auto done = commit_lines(operation);
        leave_fase(operation);
        operation.state = done ? Operation::committed : Operation::failed;
        return done;
    }
    thread.newest.turn = commit_to_mirror(operation);
    // The object is as it will be: a snapshot need not wait for the medium.
    leave_fase(operation);
    if (thread.deferrals != 0 || thread.group.depth != 0 || waits == WaitsUntilDurable::none) {
        operation.state = Operation::committed;
        return {};
    }
    operation.state = Operation::early;
    if (waits == WaitsUntilDurable::end || is_removed(Canary::log_wait)) {
        return {};
    }
    auto done = group_.wait(*operation.object, operation.number);
    operation.state = done ? Operation::committed : Operation::failed;
    return done;
}

}  // namespace stillpoint::pronto
