#include "engines/pronto/object_table.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <unistd.h>

#include "core/canary.hpp"
#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/inside_object.hpp"
#include "engines/pronto/object_methods.hpp"
#include "heap/heap.hpp"
#include "os/clock.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase.hpp"

namespace stillpoint::pronto {

namespace {

constexpr std::size_t object_offset = sizeof(ObjectRecord);
static_assert(object_offset % 64 == 0, "an object's alignment is its block's");

ObjectRecord* record_of(std::uintptr_t object) noexcept { return reinterpret_cast<ObjectRecord*>(object - object_offset); }

/// Held while an object is made, recovered or deleted. Its owner may come again: an object's own code asks for another object.
class TableGuard {
public:
    TableGuard(os::FutexLock& lock, std::atomic<int>& owner) noexcept : lock_(lock), owner_(owner), own_(owner.load() != gettid())
    {
        if (own_) {
            lock_.lock();
            owner_.store(gettid());
        }
    }
    ~TableGuard()
    {
        if (own_) {
            owner_.store(0);
            lock_.unlock();
        }
    }
    TableGuard(const TableGuard&) = delete;
    TableGuard& operator=(const TableGuard&) = delete;
    [[nodiscard]] bool entered() const noexcept { return own_; }

private:
    os::FutexLock& lock_;
    std::atomic<int>& owner_;
    const bool own_;
};

Result<void> check_outside(bool entered)
{
    if (!entered) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a durable object was asked for by the constructor or an operation of another one");
    }
    if (inside_fase()) {
        return fail(SP_E_INSIDE_FASE, 0,
                    "a durable object is made, recovered or deleted by a snapshot, which would wait for the operation or section that "
                    "the caller is in");
    }
    return {};
}

}  // namespace

LiveObject* ObjectTable::live_at(std::uintptr_t record_address) const noexcept
{
    const auto* const record = reinterpret_cast<const ObjectRecord*>(record_address);
    const std::uint64_t slot = record->slot;
    if (slot >= slot_count_.load(std::memory_order_acquire) || slots_[slot]->record != record ||
        slots_[slot]->state.load(std::memory_order_relaxed) == LiveObject::deleted) {
        return nullptr;
    }
    return slots_[slot];
}

LiveObject* ObjectTable::find(const void* object) const noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    const auto base = reinterpret_cast<std::uintptr_t>(links_.shadow->base());
    if (address % 8 != 0 || address < base + object_offset || address >= base + links_.shadow->bytes()) {
        return nullptr;
    }
    return live_at(address - object_offset);
}

bool ObjectTable::is_twin_of(const void* address, const LiveObject& object) const noexcept
{
    return object.record->twin_address != 0 && reinterpret_cast<std::uintptr_t>(address) == object.record->twin_address;
}

void ObjectTable::note_run(ObjectRecord& record) const noexcept
{
    const Pool& pool = *links_.pool;
    // A reader of a pool has the generation of its last writer, whose locks may be held in the image.
    const auto number = static_cast<std::uint32_t>(pool.facts().generation + (pool.read_only() ? 1 : 0));
    record.run = {std::max<std::uint32_t>(number, 1), pool.medium().byte_addressable() ? 0U : 1U};
}

Result<LiveObject*> ObjectTable::add_live(ObjectRecord& record, std::string_view name, const sp_pronto_type* type)
{
    const std::uint64_t slot = slot_count_.load(std::memory_order_relaxed);
    if (slot == 0 && slots_.data() == nullptr) {
        if (auto done = slots_.reserve(slots_max, "the table of durable objects"); !done) {
            return pass_on(done.error());
        }
    }
    if (slot == slots_max) {
        return fail(SP_E_NO_MEMORY, 0, "this process has had {} durable objects; no more are possible", slots_max);
    }
    try {
        objects_.emplace_back();
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "no memory for one more durable object, \"{}\"", name);
    }
    LiveObject& object = objects_.back();
    object.session = session_;
    static std::atomic<std::uint64_t> incarnations{0};
    object.incarnation = incarnations.fetch_add(1, std::memory_order_relaxed) + 1;
    object.record = &record;
    object.object = reinterpret_cast<std::byte*>(&record) + object_offset;
    object.type = type;
    object.identity = record.identity;
    object.log_key = log_key_of(record.identity, links_.pool->facts().generation);
    std::copy_n(name.begin(), std::min(name.size(), object.name.size() - 1), object.name.begin());
    object.number.store(record.committed);
    object.durable.store(record.committed);
    object.next_sequence = object.live_sequence = record.log_sequence;
    object.operation_ns.store(record.operation_ns);
    slots_[slot] = &object;
    record.slot = slot;
    note_run(record);
    if (record.twin_address != 0) {
        note_run(*record_of(record.twin_address));
    }
    slot_count_.store(slot + 1, std::memory_order_release);
    return &object;
}

Result<ObjectRecord*> ObjectTable::allocate(Session& session, const sp_pronto_type& type)
{
    void* const block = session.heap->allocate_aligned(64, object_offset + type.size_bytes);
    const std::size_t method_bytes = std::max<std::size_t>(1, type.method_count) * sizeof(MethodRecord);
    void* const methods = block == nullptr ? nullptr : session.heap->allocate(method_bytes);
    if (methods == nullptr) {
        const Failure failure = Heap::last_failure();
        if (block != nullptr) {
            session.heap->deallocate(block);
        }
        return pass_on(failure);
    }
    auto* const record = new (block) ObjectRecord{};
    record->magic = record_magic;
    record->identity = links_.pool->facts().generation << 32 | ++identities_given_;
    record->size_bytes = type.size_bytes;
    record->methods_address = reinterpret_cast<std::uintptr_t>(methods);
    record->method_count = static_cast<std::uint32_t>(type.method_count);
    record->object_offset = object_offset;
    std::strncpy(record->type_name, type.name, sizeof record->type_name - 1);
    record->checksum = record_checksum(*record);
    auto* const table = static_cast<MethodRecord*>(methods);
    for (std::size_t i = 0; i < type.method_count; ++i) {
        table[i] = {};
        std::strncpy(table[i].name, type.methods[i].name, sizeof table[i].name - 1);
        std::strncpy(table[i].signature, type.methods[i].signature, sizeof table[i].signature - 1);
    }
    return record;
}

void ObjectTable::release(Session& session, ObjectRecord& record) noexcept
{
    if (record.twin_address != 0) {
        release_block(*session.heap, record_of(record.twin_address));
    }
    session.heap->deallocate(reinterpret_cast<void*>(record.methods_address));
    record.magic = 0;
    release_block(*session.heap, &record);
}

Result<void> ObjectTable::construct(LiveObject& object, const ObjectRequest& request)
{
    const InsideObject inside(object);
    request.type->construct(object.object, request.arguments, request.argument_bytes);
    if (!verify_replay_) {
        return {};
    }
    void* const block = session_->heap->allocate_aligned(64, object_offset + request.type->size_bytes);
    if (block == nullptr) {
        request.type->destroy(object.object);
        return pass_on(Heap::last_failure());
    }
    std::byte* const twin = static_cast<std::byte*>(block) + object_offset;
    object.record->twin_address = reinterpret_cast<std::uintptr_t>(twin);
    note_run(*record_of(object.record->twin_address));
    try {
        request.type->construct(twin, request.arguments, request.argument_bytes);
    } catch (...) {
        request.type->destroy(object.object);
        throw;
    }
    return {};
}

Result<LiveObject*> ObjectTable::create(Session& session, const ObjectRequest& request)
{
    const FaseGuard fase;
    auto record = allocate(session, *request.type);
    if (!record) {
        return pass_on(record.error());
    }
    auto object = add_live(**record, request.name, request.type);
    if (!object) {
        release(session, **record);
        return object;
    }
    const auto undo = [&]() noexcept {
        (*object)->state.store(LiveObject::deleted, std::memory_order_release);
        release(session, **record);
    };
    try {
        if (auto matched = match_methods(**object, {}, false); !matched) {
            undo();
            return pass_on(matched.error());
        }
        if (auto constructed = construct(**object, request); !constructed) {
            undo();
            return pass_on(constructed.error());
        }
    } catch (...) {
        undo();
        throw;
    }
    // Destructors, here and in remove(), may free blocks, which takes the directory's lock.
    const auto inserted = [&] {
        const std::lock_guard guard(session.directory_lock);
        return session.directory->insert(request.name, reinterpret_cast<std::uintptr_t>(*record), object_offset + request.type->size_bytes);
    }();
    if (!inserted) {
        {
            const InsideObject inside(**object);
            request.type->destroy((*object)->object);
        }
        undo();
        return pass_on(inserted.error());
    }
    (*object)->state.store(LiveObject::open, std::memory_order_release);
    return object;
}

Result<void> ObjectTable::check_wish(const LiveObject& object, const ObjectRequest& request) const
{
    switch (object.state.load(std::memory_order_acquire)) {
    case LiveObject::open: break;
    case LiveObject::deleted: return fail(SP_E_HANDLE_MISSING, 0, "the durable object \"{}\" was deleted", request.name);
    default: return pass_on(object.refusal);
    }
    if (object.type != request.type) {
        return fail(SP_E_OBJECT_TYPE, 0, "the durable object \"{}\" is of the type {}, not {}", request.name, object.type->name,
                    request.type->name);
    }
    return {};
}

Result<void*> ObjectTable::open(Session& session, const ObjectRequest& request)
{
    if (!Directory::valid_handle(request.name)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the name of a durable object has 1 to {} bytes", Directory::handle_bytes_max);
    }
    const TableGuard guard(lock_, lock_owner_);
    if (auto outside = check_outside(guard.entered()); !outside) {
        return pass_on(outside.error());
    }
    session_ = &session;
    if (auto recovered = recover_all(session); !recovered) {
        return pass_on(recovered.error());
    }
    const auto entry = [&] {
        const FaseGuard fase;
        const std::lock_guard directory_guard(session.directory_lock);
        return session.directory->find(request.name);
    }();
    if (!entry && (request.flags & SP_PRONTO_MUST_EXIST) != 0) {
        return fail(SP_E_HANDLE_MISSING, 0, "there is no durable object \"{}\"", request.name);
    }
    if (!entry) {
        auto created = create(session, request);
        if (!created) {
            return pass_on(created.error());
        }
        if (auto durable = is_removed(Canary::created_object_durable) ? Result<void>{} : links_.snapshot_now(links_.engine); !durable) {
            refuse(**created, durable.error());
            return pass_on(durable.error());
        }
        return (*created)->object;
    }
    if (auto sound = check_record(session, *entry); !sound) {
        return pass_on(sound.error());
    }
    LiveObject* const object = live_at(entry->address);
    if (object == nullptr) {
        return fail(SP_E_POOL_CORRUPT, 0, "\"{}\" was made by other means than as a durable object, or after the recovery", request.name);
    }
    if (object->state.load(std::memory_order_relaxed) == LiveObject::unrecovered) {
        object->type = request.type;
        recover(*object, (request.flags & SP_PRONTO_ACCEPT_CHANGED_METHODS) != 0);
        if (auto durable = make_recovery_durable(); !durable) {
            return pass_on(durable.error());
        }
    }
    if (auto fits = check_wish(*object, request); !fits) {
        return pass_on(fits.error());
    }
    return object->object;
}

Result<void> ObjectTable::make_recovery_durable()
{
    if (sync_needed_.load()) {
        const std::lock_guard guard(*links_.medium_lock);
        if (auto synced = links_.pool->medium().sync(); !synced) {
            return synced;
        }
        sync_needed_.store(false);
    }
    if (snapshot_needed_.load() && !is_removed(Canary::recovery_snapshot)) {
        if (auto durable = links_.snapshot_now(links_.engine); !durable) {
            return durable;
        }
        snapshot_needed_.store(false);
    }
    return {};
}

Result<void> ObjectTable::remove(Session& session, const char* name)
{
    const TableGuard guard(lock_, lock_owner_);
    if (auto outside = check_outside(guard.entered()); !outside) {
        return outside;
    }
    session_ = &session;
    if (auto recovered = recover_all(session); !recovered) {
        return recovered;
    }
    LiveObject* object = nullptr;
    {
        const FaseGuard fase;
        std::unique_lock directory_guard(session.directory_lock);
        const auto entry = session.directory->find(name);
        if (!entry) {
            return fail(SP_E_HANDLE_MISSING, 0, "there is no durable object \"{}\"", name);
        }
        if (auto sound = check_record(session, *entry); !sound) {
            return sound;
        }
        object = live_at(entry->address);
        if (object == nullptr || object->state.load(std::memory_order_relaxed) != LiveObject::open) {
            return object == nullptr ? fail(SP_E_OBJECT_TYPE, 0, "\"{}\" is not a durable object", name) : pass_on(object->refusal);
        }
        if (auto erased = session.directory->erase(name); !erased) {
            return erased;
        }
        object->state.store(LiveObject::deleted, std::memory_order_release);
        directory_guard.unlock();
        {
            const InsideObject inside(*object);
            object->type->destroy(object->object);
            if (object->record->twin_address != 0) {
                object->type->destroy(reinterpret_cast<void*>(object->record->twin_address));
            }
        }
        release(session, *object->record);
    }
    // The object's log goes with the next snapshot, as the other objects' do.
    return links_.snapshot_now(links_.engine);
}

void ObjectTable::refuse(LiveObject& object, const Failure& reason) noexcept
{
    if (object.state.load(std::memory_order_relaxed) == LiveObject::open) {
        object.refusal = reason;
        object.state.store(LiveObject::refused, std::memory_order_release);
    }
    {
        const std::lock_guard guard(refusal_lock_);
        if (!has_refusal_.load(std::memory_order_relaxed)) {
            refusal_ = reason;
            has_refusal_.store(true, std::memory_order_release);
        }
    }
    links_.give_up(links_.engine, reason);
    space_.wake_waiters();
}

void ObjectTable::before_capture() noexcept
{
    space_.note_capture(os::monotonic_ns());
    const std::uint64_t count = slot_count_.load(std::memory_order_acquire);
    for (std::uint64_t slot = 0; slot < count; ++slot) {
        LiveObject& object = *slots_[slot];
        const std::uint32_t state = object.state.load(std::memory_order_acquire);
        if (state == LiveObject::deleted) {
            object.retiring = space_.join(object.recovered, space_.join(object.chunk, object.retiring));
            object.chunk = object.recovered = no_chunk;
            object.live_sequence = object.next_sequence;
            continue;
        }
        ObjectRecord& record = *object.record;
        const std::uint64_t number = object.number.load(std::memory_order_acquire);
        // While its log is being run again all of it is still needed.
        const std::uint64_t sequence = state == LiveObject::open ? object.next_sequence : record.log_sequence;
        if (record.committed != number || record.log_sequence != sequence) {
            links_.prepare_write(links_.engine, &record, sizeof record);
            record.committed = is_removed(Canary::captured_numbers) ? record.committed : number;
            record.log_sequence = sequence;
            record.operation_ns = object.operation_ns.load(std::memory_order_relaxed);
        }
        if (state == LiveObject::open) {
            object.live_sequence = object.next_sequence;
            object.retiring = space_.join(object.recovered, space_.join(object.chunk, object.retiring));
            object.chunk = object.recovered = no_chunk;
            if (is_removed(Canary::retired_chunks)) {
                space_.give_back_list(object.retiring);
                object.retiring = no_chunk;
            }
        }
    }
}

void ObjectTable::release_retired_chunks() noexcept
{
    const std::uint64_t count = slot_count_.load(std::memory_order_acquire);
    for (std::uint64_t slot = 0; slot < count; ++slot) {
        LiveObject& object = *slots_[slot];
        if (object.retiring != no_chunk) {
            space_.give_back_list(object.retiring);
            object.retiring = no_chunk;
        }
    }
}

Result<void> ObjectTable::run_on_twin(Operation& operation)
{
    LiveObject& object = *operation.object;
    if (object.record->twin_address == 0) {
        return {};
    }
    void* const twin = reinterpret_cast<void*>(object.record->twin_address);
    const sp_pronto_method& method = object.type->methods[operation.program_method];
    const char* what = nullptr;
    {
        const InsideObject inside(object);
        try {
            what = method.replay(twin, operation.arguments, operation.argument_bytes) != SP_OK ? "its arguments do not decode" : nullptr;
        } catch (...) {
            what = "it threw an exception";
        }
        if (what == nullptr && object.type->equal != nullptr && object.type->equal(object.object, twin) == 0) {
            what = "the object differs from what the operation made before";
        }
    }
    if (what == nullptr) {
        return {};
    }
    const Failure reason = fail(SP_E_NOT_DETERMINISTIC, 0,
                                "the operation {}{} of the durable object \"{}\" was run a second time, and {}: an operation may "
                                "depend on the object and its arguments only, not on time, addresses, random numbers or threads",
                                method.name, method.signature, object.name.data(), what)
                               .value();
    refuse(object, reason);
    return pass_on(reason);
}

}  // namespace stillpoint::pronto
