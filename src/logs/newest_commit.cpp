#include "logs/newest_commit.hpp"

#include <algorithm>
#include <new>

#include "core/canary.hpp"
#include "logs/durable_marker.hpp"
#include "logs/log_chunks.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::logs {

namespace {

/// Follows one log as far as it is whole.
class WholePart {
public:
    WholePart(Timestamp replayed, NewestCommit& newest) noexcept : replayed_(replayed), newest_(newest) {}

    void begin(const ChunkInUse& chunk) noexcept
    {
        if (chunk.header.run != run_ || chunk.header.log != log_) {
            run_ = chunk.header.run;
            log_ = chunk.header.log;
            last_ = 0;
            part_ = 0;
            has_gap_ = false;
        }
        has_gap_ = has_gap_ || chunk.header.follows > std::max(last_, replayed_);
    }
    void take(const CheckedRecord& record) noexcept
    {
        const bool goes_on = record.timestamp == last_ && part_number(record.part) == part_;
        const bool begins = record.timestamp > last_ && part_number(record.part) == 0 && part_ == 0;
        if (has_gap_ || (!goes_on && !begins && record.timestamp > replayed_)) {
            has_gap_ = true;
            return;
        }
        last_ = record.timestamp;
        part_ = (record.part & more_parts) != 0 ? part_number(record.part) + 1 : 0;
        if (part_ == 0) {
            newest_.timestamp = std::max(newest_.timestamp, record.timestamp);
        }
    }
    /// A line that has no record: before one that follows in the chunk it is a gap.
    void pass_line() noexcept { is_after_line_ = true; }
    void find_record(Timestamp timestamp) noexcept
    {
        has_gap_ = has_gap_ || (is_after_line_ && timestamp > replayed_);
        is_after_line_ = false;
    }
    void end_chunk() noexcept { is_after_line_ = false; }

private:
    Timestamp replayed_;
    NewestCommit& newest_;
    std::uint64_t run_ = 0;
    std::uint64_t log_ = 0;
    Timestamp last_ = 0;
    std::uint32_t part_ = 0;  ///< that must follow; 0: another transaction
    bool is_after_line_ = false;
    bool has_gap_ = false;
};

NewestCommit find(const LogBytes& bytes, const Bounds& bounds)
{
    NewestCommit newest{bounds.replayed, 0};
    WholePart whole(bounds.replayed, newest);
    for (const ChunkInUse& chunk : chunks_in_use(bytes)) {
        const std::byte* const begin = bytes.chunks[chunk.chunk];
        whole.begin(chunk);
        for (std::uint64_t offset = sizeof(ChunkHeader); offset < header_copy_offset;) {
            const CheckedRecord record = check_record(begin, chunk.header.use, offset, bounds.image_words);
            if (record.state != RecordState::valid) {
                whole.pass_line();
                offset += cache_line_bytes;
                continue;
            }
            const std::uint64_t link = bytes.record_at(position_of(chunk.chunk, offset))->link;
            switch (bounds.rule) {
            case CommitRule::own_marker:
                if (link == encode_marker(record.timestamp) || is_removed(Canary::own_marker)) {
                    newest.timestamp = std::max(newest.timestamp, record.timestamp);
                }
                break;
            case CommitRule::whole: newest.timestamp = std::max(newest.timestamp, record.timestamp); break;
            case CommitRule::whole_up_to_a_gap:
                newest.known_durable = std::max(newest.known_durable, decode_marker(link).value_or(0));
                whole.find_record(record.timestamp);
                whole.take(record);
                break;
            case CommitRule::pool_marker: break;
            }
            offset += record_bytes_for(record.words);
        }
        whole.end_chunk();
    }
    return newest;
}

}  // namespace

Result<NewestCommit> newest_commit(const LogBytes& bytes, const Bounds& bounds)
{
    try {
        return find(bytes, bounds);
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "no memory to read {} chunks of redo logs", bytes.count);
    }
}

}  // namespace stillpoint::logs
