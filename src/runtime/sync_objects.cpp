#include "runtime/sync_objects.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <sys/mman.h>

#include "core/store_marks.hpp"
#include "os/log.hpp"
#include "pool/image_layout.hpp"
#include "runtime/sync_object_reset.hpp"

namespace stillpoint {

namespace {

using layout::SyncObjectRecord;

struct Mirror {
    std::uintptr_t program_memory;
    std::uintptr_t image_copy;
    std::size_t size;
};

constinit std::array<Mirror, 32> mirrors{};
constinit std::uintptr_t heap_begin = 0;
/// The rest is the checkpoint thread's.
constinit SyncObjectRecord* table = nullptr;
constinit std::uint64_t table_capacity = 0;
constinit std::uint64_t table_used = 0;  ///< entries from here on are empty
constinit SyncObjectRecord* seen = nullptr;  ///< what a stop finds, by address; as large as the table
constinit std::uint64_t found_count = 0;
constinit bool full_reported = false;

/// The durable address of an object: its own, or that of its mirrored copy. 0: it is not durable.
std::uintptr_t durable_address(const void* object) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    if (stillpoint_is_persistent(object)) {
        return address;
    }
    const auto count = sync_uses::mirror_count.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (address - mirrors[i].program_memory < mirrors[i].size) {
            return mirrors[i].image_copy + (address - mirrors[i].program_memory);
        }
    }
    return 0;
}

SyncObjectKind kind_of(const SyncObjectRecord& record) noexcept { return static_cast<SyncObjectKind>(record.kind); }
std::uint32_t fingerprint_of(const SyncObjectRecord& record) noexcept { return static_cast<std::uint32_t>(record.kind >> 32); }

Heap::Owner owner_of(const Heap::Options& heap, std::uintptr_t image_address, const SyncObjectRecord& record) noexcept
{
    return Heap::owner_of(heap, record.address - image_address, sync_object_bytes(kind_of(record)));
}

Result<void> check_record(const SyncObjectRecord& record, std::uint64_t index, const Heap::Options& heap, std::uintptr_t image_address)
{
    const auto size = static_cast<std::uint32_t>(record.kind) <= UINT8_MAX ? sync_object_bytes(kind_of(record)) : 0;
    if (size == 0) {
        return fail(SP_E_POOL_CORRUPT, 0, "synchronisation object {}: unknown kind {}", index, record.kind);
    }
    if (record.address % alignof(pthread_spinlock_t) != 0 || owner_of(heap, image_address, record) == Heap::Owner::heap) {
        return fail(
            SP_E_POOL_CORRUPT, 0,
            "synchronisation object {}: address {:#x} is not inside a block of the heap: the pool is damaged; restore it from a copy",
            index, record.address);
    }
    return {};
}

Result<void> map_found(std::uint64_t capacity)
{
    void* memory = mmap(nullptr, capacity * sizeof(SyncObjectRecord), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                        -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no memory for the table of synchronisation objects");
    }
    seen = static_cast<SyncObjectRecord*>(memory);
    return {};
}

/// One record for each object; of a mutex that is waited with and orphaned, the latter.
void make_unique() noexcept
{
    const auto end = seen + found_count;
    std::sort(seen, end, [](const SyncObjectRecord& a, const SyncObjectRecord& b) {
        return a.address != b.address ? a.address<b.address : (a.kind & UINT8_MAX)>(b.kind & UINT8_MAX);
    });
    found_count = static_cast<std::uint64_t>(
        std::unique(seen, end, [](const SyncObjectRecord& a, const SyncObjectRecord& b) { return a.address == b.address; }) - seen);
}

void find_one(void*, const void* object, SyncObjectKind kind) noexcept
{
    const std::uintptr_t address = durable_address(object);
    if (address == 0) {
        return;
    }
    if (found_count == table_capacity) {
        make_unique();
    }
    if (found_count == table_capacity) {
        if (!full_reported) {
            full_reported = true;
            os::log(os::Severity::warning,
                    "threads wait in more than {} condition variables, barriers and semaphores in durable memory: the one at {:#x} and "
                    "others are not reset after a crash",
                    table_capacity, address);
        }
        return;
    }
    seen[found_count++] = {address, std::uint64_t{sync_object_fingerprint(object, kind)} << 32 | static_cast<std::uint64_t>(kind)};
}

void reset_recorded(const Heap::Options& heap) noexcept
{
    const auto image_address = reinterpret_cast<std::uintptr_t>(heap.image_base);
    std::uint64_t unproven = 0;
    for (SyncObjectRecord& record : std::span(table, table_capacity)) {
        if (record.address == 0) {
            continue;
        }
        auto* const object = reinterpret_cast<void*>(record.address);
        unproven += fingerprint_of(record) == 0 ? 1U : 0U;
        if (owner_of(heap, image_address, record) == Heap::Owner::program && sync_object_is_aligned(object, kind_of(record)) &&
            fingerprint_of(record) == sync_object_fingerprint(object, kind_of(record))) {
            announce_store(object, sync_object_bytes(kind_of(record)));
            if (reset_sync_object(object, kind_of(record))) {
                note_store(object, sync_object_bytes(kind_of(record)));
            }
        }
        announce_store(&record, sizeof record);
        record = {};
        note_store(&record, sizeof record);
    }
    if (unproven != 0) {
        os::log(
            os::Severity::warning,
            "{} condition variables, barriers, semaphores and mutexes were in use at some time before this start, as an earlier version "
            "of Stillpoint has noted; whether they still are cannot be known, so they are left as they are. If threads wait forever, "
            "have the program initialise them again",
            unproven);
    }
}

}  // namespace

bool sync_uses::is_durable_object(const void* object, SyncObjectKind kind) noexcept
{
    return sync_object_is_aligned(object, kind) && durable_address(object) >= heap_begin;
}

Result<void> sync_objects_attach(const Heap::Options& heap, const ImageGeometry& geometry)
{
    const auto image_address = reinterpret_cast<std::uintptr_t>(heap.image_base);
    if (auto checked = sync_objects_check(heap, image_address, geometry); !checked) {
        return checked;
    }
    sync_objects_detach();
    if (heap.table_format != layout::TableFormat::plain) {
        return {};
    }
    if (auto mapped = map_found(geometry.sync_objects_capacity); !mapped) {
        return mapped;
    }
    table = reinterpret_cast<SyncObjectRecord*>(heap.image_base + geometry.sync_objects_offset);
    table_capacity = geometry.sync_objects_capacity;
    reset_recorded(heap);
    heap_begin = image_address + geometry.heap_offset;
    sync_uses::attached.store(true, std::memory_order_release);
    return {};
}

void sync_objects_detach() noexcept
{
    sync_uses::attached.store(false, std::memory_order_release);
    sync_uses::mirror_count.store(0, std::memory_order_relaxed);
    table = nullptr;
    table_capacity = 0;
    table_used = 0;
    found_count = 0;
    full_reported = false;
}

void sync_objects_add_mirror(const std::byte* program_memory, std::byte* image_copy, std::size_t size) noexcept
{
    const auto count = sync_uses::mirror_count.load(std::memory_order_relaxed);
    if (count < mirrors.size()) {
        mirrors[count] = {reinterpret_cast<std::uintptr_t>(program_memory), reinterpret_cast<std::uintptr_t>(image_copy), size};
        sync_uses::mirror_count.store(count + 1, std::memory_order_release);
    }
}

SyncObjectsCapture::SyncObjectsCapture(Prepare prepare, void* context) noexcept
{
    sync_uses::begin_capture();
    found_count = 0;
    if (table == nullptr) {
        return;
    }
    sync_uses::for_each(&find_one, nullptr);
    make_unique();
    const std::uint64_t used = std::max(found_count, table_used);
    for (std::uint64_t i = 0; i < used; ++i) {
        const SyncObjectRecord wanted = i < found_count ? seen[i] : SyncObjectRecord{};
        if (table[i].address != wanted.address || table[i].kind != wanted.kind) {
            auto* const entry = reinterpret_cast<std::byte*>(&table[i]);
            prepare(context, entry, sizeof wanted);
            announce_store(entry, sizeof wanted);
            table[i] = wanted;
            note_store(entry, sizeof wanted);
        }
    }
    table_used = found_count;
}

bool is_reset_by_recovery(std::uintptr_t address) noexcept
{
    const std::span<const SyncObjectRecord> recorded(seen, found_count);
    const auto after = std::upper_bound(recorded.begin(), recorded.end(), address,
                                        [](std::uintptr_t wanted, const SyncObjectRecord& record) { return wanted < record.address; });
    if (after == recorded.begin()) {
        return false;
    }
    const SyncObjectRecord& record = *(after - 1);
    // A semaphore's value, its first word, is the program's.
    const std::size_t kept_bytes = kind_of(record) == SyncObjectKind::semaphore ? sizeof(unsigned) : 0;
    return address - record.address >= kept_bytes && address - record.address < sync_object_bytes(kind_of(record));
}

Result<void> sync_objects_check(const Heap::Options& heap, std::uintptr_t image_address, const ImageGeometry& geometry)
{
    const auto* records = reinterpret_cast<const SyncObjectRecord*>(heap.image_base + geometry.sync_objects_offset);
    for (std::uint64_t i = 0; i < geometry.sync_objects_capacity; ++i) {
        if (records[i].address == 0) {
            continue;
        }
        if (auto checked = check_record(records[i], i, heap, image_address); !checked) {
            return checked;
        }
    }
    return {};
}

}  // namespace stillpoint
