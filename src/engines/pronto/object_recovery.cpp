// Recovery of objects: what the snapshot lacks is run again, in commit order, several objects at a time [Pronto §5.2.4].

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "core/canary.hpp"
#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/inside_object.hpp"
#include "engines/pronto/object_methods.hpp"
#include "engines/pronto/object_table.hpp"
#include "engines/pronto/record_checks.hpp"
#include "engines/pronto/types.hpp"
#include "heap/heap.hpp"
#include "os/log.hpp"
#include "runtime/fase.hpp"

namespace stillpoint::pronto {

namespace {

struct NamedEntry {
    std::string name;
    DirectoryEntry entry;
};

/// A heap block of the open pool that begins at `address` and has that many bytes.
bool is_block(const Session& session, std::uintptr_t address, std::uint64_t bytes) noexcept
{
    const auto base = reinterpret_cast<std::uintptr_t>(session.engine->image_base());
    if (address < base || address - base >= session.engine->image_bytes()) {
        return false;
    }
    const Heap::Block block = session.heap->find_block(reinterpret_cast<const void*>(address));
    return block.begin == reinterpret_cast<const std::byte*>(address) && block.usable_bytes >= bytes;
}

}  // namespace

Result<void> ObjectTable::read_logs(const Pool& pool)
{
    auto found = scan_chunks(pool);
    if (!found) {
        return pass_on(found.error());
    }
    chunks_ = std::move(*found);
    std::sort(chunks_.begin(), chunks_.end(), [](const ScannedChunk& a, const ScannedChunk& b) { return a.chunk < b.chunk; });
    std::size_t next = 0;
    for (ChunkIndex chunk = 0; chunk < space_.chunk_count(); ++chunk) {
        if (next < chunks_.size() && chunks_[next].chunk == chunk) {
            ++next;
        } else {
            space_.give_back(chunk);
        }
    }
    std::sort(chunks_.begin(), chunks_.end(), [](const ScannedChunk& a, const ScannedChunk& b) {
        return a.header.object != b.header.object ? a.header.object < b.header.object : a.header.sequence < b.header.sequence;
    });
    return {};
}

std::span<const ScannedChunk> ObjectTable::chunks_of(std::uint64_t identity) const
{
    const auto range = std::equal_range(chunks_.begin(), chunks_.end(), identity, [](const auto& a, const auto& b) {
        const auto key = [](const auto& value) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, ScannedChunk>) {
                return value.header.object;
            } else {
                return value;
            }
        };
        return key(a) < key(b);
    });
    return {range.first, range.second};
}

/// The directory and the record come from the pool file: believed only where they agree with the heap.
Result<void> ObjectTable::check_record(const Session& session, const DirectoryEntry& entry) const
{
    const auto damaged = [&](const char* what) {
        return fail(SP_E_POOL_CORRUPT, 0, "\"{}\" {}; run `stillpoint check`", entry.handle, what);
    };
    const auto* const record = reinterpret_cast<const ObjectRecord*>(entry.address);
    if (entry.size_bytes < sizeof(ObjectRecord) || entry.address % 64 != 0 || !is_block(session, entry.address, entry.size_bytes) ||
        record->magic != record_magic) {
        return fail(SP_E_OBJECT_TYPE, 0, "\"{}\" names other durable memory, not a durable object", entry.handle);
    }
    if (record->checksum != record_checksum(*record)) {
        return damaged("is a durable object whose record does not match its checksum");
    }
    if (!agrees_with_itself(*record, entry.size_bytes) ||
        !is_block(session, record->methods_address, record->method_count * sizeof(MethodRecord)) || !are_sound(method_table(*record)) ||
        (record->twin_address != 0 &&
         !is_block(session, record->twin_address - sizeof(ObjectRecord), sizeof(ObjectRecord) + record->size_bytes))) {
        return damaged("is a durable object whose record contradicts itself");
    }
    return {};
}

/// A named block that is not an object is the program's own.
Result<void> ObjectTable::adopt(Session& session, const DirectoryEntry& entry, std::set<std::uint64_t>& identities)
{
    if (auto sound = check_record(session, entry); !sound) {
        return sound.error().code == SP_E_OBJECT_TYPE ? Result<void>{} : sound;
    }
    auto& record = *reinterpret_cast<ObjectRecord*>(entry.address);
    if (!identities.insert(record.identity).second) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "\"{}\" is a durable object with the identity of another one: both would have one log; run "
                    "`stillpoint check`",
                    entry.handle);
    }
    const FaseGuard fase;
    auto added = add_live(record, entry.handle, find_type(record.type_name));
    if (!added) {
        return pass_on(added.error());
    }
    LiveObject& object = **added;
    object.refusal = fail(SP_E_OBJECT_TYPE, 0, "the durable object \"{}\" is of the type {}, which this program does not have",
                          entry.handle, record.type_name)
                         .value();
    for (const ScannedChunk& chunk : chunks_of(record.identity)) {
        object.next_sequence = std::max(object.next_sequence, chunk.header.sequence + 1);
        ChunkState& state = space_.state(chunk.chunk);
        if (is_superseded(chunk.header, record)) {
            space_.give_back(chunk.chunk);
        } else {
            state = {chunk.header.sequence, chunk_bytes, 0, 0, object.recovered, no_chunk, true};
            object.recovered = chunk.chunk;
        }
    }
    return {};
}

/// Chunks whose object is gone, or never became durable.
void ObjectTable::hand_out_chunks(bool all_objects_known)
{
    for (const ScannedChunk& chunk : chunks_) {
        const bool known = std::any_of(objects_.begin(), objects_.end(),
                                       [&](const LiveObject& object) { return object.identity == chunk.header.object; });
        if (!known && all_objects_known) {
            space_.give_back(chunk.chunk);
        }
    }
    space_.wake_waiters();
}

void ObjectTable::make_logs_durable() noexcept
{
    Medium& medium = links_.pool->medium();
    if (!medium.byte_addressable() || is_removed(Canary::recovered_log_durable)) {
        return;  // On block media the sync before the opening was recorded did it, and write_again() does what that may have missed.
    }
    const std::lock_guard guard(*links_.medium_lock);
    for (const LiveObject& object : objects_) {
        for (ChunkIndex chunk = object.recovered; chunk != no_chunk; chunk = space_.state(chunk).next) {
            medium.write_back(space_.file_offset(chunk), chunk_bytes);
        }
    }
    medium.fence();
}

Result<void> ObjectTable::recover_all(Session& session)
{
    if (!recovered_) {
        recovered_ = true;
        try {
            recovery_ = recover_found(session);
        } catch (const std::bad_alloc&) {
            recovery_ = fail(SP_E_NO_MEMORY, 0, "no memory to recover the durable objects; the pool has them as they were");
        }
    }
    if (!recovery_) {
        return recovery_;  // Some have their logs, others not, and a second attempt would begin in the middle.
    }
    return make_recovery_durable();
}

Result<void> ObjectTable::recover_found(Session& session)
{
    std::vector<NamedEntry> named;
    {
        const FaseGuard fase;
        const std::lock_guard guard(session.directory_lock);
        session.directory->for_each([&](const DirectoryEntry& entry) { named.push_back({std::string(entry.handle), entry}); });
    }
    std::set<std::uint64_t> identities;
    bool all_known = true;
    for (NamedEntry& known : named) {
        known.entry.handle = known.name;
        if (auto adopted = adopt(session, known.entry, identities); !adopted) {
            if (adopted.error().code == SP_E_NO_MEMORY) {
                return adopted;
            }
            // The others are available; this one says so when it is asked for.
            os::write_line(os::Severity::warning, adopted.error().text());
            all_known = false;
        }
    }
    hand_out_chunks(all_known);
    make_logs_durable();
    std::vector<LiveObject*> ready;
    for (LiveObject& object : objects_) {
        if (object.type != nullptr) {
            ready.push_back(&object);
        }
    }
    replay_in_parallel(ready);
    return {};
}

void ObjectTable::replay_in_parallel(std::span<LiveObject* const> objects)
{
    std::vector<LiveObject*> order(objects.begin(), objects.end());
    std::sort(order.begin(), order.end(),
              [&](const LiveObject* a, const LiveObject* b) { return chunks_of(a->identity).size() > chunks_of(b->identity).size(); });
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next.fetch_add(1); i < order.size(); i = next.fetch_add(1)) {
            recover(*order[i], false);
        }
    };
    const std::size_t threads = std::min<std::size_t>(order.size(), std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> helpers;
    try {
        for (std::size_t i = 1; i < threads; ++i) {
            helpers.emplace_back(work);
        }
    } catch (const std::exception&) {
        // No thread, or no memory for one: fewer do it too.
    }
    work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
}

void ObjectTable::recover(LiveObject& object, bool accept_changed_methods)
{
    const auto recovered = [&]() -> Result<void> {
        try {
            return recover_open(object, accept_changed_methods);
        } catch (const std::bad_alloc&) {  // Not of an operation: replay_one() catches all that those throw.
            return fail(SP_E_NO_MEMORY, 0, "no memory to recover the durable object \"{}\"", object.name.data());
        }
    }();
    if (!recovered) {
        object.refusal = recovered.error();
        os::write_line(os::Severity::warning, recovered.error().text());
    }
}

Result<void> ObjectTable::settle_damage(const LiveObject& object, ScannedLog& log) const
{
    if (log.damaged_number() == 0) {
        return {};
    }
    const auto table = method_table(*object.record);
    const auto method = log.damaged_method();
    const Failure damage =
        fail(SP_E_POOL_CORRUPT, 0,
             "the log of the durable object \"{}\" is damaged: operation {} ({}) was acknowledged and cannot be read; the operations up to "
             "{} are kept. Restore the pool from a copy, or continue without it and the operations after it: --damaged-log cut",
             object.name.data(), log.damaged_number(), method && *method < table.size() ? table[*method].name : "method not known",
             log.damaged_number() - 1)
            .value();
    if (!accept_damaged_log_) {
        return pass_on(damage);
    }
    log.cut_at_damage();
    os::log(os::Severity::warning, "{} (and {} later ones are left out)", damage.text(), log.left_out());
    return {};
}

/// Block media: entries that are readable may be in the page cache alone, where the run before could not sync them: its pages are clean
/// then, and no later sync writes them.
Result<void> ObjectTable::write_again(const ScannedLog& log, std::span<const ScannedChunk> chunks)
{
    Medium& medium = links_.pool->medium();
    if (medium.byte_addressable() || is_removed(Canary::log_written_again)) {
        return {};
    }
    alignas(page_bytes) std::array<std::byte, page_bytes> copy;
    for (const ScannedLog::Page& page : log.pages_not_known_durable()) {
        std::memcpy(copy.data(), log.bytes_of(page), copy.size());
        const BlockWrite write{chunks[page.chunk].file_offset + page.offset, copy.data(), copy.size()};
        const std::lock_guard guard(*links_.medium_lock);
        if (auto written = medium.write({&write, 1}); !written) {
            return written;
        }
        sync_needed_.store(true);
    }
    return {};
}

Result<void> ObjectTable::recover_open(LiveObject& object, bool accept_changed_methods)
{
    auto log = ScannedLog::read(*links_.pool, chunks_of(object.identity), *object.record);
    if (!log) {
        return pass_on(log.error());
    }
    if (auto settled = settle_damage(object, *log); !settled) {
        return settled;
    }
    if (auto written = write_again(*log, chunks_of(object.identity)); !written) {
        return written;
    }
    auto changed = match_methods(object, log->operations(), accept_changed_methods);
    if (!changed) {
        return pass_on(changed.error());
    }
    if (auto replayed = replay(object, *log); !replayed) {
        // The image has some of its operations, and perhaps half of one.
        if (has_refusal_.load(std::memory_order_acquire) || replayed.error().code != SP_E_OBJECT_REFUSED) {
            return replayed;
        }
        refuse(object, replayed.error());
        return replayed;
    }
    if (*changed) {
        if (auto updated = update_method_table(object); !updated) {
            return updated;
        }
    }
    if (log->has_gap()) {
        // The next entries would say that all before them was durable: then the missing one would pass for damage.
        snapshot_needed_.store(true);
    }
    object.first_number = object.number.load(std::memory_order_relaxed) + 1;
    object.state.store(LiveObject::open, std::memory_order_release);
    return {};
}

Result<void> ObjectTable::replay(LiveObject& object, const ScannedLog& log)
{
    const InsideObject inside(object);
    for (const LoggedOperation& operation : log.operations()) {
        // A snapshot between two operations has the first one, and its number.
        const FaseGuard fase;
        if (auto done = replay_one(object, operation); !done) {
            return done;
        }
        object.number.store(operation.number, std::memory_order_release);
        object.durable.store(operation.number, std::memory_order_release);
    }
    return {};
}

Result<void> ObjectTable::replay_one(LiveObject& object, const LoggedOperation& operation)
{
    const auto refused = [&](const char* why) {
        const auto table = method_table(*object.record);
        return fail(SP_E_OBJECT_REFUSED, 0,
                    "operation {} ({}) of the durable object \"{}\" {} when it was run again: is it deterministic? The object is available "
                    "from this pool with the program that wrote it",
                    operation.number, operation.method < table.size() ? table[operation.method].name : "a method not known",
                    object.name.data(), why);
    };
    if (operation.method >= object.program_methods.size() || object.program_methods[operation.method] == LiveObject::no_method) {
        return refused("names a method that is not there");
    }
    const sp_pronto_method& method = object.type->methods[object.program_methods[operation.method]];
    try {
        if (method.replay(object.object, operation.arguments.data(), operation.arguments.size()) != SP_OK) {
            return refused("has arguments that do not decode");
        }
        if (object.record->twin_address != 0) {
            method.replay(reinterpret_cast<void*>(object.record->twin_address), operation.arguments.data(), operation.arguments.size());
        }
    } catch (const std::exception& error) {
        return refused(error.what());
    } catch (...) {
        return refused("threw an exception");
    }
    return {};
}

Result<void> ObjectTable::update_method_table(LiveObject& object)
{
    const FaseGuard fase;
    ObjectRecord& record = *object.record;
    const std::size_t count = method_table_size(object);
    void* const block = session_->heap->allocate(std::max<std::size_t>(1, count) * sizeof(MethodRecord));
    if (block == nullptr) {
        return pass_on(Heap::last_failure());
    }
    fill_method_table(object, {static_cast<MethodRecord*>(block), count});
    session_->heap->deallocate(reinterpret_cast<void*>(record.methods_address));
    record.methods_address = reinterpret_cast<std::uintptr_t>(block);
    record.method_count = static_cast<std::uint32_t>(count);
    record.checksum = record_checksum(record);
    snapshot_needed_.store(true);
    return {};
}

}  // namespace stillpoint::pronto
