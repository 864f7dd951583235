#include "logs/linked_range.hpp"

namespace stillpoint::logs {

namespace {

void add(LinkedRecords& range, const RecordRef& oldest, const RecordRef& newest, std::uint64_t count) noexcept
{
    if (range.count == 0 || oldest.timestamp < range.oldest.timestamp) {
        range.oldest = oldest;
    }
    if (range.count == 0 || newest.timestamp >= range.newest.timestamp) {
        range.newest = newest;
    }
    range.count += count;
}

}  // namespace

void add_records(RedoLog& log, ChunkSpace& space, Timestamp after, Timestamp limit, LinkedRecords& range) noexcept
{
    const auto chunks = space.bytes();
    const LogBytes bytes{chunks.data(), static_cast<std::uint32_t>(chunks.size())};
    log.visit_chunks([&](ChunkIndex chunk, std::uint32_t used) noexcept {
        const ChunkState& state = space.state(chunk);
        const Timestamp newest = state.newest.load(std::memory_order_relaxed);
        if (newest <= after) {
            return;
        }
        RecordRef record{0, position_of(chunk, sizeof(ChunkHeader))};
        const auto timestamp_of = [&](Position position) noexcept { return bytes.record_at(position)->timestamp >> 1; };
        record.timestamp = timestamp_of(record.position);
        if (record.timestamp > after && newest <= limit) {
            add(range, record, {newest, position_of(chunk, state.last)}, state.records);
            return;
        }
        while (record.timestamp <= limit) {
            if (record.timestamp > after) {
                add(range, record, record, 1);
            }
            record.position += record_bytes_for(bytes.record_at(record.position)->words);
            if (offset_in_chunk(record.position) >= used) {
                return;
            }
            record.timestamp = timestamp_of(record.position);
        }
    });
}

}  // namespace stillpoint::logs
