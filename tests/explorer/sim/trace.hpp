#pragma once
// Trace: what a program asked of its medium, in order, in memory that outlives the program.
//
// The explorer makes a trace in shared memory, forks the program, and reads the trace when the
// program has ended. Besides what reaches the medium it holds what the program was told (an epoch is durable)
// and what its state was, so that an oracle can say what a crash at any point may leave.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stillpoint::sim {

enum class EventKind : std::uint8_t {
    none,               ///< the end of a trace
    store,              ///< a store through the caches
    nontemporal_store,  ///< a store past them
    write_back,         ///< of the lines that overlap the range
    fence,
    block_write,        ///< handed to the kernel or the disk; value 1: a part of an operation on an object
    sync,               ///< a sync of content and size that succeeded
    sync_failed,        ///< one that failed: what was pending may be lost, and the kernel has forgotten it
    resize,             ///< value: the new size
    name,               ///< the file got its name
    name_sync,          ///< a sync of the directory
    acknowledge,        ///< value: the program learnt that this epoch is durable; offset: its operations; size: the running epoch
    state,              ///< value: an epoch; payload: StateRecord, then the digests of its pages
    operation,          ///< value: operations done; payload: the digest of the program's model after it
    part_recovered,     ///< offset: a part (see PartHistory); value: the digest of its state as the program found it
    part_state,         ///< offset: a part; value: the digest of its next state, before anything can make it durable
    part_withdrawn,     ///< likewise: it will never be, since its operation was rolled back
    part_acknowledge,   ///< offset: a part; value: the digest of a state that the program was told is durable
    part_number,        ///< offset: a part; value: a commit number that the program has seen; size: 1 if it must be a new one
    hand_over,          ///< objects: the writes since the last one to this object (value) are one operation
    head_changed,       ///< objects: size or name is acknowledged, and with it every earlier operation on the first object
    claim,              ///< objects: the number of the last writer becomes `value`, durably with the next head_changed
    replaced,           ///< the file gets the name of the pool, whose old file has none from then on; durable with the next name_sync
    replica_record,     ///< the record beside a pool with a replica is written from here on; payload: its bytes
    replica_record_sync,  ///< and is durable
    replica_acknowledge,  ///< as acknowledge: the program learnt that its replica has that
};

/// Payload of EventKind::state: what the image is at the capture of an epoch.
struct StateRecord {
    std::uint64_t operations;
    std::uint64_t image_pages;
};

struct Event {
    EventKind kind = EventKind::none;
    std::uint32_t thread = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t value = 0;
    const std::byte* data = nullptr;  ///< `size` bytes, in the trace, for kinds that carry any
    std::uint8_t medium = 0;  ///< sim::Stage::number
};

/// Threads: add() by any; the rest by one, when no thread adds.
class Trace {
public:
    /// Shared with children made by fork later. Throws std::bad_alloc.
    explicit Trace(std::size_t capacity_bytes);
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;
    ~Trace();

    /// Nothing more is recorded once it is full: overflowed() tells.
    void add(EventKind kind, std::uint64_t offset, const void* data, std::uint64_t size, std::uint64_t value,
             std::uint8_t medium = 0) noexcept;
    void clear() noexcept;
    [[nodiscard]] bool overflowed() const noexcept;
    /// The events; their data point into this trace.
    [[nodiscard]] std::vector<Event> events() const;

private:
    struct Header;
    struct Record;
    Header* header_;
    std::size_t capacity_;
};

/// The trace of this process; nullptr: nothing is recorded. Set before threads start.
extern std::atomic<Trace*> recording;

inline void record(EventKind kind, std::uint64_t offset = 0, const void* data = nullptr, std::uint64_t size = 0, std::uint64_t value = 0,
                   std::uint8_t medium = 0) noexcept
{
    if (Trace* const trace = recording.load(std::memory_order_acquire); trace != nullptr) {
        trace->add(kind, offset, data, size, value, medium);
    }
}

}  // namespace stillpoint::sim
