#include "runtime/sync_objects.hpp"

#include <array>
#include <cerrno>
#include <mutex>
#include <sys/mman.h>

#include "core/store_marks.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "pool/image_layout.hpp"
#include "runtime/fase.hpp"
#include "runtime/sync_object_reset.hpp"
#include "runtime/sync_object_set.hpp"

namespace stillpoint {

namespace sync_objects {
constinit std::atomic<std::uint32_t> attached{0};
constinit std::atomic<std::uint32_t> mirror_count{0};
constinit std::atomic<std::uint32_t> entry_count{0};
}  // namespace sync_objects

namespace {

using layout::SyncObjectRecord;

struct Mirror {
    std::uintptr_t program_memory;
    std::uintptr_t image_copy;
    std::size_t size;
};

/// One object is at least this large, and so aligned: a spinlock.
constexpr std::size_t object_alignment = 4;

/// Serialises changes. Taken inside a FASE only, so in a quiescent state nobody holds it.
constinit os::FutexLock table_lock{};
constinit SyncObjectSet recorded{};
constinit SyncObjectRecord* table = nullptr;
constinit std::uint64_t table_capacity = 0;
constinit std::uint64_t table_used = 0;  ///< entries from here on have never been used
constinit std::uint32_t* free_entries = nullptr;  ///< a stack of entries below table_used
constinit std::uint64_t free_count = 0;
constinit std::array<Mirror, 32> mirrors{};
constinit bool full_reported = false;

/// The durable address of an object: its own, or that of its mirrored copy. 0: it is not durable.
std::uintptr_t durable_address(const void* object) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    if (stillpoint_is_persistent(object)) {
        return address;
    }
    const auto count = sync_objects::mirror_count.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (address - mirrors[i].program_memory < mirrors[i].size) {
            return mirrors[i].image_copy + (address - mirrors[i].program_memory);
        }
    }
    return 0;
}

Result<void> check_record(const SyncObjectRecord& record, std::uint64_t index,
                          std::uintptr_t image_address, const ImageGeometry& geometry,
                          std::uint64_t image_bytes)
{
    const auto size = sync_object_bytes(static_cast<SyncObjectKind>(record.kind));
    if (size == 0) {
        return fail(SP_E_POOL_CORRUPT, 0, "synchronisation object {}: unknown kind {}", index,
                    record.kind);
    }
    const std::uint64_t offset = record.address - image_address;
    if (record.address % object_alignment != 0 || offset < geometry.heap_offset ||
        offset > image_bytes || image_bytes - offset < size) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "synchronisation object {}: address {:#x} is not inside the heap", index,
                    record.address);
    }
    return {};
}

Result<void> map_memory(std::uint64_t capacity)
{
    void* memory = mmap(nullptr, capacity * sizeof(std::uint32_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || !recorded.map(capacity)) {
        return fail(SP_E_NO_MEMORY, errno, "no memory for the table of synchronisation objects");
    }
    free_entries = static_cast<std::uint32_t*>(memory);
    return {};
}

void store_record(std::uint32_t entry, const SyncObjectRecord& record) noexcept
{
    table[entry] = record;
    note_store(&table[entry], sizeof table[entry]);
}

void free_entry(std::uint32_t entry) noexcept
{
    store_record(entry, {});
    free_entries[free_count++] = entry;
}

/// Callers hold the lock and are inside a FASE.
void record_new(std::uintptr_t address, SyncObjectKind kind) noexcept
{
    std::uint32_t entry = 0;
    if (free_count != 0) {
        entry = free_entries[--free_count];
    } else if (table_used < table_capacity) {
        entry = static_cast<std::uint32_t>(table_used++);
    } else {
        if (!full_reported) {
            full_reported = true;
            os::log(os::Severity::warning,
                    "more than {} condition variables, barriers and semaphores in durable memory: "
                    "the one at {:#x} and later ones are not reset after a crash",
                    table_capacity, address);
        }
        return;
    }
    store_record(entry, {address, static_cast<std::uint64_t>(kind)});
    recorded.insert(address, entry);
    sync_objects::entry_count.fetch_add(1, std::memory_order_relaxed);
}

/// Callers hold the lock and are inside a FASE.
void erase(std::uintptr_t address) noexcept
{
    const auto entry = recorded.find(address);
    if (entry == SyncObjectSet::none) {
        return;
    }
    recorded.erase(address);
    free_entry(entry);
    sync_objects::entry_count.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void sync_objects::note_slowly(const void* object, SyncObjectKind kind) noexcept
{
    const auto address = durable_address(object);
    if (attached.load(std::memory_order_acquire) == 0 || address == 0) {
        return;
    }
    const auto known = recorded.find(address);
    if (known != SyncObjectSet::none && kind != SyncObjectKind::orphaned_mutex) {
        return;
    }
    const FaseGuard fase;
    const std::scoped_lock lock{table_lock};
    const auto entry = recorded.find(address);
    if (entry == SyncObjectSet::none) {
        record_new(address, kind);
    } else if (kind == SyncObjectKind::orphaned_mutex) {
        store_record(entry, {address, static_cast<std::uint64_t>(kind)});
    }
}

void sync_objects::forget_slowly(const void* object, std::size_t size) noexcept
{
    const auto first = durable_address(object);
    if (attached.load(std::memory_order_acquire) == 0 || first == 0 || size == 0 ||
        !recorded.may_hold_one_in(first, size)) {
        return;
    }
    const FaseGuard fase;
    const std::scoped_lock lock{table_lock};
    if (size / object_alignment <= table_used) {
        for (std::uintptr_t address = first; address < first + size; address += object_alignment) {
            erase(address);
        }
        return;
    }
    for (std::uint64_t i = 0; i < table_used; ++i) {
        if (table[i].address - first < size) {
            erase(table[i].address);
        }
    }
}

Result<void> sync_objects_attach(std::byte* image_base, const ImageGeometry& geometry,
                                 std::uint64_t image_bytes)
{
    const auto image_address = reinterpret_cast<std::uintptr_t>(image_base);
    if (auto checked = sync_objects_check(image_base, image_address, geometry, image_bytes); !checked) {
        return checked;
    }
    sync_objects_detach();
    if (auto mapped = map_memory(geometry.sync_objects_capacity); !mapped) {
        return mapped;
    }
    table = reinterpret_cast<SyncObjectRecord*>(image_base + geometry.sync_objects_offset);
    table_capacity = geometry.sync_objects_capacity;
    table_used = table_capacity;
    while (table_used > 0 && table[table_used - 1].address == 0) {
        --table_used;
    }
    for (std::uint64_t i = 0; i < table_used; ++i) {
        const auto entry = static_cast<std::uint32_t>(i);
        const SyncObjectRecord record = table[i];
        if (record.address == 0) {
            free_entries[free_count++] = entry;
        } else if (recorded.find(record.address) != SyncObjectSet::none ||
                   !reset_sync_object(reinterpret_cast<void*>(record.address),
                                      static_cast<SyncObjectKind>(record.kind))) {
            free_entry(entry);
        } else {
            note_store(reinterpret_cast<void*>(record.address),
                       sync_object_bytes(static_cast<SyncObjectKind>(record.kind)));
            recorded.insert(record.address, entry);
            sync_objects::entry_count.fetch_add(1, std::memory_order_relaxed);
        }
    }
    sync_objects::attached.store(1, std::memory_order_release);
    return {};
}

void sync_objects_detach() noexcept
{
    sync_objects::attached.store(0, std::memory_order_release);
    sync_objects::entry_count.store(0, std::memory_order_relaxed);
    sync_objects::mirror_count.store(0, std::memory_order_relaxed);
    table_lock.reset_after_fork();
    free_count = 0;
    full_reported = false;
    // The maps stay: another thread may be looking into them. One pair per sp_open.
    free_entries = nullptr;
}

void sync_objects_add_mirror(const std::byte* program_memory, std::byte* image_copy,
                             std::size_t size) noexcept
{
    const auto count = sync_objects::mirror_count.load(std::memory_order_relaxed);
    if (count < mirrors.size()) {
        mirrors[count] = {reinterpret_cast<std::uintptr_t>(program_memory),
                          reinterpret_cast<std::uintptr_t>(image_copy), size};
        sync_objects::mirror_count.store(count + 1, std::memory_order_release);
    }
}

bool is_reset_by_recovery(std::uintptr_t address) noexcept
{
    constexpr std::uintptr_t largest_bytes = 64;
    if (sync_objects::attached.load(std::memory_order_acquire) == 0) {
        return false;
    }
    const std::uintptr_t nearest = address / object_alignment * object_alignment;
    for (std::uintptr_t begin = nearest; begin + largest_bytes > nearest; begin -= object_alignment) {
        const auto entry = recorded.find(begin);
        if (entry == SyncObjectSet::none) {
            continue;
        }
        const auto kind = static_cast<SyncObjectKind>(table[entry].kind);
        // A semaphore's value, its first word, is the program's.
        const std::size_t kept_bytes = kind == SyncObjectKind::semaphore ? sizeof(unsigned) : 0;
        return address - begin >= kept_bytes && address - begin < sync_object_bytes(kind);
    }
    return false;
}

Result<void> sync_objects_check(const std::byte* image, std::uintptr_t image_address,
                                const ImageGeometry& geometry, std::uint64_t image_bytes)
{
    const auto* records =
        reinterpret_cast<const SyncObjectRecord*>(image + geometry.sync_objects_offset);
    for (std::uint64_t i = 0; i < geometry.sync_objects_capacity; ++i) {
        if (records[i].address == 0) {
            continue;
        }
        if (auto checked = check_record(records[i], i, image_address, geometry, image_bytes);
            !checked) {
            return checked;
        }
    }
    return {};
}

}  // namespace stillpoint
