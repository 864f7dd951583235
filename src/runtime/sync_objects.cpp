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

/// The table of one image, and what its last capture found.
struct Table {
    std::atomic<std::uintptr_t> image_begin{0};  ///< 0: unused. Stored last.
    std::uintptr_t heap_begin = 0;
    std::uintptr_t image_end = 0;  ///< of the addresses that are the image's, present or to come
    // The rest is the checkpoint thread's.
    SyncObjectRecord* entries = nullptr;
    std::uint64_t capacity = 0;
    std::uint64_t used = 0;  ///< entries from here on are empty
    SyncObjectRecord* seen = nullptr;  ///< what a stop finds, by address; as large as the table
    std::uint64_t found_count = 0;
    bool full_reported = false;

    [[nodiscard]] bool holds(std::uintptr_t address) const noexcept
    {
        const std::uintptr_t begin = image_begin.load(std::memory_order_acquire);
        return begin != 0 && address >= begin && address < image_end;
    }
    [[nodiscard]] std::span<SyncObjectRecord> found() const noexcept { return {seen, found_count}; }
};
/// One for each pool that may be open at a time.
constinit std::array<Table, Heap::heaps_max> tables{};

/// The table of the image that has that address; nullptr: none is attached.
Table* table_of(std::uintptr_t address) noexcept
{
    const auto found = std::ranges::find_if(tables, [address](const Table& table) { return table.holds(address); });
    return found == tables.end() ? nullptr : &*found;
}

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

Result<void> map_found(Table& table)
{
    void* memory = mmap(nullptr, table.capacity * sizeof(SyncObjectRecord), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no memory for the table of synchronisation objects");
    }
    table.seen = static_cast<SyncObjectRecord*>(memory);
    return {};
}

/// One record for each object; of a mutex that is waited with and orphaned, the latter.
void make_unique(Table& table) noexcept
{
    const std::span<SyncObjectRecord> found = table.found();
    std::ranges::sort(found, [](const SyncObjectRecord& a, const SyncObjectRecord& b) {
        return a.address != b.address ? a.address<b.address : (a.kind & UINT8_MAX)>(b.kind & UINT8_MAX);
    });
    const auto same = std::ranges::unique(found, {}, &SyncObjectRecord::address);
    table.found_count = found.size() - same.size();
}

void find_one(void* context, const void* object, SyncObjectKind kind) noexcept
{
    Table& table = *static_cast<Table*>(context);
    const std::uintptr_t address = durable_address(object);
    if (!table.holds(address)) {
        return;
    }
    if (table.found_count == table.capacity) {
        make_unique(table);
    }
    if (table.found_count == table.capacity) {
        if (!table.full_reported) {
            table.full_reported = true;
            os::log(os::Severity::warning,
                    "threads wait in more than {} condition variables, barriers and semaphores in durable memory: the one at {:#x} and "
                    "others are not reset after a crash",
                    table.capacity, address);
        }
        return;
    }
    table.seen[table.found_count++] = {address,
                                       std::uint64_t{sync_object_fingerprint(object, kind)} << 32 | static_cast<std::uint64_t>(kind)};
}

void reset_recorded(const Table& table, const Heap::Options& heap) noexcept
{
    const auto image_address = reinterpret_cast<std::uintptr_t>(heap.image_base);
    std::uint64_t unproven = 0;
    for (SyncObjectRecord& record : std::span(table.entries, table.capacity)) {
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
    const std::uintptr_t address = durable_address(object);
    const Table* const table = table_of(address);
    return table != nullptr && address >= table->heap_begin && sync_object_is_aligned(object, kind);
}

namespace {

/// The calling thread alone attaches and detaches.
Result<void> attach_table(Table& table, const Heap::Options& heap, const ImageGeometry& geometry)
{
    const auto image_address = reinterpret_cast<std::uintptr_t>(heap.image_base);
    table.heap_begin = image_address + geometry.heap_offset;
    table.image_end = image_address + heap.image_bytes_max;
    table.entries = reinterpret_cast<SyncObjectRecord*>(heap.image_base + geometry.sync_objects_offset);
    table.capacity = geometry.sync_objects_capacity;
    table.used = 0;
    table.found_count = 0;
    table.full_reported = false;
    if (auto mapped = map_found(table); !mapped) {
        return mapped;
    }
    reset_recorded(table, heap);
    table.image_begin.store(image_address, std::memory_order_release);
    sync_uses::attached.store(true, std::memory_order_release);
    return {};
}

/// Mirrored ranges all have their copies in one image. What a late use may still look at stays mapped: a few pages for each pool that the
/// process opens.
void detach(Table& table) noexcept
{
    if (sync_uses::mirror_count.load(std::memory_order_relaxed) != 0 && table.holds(mirrors[0].image_copy)) {
        sync_uses::mirror_count.store(0, std::memory_order_relaxed);
    }
    table.image_begin.store(0, std::memory_order_release);
    table.found_count = 0;
    const bool any = std::ranges::any_of(tables, [](const Table& other) { return other.image_begin.load(std::memory_order_relaxed) != 0; });
    if (!any) {
        sync_uses::attached.store(false, std::memory_order_release);
    }
}

}  // namespace

Result<void> sync_objects_attach(const Heap::Options& heap, const ImageGeometry& geometry)
{
    const auto image_address = reinterpret_cast<std::uintptr_t>(heap.image_base);
    if (auto checked = sync_objects_check(heap, image_address, geometry); !checked) {
        return checked;
    }
    sync_objects_detach(heap.image_base);
    if (heap.table_format != layout::TableFormat::plain) {
        return {};
    }
    const auto unused = std::ranges::find_if(tables,
                                             [](const Table& table) { return table.image_begin.load(std::memory_order_relaxed) == 0; });
    if (unused == tables.end()) {
        return fail(SP_E_NO_MEMORY, 0, "this process has {} pools open, the maximum", tables.size());
    }
    return attach_table(*unused, heap, geometry);
}

void sync_objects_detach(const std::byte* image_base) noexcept
{
    if (Table* const table = table_of(reinterpret_cast<std::uintptr_t>(image_base)); table != nullptr) {
        detach(*table);
    }
}

void sync_objects_detach_all() noexcept
{
    for (Table& table : tables) {
        detach(table);
    }
}

void sync_objects_add_mirror(const std::byte* program_memory, std::byte* image_copy, std::size_t size) noexcept
{
    const auto count = sync_uses::mirror_count.load(std::memory_order_relaxed);
    if (count < mirrors.size()) {
        mirrors[count] = {reinterpret_cast<std::uintptr_t>(program_memory), reinterpret_cast<std::uintptr_t>(image_copy), size};
        sync_uses::mirror_count.store(count + 1, std::memory_order_release);
    }
}

SyncObjectsCapture::SyncObjectsCapture(const std::byte* image_base, Prepare prepare, void* context) noexcept
{
    sync_uses::begin_capture();
    Table* const table = table_of(reinterpret_cast<std::uintptr_t>(image_base));
    if (table == nullptr) {
        return;
    }
    table->found_count = 0;
    sync_uses::for_each(&find_one, table);
    make_unique(*table);
    const std::uint64_t used = std::max(table->found_count, table->used);
    for (std::uint64_t i = 0; i < used; ++i) {
        const SyncObjectRecord wanted = i < table->found_count ? table->seen[i] : SyncObjectRecord{};
        SyncObjectRecord& entry = table->entries[i];
        if (entry.address != wanted.address || entry.kind != wanted.kind) {
            prepare(context, reinterpret_cast<std::byte*>(&entry), sizeof wanted);
            announce_store(&entry, sizeof wanted);
            entry = wanted;
            note_store(&entry, sizeof wanted);
        }
    }
    table->used = table->found_count;
}

bool is_reset_by_recovery(std::uintptr_t address) noexcept
{
    const Table* const table = table_of(address);
    const std::span<const SyncObjectRecord> recorded = table != nullptr ? table->found() : std::span<SyncObjectRecord>{};
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
