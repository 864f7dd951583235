#include "logs/redo_log.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/canary.hpp"
#include "logs/log_bytes.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::logs {

namespace {

constexpr std::uint64_t first_record_offset = sizeof(ChunkHeader);

/// Words from `first` on that end with a whole run and are at most `max`.
std::uint64_t whole_runs(const std::uint64_t* words, std::uint64_t first, std::uint64_t count, std::uint64_t max) noexcept
{
    std::uint64_t end = first;
    while (end < count) {
        const std::uint64_t next = end + 1 + run_data_words(decode_run(words[end]));
        if (next - first > max) {
            break;
        }
        end = next;
    }
    return end - first;
}

std::uint64_t chunks_for(std::uint64_t words) noexcept
{
    // A part ends with a whole run, and a run has at most this many words.
    constexpr std::uint64_t words_of_part = record_words_max - run_words_max;
    return words <= record_words_max ? 1 : (words + words_of_part - 1) / words_of_part;
}

}  // namespace

bool fence_log(Medium& medium) noexcept
{
    if (!is_removed(Canary::redo_log_fence)) {
        medium.fence();
    }
    return !medium.has_lost_pages();
}

Failure loss_of(Medium& medium) noexcept
{
    const auto intact = medium.check_intact();
    return intact ? fail(SP_E_IO, 0, "{} has lost a page", medium.path()).value() : intact.error();
}

Result<void> RedoLog::init(ChunkSpace& space, Medium& medium, std::uint64_t number, std::uint64_t run, LogWriter writer) noexcept
{
    space_ = &space;
    medium_ = &medium;
    number_ = number;
    run_ = run;
    writer_ = writer;
    return part_bytes_.reserve(chunk_bytes, "a part of a log record");
}

std::uint64_t RedoLog::room_in_last() const noexcept
{
    return last_ == no_chunk ? 0 : header_copy_offset - space_->state(last_).used.load(std::memory_order_relaxed);
}

bool RedoLog::has_place_for(std::uint64_t words) const noexcept
{
    return words <= record_words_max || chunks_for(words) <= space_->chunk_count() / 2;
}

RedoLog::Room RedoLog::prepare(std::uint64_t words) noexcept
{
    lock_.lock();
    const std::uint64_t bytes = record_bytes_for(words);
    if (bytes > room_in_last()) {
        const std::uint64_t chunks = chunks_for(words);
        if (!has_place_for(words)) {
            lock_.unlock();
            return Room::too_large;
        }
        spare_ = space_->take(static_cast<std::uint32_t>(chunks));
        if (spare_ == no_chunk) {
            lock_.unlock();
            return Room::wait;
        }
    }
    return Room::ready;
}

void RedoLog::give_spare_back() noexcept
{
    const bool had_spare = spare_ != no_chunk;
    while (spare_ != no_chunk) {
        const ChunkIndex chunk = spare_;
        spare_ = space_->state(chunk).next;
        space_->give_back(chunk);
    }
    if (had_spare) {
        space_->wake_waiters();
    }
}

Position RedoLog::next_position() const noexcept
{
    return spare_ != no_chunk ? position_of(spare_, first_record_offset)
                              : position_of(last_, space_->state(last_).used.load(std::memory_order_relaxed));
}

void RedoLog::cancel() noexcept
{
    give_spare_back();
    lock_.unlock();
}

void RedoLog::store(ChunkIndex chunk, std::uint64_t offset, const void* bytes, std::uint64_t size) noexcept
{
    if (writer_ == LogWriter::groups) {
        std::memcpy(space_->mirror(chunk) + offset, bytes, size);
    } else {
        medium_->append_lines(space_->file_offset(chunk) + offset, bytes, size);
    }
}

void RedoLog::begin_chunk() noexcept
{
    const ChunkIndex chunk = spare_;
    space_->begin(chunk, writer_ == LogWriter::groups);
    ChunkState& state = space_->state(chunk);
    spare_ = state.next;
    state.next = no_chunk;
    state.use = space_->next_use();
    state.written = 0;
    state.counted = 0;
    state.records = 0;
    alignas(cache_line_bytes) ChunkHeader header{};
    std::memcpy(header.magic, chunk_magic, sizeof chunk_magic);
    header.use = state.use;
    header.log = number_;
    header.index = next_index_++;
    header.run = run_;
    header.follows = newest_;
    header.checksum = chunk_checksum(header);
    store(chunk, 0, &header, sizeof header);
    store(chunk, header_copy_offset, &header, sizeof header);
    state.newest.store(0, std::memory_order_relaxed);
    state.used.store(first_record_offset, std::memory_order_release);
    if (last_ == no_chunk) {
        first_ = chunk;
    } else {
        space_->state(last_).next = chunk;
    }
    last_ = chunk;
    has_chunks_.store(true, std::memory_order_release);
}

Position RedoLog::put(RecordHeader& header, std::uint64_t words, Timestamp timestamp, std::uint64_t link) noexcept
{
    ChunkState& state = space_->state(last_);
    const std::uint64_t offset = state.used.load(std::memory_order_relaxed);
    const std::uint64_t bytes = record_bytes_for(words);
    header.timestamp = timestamp << 1 | 1;
    header.words = static_cast<std::uint32_t>(words);
    header.link = link;
    header.checksum = record_checksum(header, &header + 1, state.use, offset);
    store(last_, offset, &header, bytes);
    state.newest.store(timestamp, std::memory_order_relaxed);
    newest_ = timestamp;
    state.last = static_cast<std::uint32_t>(offset);
    ++state.records;
    state.used.store(static_cast<std::uint32_t>(offset + bytes), std::memory_order_release);
    return position_of(last_, offset);
}

Position RedoLog::append_whole(RecordBuilder& builder, Timestamp timestamp, std::uint64_t link, std::uint32_t flags) noexcept
{
    if (spare_ != no_chunk) {
        begin_chunk();
    }
    builder.header().part = flags;
    return put(builder.header(), builder.words(), timestamp, link);
}

Position RedoLog::append_in_parts(const RecordBuilder& builder, Timestamp timestamp, std::uint64_t link) noexcept
{
    Position begin = 0;
    std::uint32_t part = 0;
    for (std::uint64_t at = 0; at < builder.words(); ++part) {
        begin_chunk();
        const std::uint64_t words = whole_runs(builder.payload(), at, builder.words(), record_words_max);
        auto& header = *reinterpret_cast<RecordHeader*>(part_bytes_.data());
        std::memcpy(&header + 1, builder.payload() + at, words * 8);
        at += words;
        header.part = part | (at < builder.words() ? more_parts : 0);
        const Position position = put(header, words, timestamp, link);
        begin = part == 0 ? position : begin;
    }
    return begin;
}

Position RedoLog::append(RecordBuilder& builder, Timestamp timestamp, std::uint64_t link, std::uint32_t flags) noexcept
{
    const Position position = builder.words() <= record_words_max ? append_whole(builder, timestamp, link, flags)
                                                                  : append_in_parts(builder, timestamp, link);
    give_spare_back();  // The estimate may have been too high.
    lock_.unlock();
    return position;
}

void RedoLog::release_up_to(Timestamp replayed, bool all) noexcept
{
    const std::lock_guard guard(lock_);
    while (first_ != no_chunk && space_->state(first_).newest.load(std::memory_order_relaxed) <= replayed) {
        if (first_ == last_ && !all) {
            break;
        }
        const ChunkIndex chunk = first_;
        first_ = space_->state(chunk).next;
        if (chunk == last_) {
            last_ = no_chunk;
        }
        space_->give_back(chunk);
    }
    has_chunks_.store(first_ != no_chunk, std::memory_order_release);
}

}  // namespace stillpoint::logs
