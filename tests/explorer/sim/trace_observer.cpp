// Built with the canaries' switches, as the media that it observes.

#include "sim/trace_observer.hpp"

#include "core/units.hpp"
#include "media/observer.hpp"
#include "sim/store_tracer.hpp"
#include "sim/trace.hpp"

namespace stillpoint::sim {

namespace {

EventKind kind_of(MediumEvent event) noexcept
{
    switch (event) {
    case MediumEvent::store: return EventKind::store;
    case MediumEvent::nontemporal_store: return EventKind::nontemporal_store;
    case MediumEvent::write_back: return EventKind::write_back;
    case MediumEvent::fence: return EventKind::fence;
    case MediumEvent::block_write: return EventKind::block_write;
    case MediumEvent::sync: return EventKind::sync;
    case MediumEvent::sync_failed: return EventKind::sync_failed;
    case MediumEvent::resize: return EventKind::resize;
    case MediumEvent::name: return EventKind::name;
    case MediumEvent::name_sync: return EventKind::name_sync;
    case MediumEvent::replica_record: return EventKind::replica_record;
    case MediumEvent::replica_record_sync: return EventKind::replica_record_sync;
    }
    return EventKind::none;
}

bool nothing_is_recorded() noexcept { return recording.load(std::memory_order_acquire) == nullptr; }

class TraceObserver final : public MediumObserver {
public:
    void saw(MediumEvent event, std::uint64_t offset, const void* data, std::uint64_t size, std::uint64_t value) noexcept override
    {
        record(kind_of(event), offset, data, size, value);
    }

    Result<void> saw_mapping(const ObservedRange& range, int fd) override
    {
        return nothing_is_recorded() ? Result<void>{} : trace_stores(range, fd);
    }

    void saw_write_backs(std::span<const std::uintptr_t> line_addresses) noexcept override
    {
        if (nothing_is_recorded()) {
            return;
        }
        const BetweenTracedStores alone;  // A store whose bytes can be read is recorded.
        for (const std::uintptr_t address : line_addresses) {
            const std::uint64_t offset = traced_offset(address);
            record(EventKind::write_back, offset / cache_line_bytes * cache_line_bytes, nullptr, cache_line_bytes);
        }
    }
};

}  // namespace

void trace_media() noexcept
{
    static TraceObserver observer;
    medium_observer.store(&observer, std::memory_order_release);
}

}  // namespace stillpoint::sim
