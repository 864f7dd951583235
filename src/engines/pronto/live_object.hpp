#pragma once
// The state that the running process has of an object, of a thread's log and of an operation in progress.

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/result.hpp"
#include "engines/pronto/log_space.hpp"
#include "os/futex.hpp"
#include "runtime/session_state.hpp"
#include "stillpoint/pronto.h"

namespace stillpoint::pronto {

/// An object of an open pool. Lives until the pool is closed, also when the object is deleted: a thread that still waits for it may look.
struct alignas(128) LiveObject {
    enum State : std::uint32_t {
        unrecovered = 0,  ///< its logged operations have not been run again yet
        open = 1,
        refused = 2,      ///< an operation changed it and was not logged, or cannot be run again
        deleted = 3,
    };

    /// Nanoseconds that running an operation again takes: a running mean of those that are timed.
    std::atomic<std::uint64_t> operation_ns{0};

    // Constant while it is open.
    Session* session = nullptr;  ///< the pool's
    ObjectRecord* record = nullptr;
    std::byte* object = nullptr;
    const sp_pronto_type* type = nullptr;  ///< nullptr: this program does not know the type
    std::uint64_t identity = 0;
    std::uint64_t incarnation = 0;              ///< of no other LiveObject of the process, so that a thread's piece is of this one
    std::uint64_t log_key = 0;                  ///< log_key_of() in this run
    std::uint64_t first_number = 1;             ///< the first commit number of this run
    std::array<char, 80> name{};
    static constexpr std::uint16_t no_method = UINT16_MAX;
    std::vector<std::uint8_t> pool_methods;      ///< by the program's method number: the pool's
    std::vector<std::uint16_t> program_methods;  ///< by the pool's method number: the program's, or no_method

    /// Option verify_replay: one operation at a time, since whole objects are compared. Taken before the operation's FASE.
    os::FutexLock verifying_lock;

    std::atomic<std::uint32_t> state{unrecovered};
    Failure refusal{};  ///< valid once it is refused

    /// Commit number of the newest committed operation; and one up to which all are known to be durable, which on byte-addressable media
    /// may step back.
    alignas(128) std::atomic<std::uint64_t> number{0};
    alignas(128) std::atomic<std::uint64_t> durable{0};

    /// Guards what follows, and on block media the order of numbers.
    alignas(128) os::FutexLock log_lock;
    std::uint64_t next_sequence = 0;
    /// Chunks with a smaller number have nothing that the newest capture lacks: a thread's piece of one is void. Changed in stops.
    std::uint64_t live_sequence = 0;
    ChunkIndex chunk = no_chunk;  ///< where the next entry goes; the first of the list
    ChunkIndex recovered = no_chunk;  ///< chunks of earlier runs
    ChunkIndex retiring = no_chunk;  ///< chunks that the snapshot in progress makes superfluous
    LiveObject* next_pending = nullptr;  ///< block media: in the list of objects to be flushed
    LiveObject* next_flushed = nullptr;  ///< and in that of those being flushed, by the log thread alone
    std::uint64_t captured_number = 0;  ///< what that makes durable
    bool is_pending = false;
    ChunkIndex dirty = no_chunk;  ///< block media: the first chunk whose mirror differs from the medium
};

/// A piece of a log that an operation has to itself.
struct EntryPlace {
    ChunkIndex chunk;
    std::uint32_t offset;  ///< in the chunk
    std::uint64_t place;  ///< place_of()
    std::uint64_t argument_begin;
    std::uint32_t argument_bytes;
};

struct ThreadLog;

/// sp_pronto_operation's content.
struct Operation {
    enum State : std::uint8_t {
        inactive = 0,  ///< inside another operation, or while operations are run again: nothing is logged
        begun = 1,
        logging = 2,  ///< its arguments are complete
        committed = 3,  ///< durable, or not waited for
        early = 4,  ///< has its number, may not be durable yet
        failed = 5,  ///< has changed the object, and will not be durable
    };

    Session* session;  ///< of the object's pool; while the operation lasts the thread acts on it. nullptr: nothing was begun
    Session* chosen_before;  ///< by the thread
    LiveObject* object;
    ThreadLog* thread;
    std::byte* arguments;
    std::uint64_t argument_bytes;
    std::uint64_t number;
    std::uint64_t hash;  ///< arguments_hash() of the first part
    std::uint64_t begun_ns;  ///< where a sibling's use is measured; 0: it is not
    std::uint64_t timed_ns;  ///< where the operation's own time is; 0: it is not
    EntryPlace first;
    std::uint16_t program_method;
    std::uint8_t method;  ///< the pool's number
    State state;
    bool inside_fase;
    bool is_verifying;  ///< holds the object's verifying_lock
    bool by_sibling;  ///< a sibling is making the arguments durable
};
static_assert(sizeof(Operation) <= sizeof(sp_pronto_operation) && std::is_trivially_copyable_v<Operation>);

}  // namespace stillpoint::pronto
