#pragma once
// The state of each thread that does operations: a place for the arguments, and how it logs.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "engines/pronto/live_object.hpp"
#include "media/medium.hpp"

namespace stillpoint::pronto {

/// A piece of work for a sibling thread: the lines of an entry after its first.
struct alignas(128) SiblingJob {
    enum State : std::uint32_t { idle = 0, ready = 1, done = 2 };
    std::atomic<std::uint32_t> state{idle};
    const std::byte* arguments = nullptr;
    std::uint64_t argument_bytes = 0;
    std::uint64_t log_key = 0;
    std::uint64_t place = 0;
    std::uint64_t file_offset = 0;  ///< of the entry
    std::uint64_t hash = 0;         ///< the result
};

/// Whether a sibling pays is found out by doing some operations each way [§5.2.1; the paper always has one]. Medians are compared: one
/// operation that the kernel interrupted, or that was the first to touch a page, says nothing. Where other programs have the CPUs,
/// a sibling that paid a moment ago is late, and each operation would wait for it; then it is left alone until the next look.
class LoggingChoice {
public:
    /// True: let the sibling do it. `measured`: the caller tells note() how long it took.
    bool choose(bool& measured) noexcept;
    void note(bool by_sibling, std::uint64_t ns) noexcept;
    /// The sibling had to be woken, or was not running when the operation waited for it.
    void note_late() noexcept;

private:
    static constexpr std::uint32_t probe_operations = 16;  ///< each way, in turn
    static constexpr std::uint32_t late_operations_max = 4;
    static constexpr std::uint32_t period_operations_min = 8192;
    /// Looking costs, too: less and less often where it never pays.
    static constexpr std::uint32_t period_operations_max = 1u << 20;

    void decide() noexcept;

    std::uint32_t count_ = 0;
    std::uint32_t period_operations_ = period_operations_min;
    std::uint32_t late_operations_ = 0;
    bool sibling_pays_ = false;
    std::uint32_t noted_[2] = {0, 0};                ///< by the thread, by its sibling
    std::uint64_t ns_[2][probe_operations] = {};
};

/// Locks that the thread's operation holds, for option check_commit_order (commit_order.hpp). More are not watched.
struct OperationLocks {
    struct Lock {
        const void* lock;
        std::uint64_t when;
    };
    std::array<Lock, 32> locks{};
    std::uint32_t count = 0;
    const Operation* operation = nullptr;
};

/// Room in an object's log that a thread has to itself, so that threads that do small operations on one object do not take turns for each.
/// What is left of one stays unused: the scanner steps over it.
struct LogPiece {
    static constexpr std::uint32_t bytes_wanted = 16 * cache_line_bytes;
    /// Larger entries take their room from the object.
    static constexpr std::uint32_t entry_bytes_max = 4 * cache_line_bytes;

    /// The thread's newest operation on the object is known.
    [[nodiscard]] bool has_number_on(const LiveObject& object) const noexcept { return incarnation == object.incarnation && number != 0; }

    std::uint64_t incarnation = 0;  ///< LiveObject::incarnation; 0: none
    std::uint64_t sequence = 0;     ///< of the chunk
    ChunkIndex chunk = no_chunk;
    std::uint32_t next = 0;         ///< in the chunk
    std::uint32_t end = 0;
    std::uint64_t number = 0;       ///< of the thread's newest operation on the object; 0: not known
};

/// Operations of a thread that one fence makes durable, on byte-addressable media (sp_pronto_group_begin).
struct LogGroup {
    static constexpr std::uint32_t lines_max = 32;

    std::uint32_t depth = 0;       ///< groups that have begun and not ended: the outermost counts
    std::uint32_t line_count = 0;
    LiveObject* object = nullptr;  ///< the group has entries of it that are not durable; nullptr: none
    Medium* medium = nullptr;      ///< the object's
    Medium* lost = nullptr;        ///< one that has lost pages: what the group has stored there may be gone
    std::uint64_t last = 0;        ///< number of the newest of them
    /// First lines that are stored with the fence: until then nothing waits for any.
    std::array<LineWrite, lines_max> places{};
    alignas(cache_line_bytes) std::array<std::array<std::byte, cache_line_bytes>, lines_max> lines{};
};

struct ThreadLog {
    static constexpr std::size_t header_room = sizeof(EntryHeader);

    /// Place for that many bytes of arguments, 8-byte aligned, with header_room before them in the same cache line, and a line
    /// of zeroes after them. Errors: no_memory.
    [[nodiscard]] Result<std::byte*> place_for(std::uint64_t argument_bytes);
    /// Another one, for arguments that are not logged.
    [[nodiscard]] Result<std::byte*> place_for_nothing(std::uint64_t argument_bytes);

    /// Where the thread's piece of the object's log is kept; that of another object may be there.
    [[nodiscard]] LogPiece& piece_of(const LiveObject& object) noexcept { return pieces[object.incarnation % pieces.size()]; }

    SiblingJob job;
    LoggingChoice choice;
    std::uint32_t operations = 0;           ///< counted to time some
    Operation* current = nullptr;           ///< innermost operation that is logged
    const LiveObject* replaying = nullptr;  ///< operations of it are being run again by this thread
    std::vector<EntryPlace> parts;          ///< of the current operation, if it has more than one
    std::uint32_t deferrals = 0;            ///< of waiting, that have begun and not ended
    sp_pronto_ticket newest{};              ///< of the operations that were not waited for since the outermost of them began
    LogGroup group;
    OperationLocks held;
    std::array<LogPiece, 64> pieces{};      ///< by the object's incarnation
    ThreadLog* next = nullptr;
    bool in_use = false;

    /// Byte-addressable media: the oldest operation whose entry is being made durable: its object, and a number that is not larger than
    /// its own; 0: none. Others read them (durable_number_of).
    alignas(128) std::atomic<const LiveObject*> committing{nullptr};
    std::atomic<std::uint64_t> committing_from{0};

private:
    struct Buffer {
        std::byte* memory = nullptr;
        std::size_t bytes = 0;
        [[nodiscard]] bool make_room(std::size_t wanted);
    };
    Buffer buffer_;
    Buffer scratch_;
};

/// The calling thread's; made at its first operation and given to another thread after its end. nullptr: no memory.
[[nodiscard]] ThreadLog* own_thread_log() noexcept;
/// The calling thread's if it has one.
[[nodiscard]] ThreadLog* existing_thread_log() noexcept;
/// How many threads have one now.
[[nodiscard]] unsigned thread_log_count() noexcept;
/// Calls visit(log) for each that was ever made. New ones come first.
[[nodiscard]] ThreadLog* first_thread_log() noexcept;
void thread_logs_reset_after_fork() noexcept;

/// Byte-addressable media: a number up to which all operations of the object are durable: the newest one's, if none is on its way.
[[nodiscard]] std::uint64_t durable_number_of(const LiveObject& object) noexcept;

}  // namespace stillpoint::pronto
