#pragma once
// RedoLog: the log of one thread [SPHT §3, Figure 2], or of several that take turns. They append; the replayer walks it and takes its
// oldest chunks away.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "logs/chunk_space.hpp"
#include "logs/record_builder.hpp"
#include "media/medium.hpp"
#include "os/futex.hpp"

namespace stillpoint::logs {

/// Byte-addressable media: returns when all that the calling thread has appended is durable. False: the medium has lost something.
[[nodiscard]] bool fence_log(Medium& medium) noexcept;
/// Why nothing becomes durable any more, once fence_log() or the marker has said so.
[[nodiscard]] Failure loss_of(Medium& medium) noexcept;

/// How the records of a log reach the medium.
enum class LogWriter : std::uint8_t {
    appender,  ///< by stores of the thread that appends: byte-addressable media
    groups,  ///< by GroupCommit, from the bytes in DRAM
};

class RedoLog {
public:
    RedoLog() = default;
    RedoLog(const RedoLog&) = delete;
    RedoLog& operator=(const RedoLog&) = delete;

    /// Before its first use. `run`: PoolFacts::generation. Errors: no_memory.
    [[nodiscard]] Result<void> init(ChunkSpace& space, Medium& medium, std::uint64_t number, std::uint64_t run) noexcept
    {
        return init(space, medium, number, run, space.is_mirrored() ? LogWriter::groups : LogWriter::appender);
    }
    [[nodiscard]] Result<void> init(ChunkSpace& space, Medium& medium, std::uint64_t number, std::uint64_t run, LogWriter writer) noexcept;
    [[nodiscard]] LogWriter writer() const noexcept { return writer_; }

    // -- Its thread ----------------------------------------------------------------------------
    enum class Room { ready, too_large, wait };
    /// Makes room for a record of that many words, which append() uses or cancel() gives up; until then the log is locked.
    /// too_large: the whole log could not hold it beside what other threads need; wait: no chunk is free now.
    [[nodiscard]] Room prepare(std::uint64_t words) noexcept;
    void cancel() noexcept;
    /// After prepare(): where the record, or the first of its parts, will begin.
    [[nodiscard]] Position next_position() const noexcept;
    /// After prepare(): the timestamp of the newest record; 0: there was none.
    [[nodiscard]] Timestamp newest() const noexcept { return newest_; }
    /// Writes the record; on byte-addressable media the caller's fence makes it durable. Timestamps rise. `link`: of its header.
    /// `flags`: stands_alone, or nothing. Returns its Position.
    Position append(RecordBuilder& builder, Timestamp timestamp, std::uint64_t link = 0, std::uint32_t flags = 0) noexcept;
    /// Whether a record of that many words would be too_large.
    [[nodiscard]] bool has_place_for(std::uint64_t words) const noexcept;

    // -- The replayer, or the group commit --------------------------------------------------------
    /// Calls visit(chunk, used, newest) for each chunk, the oldest first, with the log's lock held: appending waits.
    template <class Visit>
    void visit_chunks(Visit&& visit) noexcept
    {
        lock_.lock();
        for (ChunkIndex chunk = first_; chunk != no_chunk; chunk = space_->state(chunk).next) {
            visit(chunk, space_->state(chunk).used.load(std::memory_order_acquire));
        }
        lock_.unlock();
    }
    /// Gives back chunks all of whose records have timestamps up to `replayed`; the one that is appended to only if `all`.
    void release_up_to(Timestamp replayed, bool all) noexcept;
    /// Any of its chunks may have a record that is not replayed.
    [[nodiscard]] bool has_chunks() const noexcept { return has_chunks_.load(std::memory_order_acquire); }

    void reset_after_fork() noexcept { lock_.reset_after_fork(); }

private:
    /// A part of a record's words that goes into one chunk.
    struct Part {
        const std::uint64_t* words;
        std::uint64_t count;
        std::uint32_t part;
    };
    [[nodiscard]] std::uint64_t room_in_last() const noexcept;
    void begin_chunk() noexcept;
    void give_spare_back() noexcept;
    Position append_whole(RecordBuilder& builder, Timestamp timestamp, std::uint64_t link, std::uint32_t flags) noexcept;
    Position append_in_parts(const RecordBuilder& builder, Timestamp timestamp, std::uint64_t link) noexcept;
    Position put(RecordHeader& header, std::uint64_t words, Timestamp timestamp, std::uint64_t link) noexcept;
    void store(ChunkIndex chunk, std::uint64_t offset, const void* bytes, std::uint64_t size) noexcept;

    ChunkSpace* space_ = nullptr;
    Medium* medium_ = nullptr;
    std::uint64_t number_ = 0;
    std::uint64_t run_ = 0;
    LogWriter writer_ = LogWriter::appender;
    os::FutexLock lock_;
    // Under the lock.
    ChunkIndex first_ = no_chunk;
    ChunkIndex last_ = no_chunk;
    ChunkIndex spare_ = no_chunk;  ///< chunks for the next record
    std::uint64_t next_index_ = 0;
    Timestamp newest_ = 0;  ///< of its records; 0: there was none
    std::atomic<bool> has_chunks_{false};
    os::ReservedArray<std::byte> part_bytes_;  ///< of a record in parts, on its way
};

}  // namespace stillpoint::logs
