#include "engines/breeze/reference_counts.hpp"

#include <mutex>

#include "core/canary.hpp"
#include "engines/breeze/object_headers.hpp"
#include "os/clock.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint32_t records_that_wake = 512;
constexpr std::uint64_t records_ahead = 4;  ///< whose objects are on their way to the caches
constexpr std::uint64_t idle_ns = 20'000'000;  ///< between passes where fewer records wait

}  // namespace

Result<void> ReferenceCounts::prepare(const Parts& parts, const Geometry& geometry)
{
    parts_ = parts;
    if (auto prepared = batch_.prepare(*parts.memory, geometry, parts.key); !prepared) {
        return prepared;
    }
    if (auto reserved = touched_.reserve(parts.memory->bytes() / granule_bytes, "the reference counts of a pool"); !reserved) {
        return reserved;
    }
    const std::uint64_t blocks = parts.zones->count() * zone_granules;
    for (ReservedList<std::uint64_t>* const list : {&freed_in_batch_, &released_, &later_}) {
        if (auto reserved = list->reserve(blocks, "blocks that become free"); !reserved) {
            return reserved;
        }
    }
    for (ReservedList<Suspect>* const list : {&suspects_, &older_suspects_}) {
        if (auto reserved = list->reserve(2 * blocks, "objects without references"); !reserved) {
            return reserved;
        }
    }
    if (auto reserved = records_.reserve(parts.logs->front().records_max(), "the activation records of a pool"); !reserved) {
        return reserved;
    }
    return batch_.recover();
}

Result<void> ReferenceCounts::start(void (*after_pass)(void* context) noexcept, void* context)
{
    after_pass_ = after_pass;
    context_ = context;
    return thread_.start("sp-counts", &ReferenceCounts::run, this);
}

void ReferenceCounts::stop() noexcept
{
    if (thread_.running()) {
        ending_.store(true, std::memory_order_release);
        wanted_.fetch_add(1, std::memory_order_release);
        os::futex_wake(wanted_);
        thread_.join();
    }
}

void ReferenceCounts::run(void* self)
{
    auto& counts = *static_cast<ReferenceCounts*>(self);
    while (!counts.ending_.load(std::memory_order_acquire)) {
        const std::uint32_t seen = counts.wanted_.load(std::memory_order_acquire);
        if (seen < records_that_wake) {
            os::futex_wait(counts.wanted_, seen, os::monotonic_ns() + idle_ns);
        }
        counts.pass();
        counts.after_pass_(counts.context_);
    }
}

void ReferenceCounts::note_record() noexcept
{
    if (wanted_.fetch_add(1, std::memory_order_release) + 1 == records_that_wake) {
        os::futex_wake(wanted_);
    }
}

void ReferenceCounts::release_later(std::uint64_t offset) noexcept
{
    const std::lock_guard hold(later_lock_);
    later_.push_back(offset);
}

void ReferenceCounts::apply_recovered()
{
    if (is_removed(Canary::recovered_records)) {
        return;
    }
    const std::lock_guard hold(lock_);
    apply_records();
    commit_batch();
}

void ReferenceCounts::pass()
{
    const std::lock_guard hold(lock_);
    pass_locked();
}

void ReferenceCounts::pass_locked()
{
    {
        const std::lock_guard hold(later_lock_);
        released_.swap(later_);
    }
    wanted_.store(0, std::memory_order_release);
    ++pass_;
    apply_records();
    look_at_suspects();
    commit_batch();
    for (const std::uint64_t offset : released_) {
        parts_.zones->release(offset);
    }
    released_.clear();
}

void ReferenceCounts::drain()
{
    const std::lock_guard hold(lock_);
    drain_locked();
}

void ReferenceCounts::drain_locked()
{
    // A suspect of one pass is freed by the next, which may make suspects of what it pointed to.
    do {
        pass_locked();
    } while (!suspects_.empty());
}

bool ReferenceCounts::is_object(std::uint64_t offset) const noexcept
{
    return offset != 0 && parts_.zones->block_of(offset) == offset && is_allocated(*parts_.memory, parts_.key, offset);
}

bool ReferenceCounts::is_pinned(std::uint32_t id) const noexcept
{
    const Type* const type = parts_.types->find(id);
    return type != nullptr && type->is_pinned;
}

void ReferenceCounts::make_room(std::uint64_t words)
{
    if (batch_.room() < words) {
        commit_batch();
    }
    if (batch_.room() < words) {
        batch_.widen();
    }
}

void ReferenceCounts::add(std::uint64_t offset, std::uint32_t difference)
{
    if (!is_object(offset)) {
        return;  // Freed by the program in the same transaction, or later.
    }
    const std::uint64_t word = offset + offsetof(ObjectHeader, counts);
    const std::uint64_t before = batch_.value_of(word);
    const std::uint32_t references = references_in(before) + difference;  // Modulo 2^32: a later record of the pass makes up for it.
    batch_.set(word, (before >> type_shift << type_shift) | references);
    touched(offset) = static_cast<std::uint32_t>(pass_);
    if (references == 0) {
        suspects_.push_back({offset, pass_});
    }
}

void ReferenceCounts::fetch_ahead(std::span<const PointerChange> changes) const noexcept
{
    for (const PointerChange& change : changes) {
        __builtin_prefetch(&parts_.memory->object(change.new_offset), 1);
        __builtin_prefetch(&parts_.memory->object(change.old_offset), 1);
    }
}

void ReferenceCounts::apply_records()
{
    for (ActivationLog& log : *parts_.logs) {
        records_.clear();
        log.take(records_);
        for (std::uint64_t i = 0; i < records_.size(); ++i) {
            const CommittedRecord& record = records_[i];
            if (i + records_ahead < records_.size()) {
                fetch_ahead(log.changes(records_[i + records_ahead]));
            }
            const auto changes = log.changes(record);
            make_room(2 * changes.size() + 2);
            for (const PointerChange& change : changes) {
                add(change.new_offset, 1);
                add(change.old_offset, static_cast<std::uint32_t>(-1));
            }
            if (!is_removed(Canary::activation_applied)) {
                batch_.set(log.applied_offset(), record.transaction);
            }
            batch_.set(log.applied_end_offset(), log.end_of(record));
        }
        if (!records_.empty()) {
            commit_batch();  // Before the room of the records is used again.
            for (const CommittedRecord& record : records_) {
                log.applied(record);
            }
        }
    }
    records_.clear();
}

void ReferenceCounts::look_at_suspects()
{
    older_suspects_.clear();
    older_suspects_.swap(suspects_);
    if (keeps_all_) {
        return;
    }
    for (std::uint64_t i = 0; i < older_suspects_.size(); ++i) {
        const Suspect& suspect = older_suspects_[i];
        if (i + records_ahead < older_suspects_.size()) {
            __builtin_prefetch(&parts_.memory->object(older_suspects_[i + records_ahead].offset), 1);
        }
        const std::uint64_t word = suspect.offset + offsetof(ObjectHeader, counts);
        if (!is_object(suspect.offset) || references_in(batch_.value_of(word)) != 0 || is_pinned(type_in(batch_.value_of(word)))) {
            continue;
        }
        if (suspect.pass == pass_ || touched(suspect.offset) == static_cast<std::uint32_t>(pass_)) {
            suspects_.push_back({suspect.offset, pass_});
        } else {
            free_object(suspect.offset, nullptr);
        }
    }
}

void ReferenceCounts::take_pointers(std::uint64_t offset, ObjectHeader& header, const Type& type)
{
    auto* const object = reinterpret_cast<std::byte*>(&header + 1);
    std::uint64_t pointers = 0;
    type.visit_pointers(object, header.size, [&](std::uint64_t, const PointerRun&) { ++pointers; });
    // An object with many pointers loses them batch by batch, and is freed with the last.
    const std::uint64_t few = batch_.usual() / 4;
    const bool loses_them = pointers > few;
    make_room(few + 1);
    type.visit_pointers(object, header.size, [&](std::uint64_t place, const PointerRun& run) {
        const std::uint64_t word = parts_.memory->offset_of(object + place);
        const std::uint64_t value = batch_.value_of(word);
        if (run.kind != PointerKind::strong || value == 0) {
            return;
        }
        if (loses_them) {
            make_room(2);
            batch_.set(word, 0);
        }
        const std::uint64_t target = parts_.memory->contains(value) ? parts_.zones->block_of(value - base_address()) : 0;
        if (target != 0 && target != offset) {
            add(target, static_cast<std::uint32_t>(-1));
        }
    });
}

bool ReferenceCounts::free_object(std::uint64_t offset, ReservedList<std::uint64_t>* held)
{
    ObjectHeader& header = parts_.memory->object(offset);
    BlockHead head{};
    if (!is_object(offset) || !read_head(parts_.key, offset, batch_.value_of(offset), head) || head.state != BlockState::allocated ||
        !is_sound(parts_.key, offset, head.granules, header)) {
        return false;
    }
    const Type* const type = parts_.types->find(type_in(header.counts));
    if (type == nullptr) {
        return false;
    }
    if (!is_removed(Canary::freed_pointers)) {
        take_pointers(offset, header, *type);
    }
    make_room(1);
    batch_.set(offset, head_of(parts_.key, offset, {BlockState::free, head.granules}));
    if (held != nullptr) {
        held->push_back(offset);
    } else {
        freed_in_batch_.push_back(offset);
    }
    freed_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void ReferenceCounts::finish_frees() { commit_batch(); }

void ReferenceCounts::commit_batch()
{
    batch_.commit();
    for (const std::uint64_t offset : freed_in_batch_) {
        parts_.zones->release(offset);
    }
    freed_in_batch_.clear();
}

}  // namespace stillpoint::breeze
