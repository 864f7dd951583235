#pragma once
// The conversation of the medium and its agent (tools/rados_agent): one request to open, and its reply, over a socket; then requests in
// slots of memory that both share. The socket carries the number of a slot that has a request; the slot's `state` says when it is done.
//
// Both come from one build, and each checks all that it reads: the agent is another process, and its peer is the program of a user.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"

namespace stillpoint::rados {

inline constexpr std::uint32_t protocol_version = 4;
inline constexpr std::uint32_t protocol_magic = 0x41'52'50'53;  // "SPRA"

/// Bytes [n * object_bytes, (n + 1) * object_bytes) of the file are object n. A pool records the size that it was made with.
inline constexpr std::uint64_t object_bytes = 4 * mib;
inline constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 44;

inline constexpr std::size_t slot_bytes = 512 * kib;
inline constexpr std::uint32_t write_slots = 32;
inline constexpr std::uint32_t read_slots = 8;
inline constexpr std::uint32_t slot_count = write_slots + read_slots + 1;
inline constexpr std::uint32_t control_slot = slot_count - 1;  ///< resize, publish, claim and close; it has no data
inline constexpr std::uint32_t extents_max = slot_bytes / page_bytes;

/// The descriptors that the agent is started with.
inline constexpr int socket_descriptor = 3;
inline constexpr int memory_descriptor = 4;
inline constexpr int program_descriptor = 5;  ///< of the program's process (pidfd)

enum class Mode : std::uint32_t {
    create = 1,     ///< a pool that is not there, or whose creation was not finished
    write = 2,      ///< the only owner
    read_locked = 3,  ///< no owner meanwhile
    read = 4,
    owner = 5,      ///< says which process owns the pool, and nothing else
    standby = 6,    ///< follows a pool that another process owns; a second reply says that it is this one's: then as `write`
};

template <std::size_t size>
using Text = std::array<char, size>;

struct OpenRequest {
    std::uint32_t magic;
    std::uint32_t version;
    Mode mode;
    std::uint32_t take_over;   ///< 1: the pool is taken from an owner whose lease runs
    std::uint32_t lease_ms;
    std::uint32_t timeout_ms;  ///< after which opening has failed
    std::int32_t process;      ///< the program's
    std::uint32_t zero;
    std::uint64_t size_bytes;  ///< of a new pool; of the memory that a standby takes
    std::uint64_t writer;  ///< write, create: of an opener that says by Medium::claim() when it begins to write; 0: it writes at once
    Text<128> ceph_pool;
    Text<128> name;
    Text<128> user;
    Text<1024> configuration;
};

/// A Failure on its way; code 0: none.
struct Outcome {
    std::uint32_t code;
    std::int32_t os_error;
    Text<512> message;
};

struct OpenReply {
    std::uint32_t magic;
    std::uint32_t version;
    Outcome outcome;
    std::uint64_t size_bytes;
    std::uint32_t replicas;  ///< 0: not known; pieces of an object where `is_erasure_coded`
    std::int32_t owner_process;  ///< Mode::owner: of this machine; 0: none, or it cannot be seen from here
    std::uint32_t is_erasure_coded;
    std::uint32_t zero;
    std::uint64_t last_writer;  ///< the number in the head before this opening
};

/// Says that this slot has a request.
struct SlotMessage {
    std::uint32_t magic;
    std::uint32_t slot;
};

enum class Operation : std::uint32_t { none = 0, read = 1, write = 2, resize = 3, publish = 4, close = 5, claim = 6 };
enum class SlotState : std::uint32_t { free = 0, requested = 1, done = 2 };

/// A part of an object, and of the slot's data, in which extents follow each other without gaps.
struct Extent {
    std::uint32_t offset;  ///< in the object
    std::uint32_t size;
};

struct Slot {
    std::atomic<std::uint32_t> state;  ///< a SlotState; a futex
    Operation operation;
    std::uint64_t object;  ///< read, write
    std::uint64_t size_bytes;  ///< resize; claim: the writer's number
    std::uint32_t extent_count;  ///< read, write; a read has one
    std::uint32_t zero;
    std::array<Extent, extents_max> extents;
    Outcome outcome;  ///< of what is done
};

struct SharedState {
    std::uint32_t magic;
    std::uint32_t version;
    /// On the monotonic clock: until then no other owner takes the pool unless it is told to. 0: the lock needs no renewal.
    std::atomic<std::uint64_t> lease_until_ns;
    std::atomic<std::uint32_t> is_lost;  ///< 1: another process owns the pool, or may; `loss` says why
    std::uint32_t zero;
    Outcome loss;
    std::atomic<std::uint64_t> warm_bytes;  ///< standby: in memory
    std::atomic<std::uint64_t> wanted_bytes;  ///< standby: of the pool, as far as it fits into the memory
    std::atomic<std::uint32_t> adopter;  ///< standby: the process that has taken the link from the one that waited; 0: none yet
    std::atomic<std::uint32_t> is_full;  ///< 1: the cluster has no room for writes, which are sent again until it takes them
    std::array<Slot, slot_count> slots;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(OpenRequest) == 1456 && sizeof(OpenReply) == 560 && sizeof(SlotMessage) == 8 && sizeof(Extent) == 8);

inline constexpr std::size_t state_bytes = (sizeof(SharedState) + page_bytes - 1) / page_bytes * page_bytes;
inline constexpr std::size_t memory_bytes = state_bytes + (slot_count - 1) * slot_bytes;

/// The data of a slot in the shared memory; control_slot has none.
[[nodiscard]] inline std::byte* data_of(SharedState& state, std::uint32_t slot) noexcept
{
    return reinterpret_cast<std::byte*>(&state) + state_bytes + slot * slot_bytes;
}

/// False: the text does not fit.
template <std::size_t size>
[[nodiscard]] bool put_text(Text<size>& to, std::string_view text) noexcept
{
    to = {};
    if (text.size() >= size) {
        return false;
    }
    text.copy(to.data(), text.size());
    return true;
}

/// Up to the first zero, or all of it where there is none.
template <std::size_t size>
[[nodiscard]] std::string_view text_in(const Text<size>& from) noexcept
{
    return {from.data(), strnlen(from.data(), size)};
}

template <std::size_t size>
[[nodiscard]] bool is_terminated(const Text<size>& text) noexcept
{
    return std::memchr(text.data(), '\0', size) != nullptr;
}

inline void put_outcome(Outcome& to, const Failure& failure) noexcept
{
    to.code = static_cast<std::uint32_t>(failure.code);
    to.os_error = failure.os_error;
    std::memcpy(to.message.data(), failure.message, to.message.size());
    to.message.back() = '\0';
}

[[nodiscard]] Failure failure_in(const Outcome& outcome) noexcept;

/// Why a request to open is refused; nullptr: it is sound.
[[nodiscard]] const char* fault_in(const OpenRequest& request) noexcept;
/// Why a reply is refused; nullptr: it is sound.
[[nodiscard]] const char* fault_in(const OpenReply& reply) noexcept;

/// The request in a slot, copied once: the peer may change its own at any moment.
struct SlotRequest {
    Operation operation = Operation::none;
    std::uint64_t object = 0;
    std::uint64_t size_bytes = 0;
    std::uint32_t extent_count = 0;
    std::array<Extent, extents_max> extents{};
};
void copy_request(const Slot& slot, SlotRequest& request) noexcept;
/// Why a request is refused, of a pool that has `size_bytes`; nullptr: it is sound.
[[nodiscard]] const char* fault_in(const SlotRequest& request, std::uint32_t slot, std::uint64_t size_bytes) noexcept;

}  // namespace stillpoint::rados
