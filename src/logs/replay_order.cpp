#include "logs/replay_order.hpp"

#include <new>

namespace stillpoint::logs {

std::uint64_t order_by_timestamp(std::span<LogHead> logs, std::span<RecordRef> out) noexcept
{
    std::uint64_t count = 0;
    for (RecordRef& record : out) {
        LogHead* oldest = nullptr;
        Timestamp timestamp = LogHead::ended;
        for (LogHead& log : logs) {
            if (log.timestamp() < timestamp) {
                timestamp = log.timestamp();
                oldest = &log;
            }
        }
        if (oldest == nullptr) {
            break;
        }
        record = oldest->take();
        ++count;
    }
    return count;
}

bool follow_links(const LogBytes& bytes, LinkDirection direction, const RecordRef& oldest, const RecordRef& newest,
                  std::span<RecordRef> out) noexcept
{
    const LinkedRecords records{direction, oldest, newest, out.size()};
    LinkWalk walk(bytes, direction, records.start());
    for (std::uint64_t i = 0; i < out.size() && walk.record() != nullptr;) {
        RecordRef& place = out[direction == LinkDirection::forward ? i : out.size() - 1 - i];
        place = walk.ref();
        if (++i == out.size()) {
            return records.ends_with(place);
        }
        walk.advance();
    }
    return false;
}

Result<bool> has_all_of(std::span<const RecordRef> ordered, const LogIndex& index, const LogBytes& bytes)
{
    try {
        std::vector<std::uint32_t> log_of_chunk(bytes.count, UINT32_MAX);
        std::vector<LogHead> heads;
        for (const ScannedLog& log : index.logs) {
            for (const RecordRef& record : log.records) {
                log_of_chunk[chunk_of(record.position)] = static_cast<std::uint32_t>(heads.size());
            }
            heads.emplace_back(log.records);
        }
        for (const RecordRef& record : ordered) {
            const std::uint64_t chunk = chunk_of(record.position);
            const std::uint32_t log = chunk < bytes.count ? log_of_chunk[chunk] : UINT32_MAX;
            if (log == UINT32_MAX || heads[log].left() == 0 || heads[log].take() != record) {
                return false;
            }
        }
        for (const LogHead& head : heads) {
            if (head.left() != 0) {
                return false;
            }
        }
        return true;
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "no memory to compare {} records with their logs", ordered.size());
    }
}

}  // namespace stillpoint::logs
