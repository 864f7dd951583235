#include "logs/log_walk.hpp"

#include <algorithm>

#include "arch/prefetch.hpp"

namespace stillpoint::logs {

bool walk_piece(const LogBytes& logs, LogPiece& piece, Timestamp limit, RecordList& records) noexcept
{
    constexpr std::uint64_t bytes_ahead = 8 * cache_line_bytes;
    const std::byte* const chunk = logs.chunks[piece.chunk];
    while (piece.begin < piece.end) {
        const auto* const record = reinterpret_cast<const RecordHeader*>(chunk + piece.begin);
        const std::uint64_t bytes = record_bytes_for(record->words);
        arch::prefetch(chunk + piece.begin + bytes_ahead, std::min(bytes, bytes_ahead));
        const Timestamp timestamp = record->timestamp >> 1;
        if (timestamp > limit) {
            break;
        }
        if (!records.append({timestamp, position_of(piece.chunk, piece.begin)})) {
            return false;
        }
        piece.begin += static_cast<std::uint32_t>(bytes);
    }
    return true;
}

}  // namespace stillpoint::logs
