#include "sim/trace.hpp"

#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include "core/units.hpp"

namespace stillpoint::sim {

std::atomic<Trace*> recording{nullptr};

struct Trace::Header {
    std::atomic<std::uint64_t> used;
    std::atomic<std::uint64_t> overflowed;
};

struct Trace::Record {
    std::atomic<EventKind> kind;  ///< stored last
    std::uint8_t medium;
    std::uint32_t thread;
    std::uint64_t offset;
    std::uint64_t size;
    std::uint64_t payload_bytes;
    std::uint64_t value;
};

namespace {

bool carries_data(EventKind kind) noexcept
{
    return kind == EventKind::store || kind == EventKind::nontemporal_store || kind == EventKind::block_write || kind == EventKind::state ||
           kind == EventKind::operation || kind == EventKind::replica_record;
}

}  // namespace

Trace::Trace(std::size_t capacity_bytes) : capacity_(capacity_bytes)
{
    void* const memory = mmap(nullptr, sizeof(Header) + capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                              0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    header_ = ::new (memory) Header{};
}

Trace::~Trace() { munmap(header_, sizeof(Header) + capacity_); }

void Trace::add(EventKind kind, std::uint64_t offset, const void* data, std::uint64_t size, std::uint64_t value,
                std::uint8_t medium) noexcept
{
    const std::uint64_t payload = carries_data(kind) ? size : 0;
    const std::uint64_t bytes = sizeof(Record) + round_up(payload, 8);
    const std::uint64_t at = header_->used.fetch_add(bytes, std::memory_order_acq_rel);
    if (at + bytes > capacity_) {
        header_->overflowed.store(1, std::memory_order_release);
        return;
    }
    std::byte* const place = reinterpret_cast<std::byte*>(header_ + 1) + at;
    auto* const record = ::new (place) Record{};
    record->medium = medium;
    record->thread = static_cast<std::uint32_t>(gettid());
    record->offset = offset;
    record->size = size;
    record->payload_bytes = payload;
    record->value = value;
    if (payload != 0) {
        std::memcpy(place + sizeof(Record), data, payload);
    }
    record->kind.store(kind, std::memory_order_release);
}

void Trace::clear() noexcept
{
    const std::uint64_t used = header_->used.load(std::memory_order_acquire);
    const std::uint64_t dirty = used < capacity_ ? used : capacity_;
    std::memset(static_cast<void*>(header_ + 1), 0, dirty);
    header_->used.store(0, std::memory_order_release);
    header_->overflowed.store(0, std::memory_order_release);
}

bool Trace::overflowed() const noexcept { return header_->overflowed.load(std::memory_order_acquire) != 0; }

std::vector<Event> Trace::events() const
{
    std::vector<Event> events;
    const std::uint64_t used = header_->used.load(std::memory_order_acquire);
    const auto* const first = reinterpret_cast<const std::byte*>(header_ + 1);
    for (std::uint64_t at = 0; at + sizeof(Record) <= used && at + sizeof(Record) <= capacity_;) {
        const auto* const record = reinterpret_cast<const Record*>(first + at);
        const EventKind kind = record->kind.load(std::memory_order_acquire);
        if (kind == EventKind::none) {
            break;  // The program ended in the middle of it.
        }
        events.push_back({kind, record->thread, record->offset, record->size, record->value,
                          record->payload_bytes != 0 ? first + at + sizeof(Record) : nullptr, record->medium});
        at += sizeof(Record) + round_up(record->payload_bytes, 8);
    }
    return events;
}

}  // namespace stillpoint::sim
