#include "logs/log_walk.hpp"

#include "arch/prefetch.hpp"

namespace stillpoint::logs {

bool walk_piece(const LogBytes& bytes, LogPiece& piece, Timestamp limit, RecordList& records) noexcept
{
    constexpr std::uint64_t lines_ahead = 8;  // The hardware's own reading ahead ends with the page.
    const std::byte* const chunk = bytes.chunks[piece.chunk];
    while (piece.begin < piece.end) {
        const auto* const record = reinterpret_cast<const RecordHeader*>(chunk + piece.begin);
        arch::prefetch(chunk + piece.begin + lines_ahead * cache_line_bytes, cache_line_bytes);
        const Timestamp timestamp = record->timestamp >> 1;
        if (timestamp > limit) {
            break;
        }
        if (!records.append({timestamp, position_of(piece.chunk, piece.begin)})) {
            return false;
        }
        piece.begin += static_cast<std::uint32_t>(record_bytes_for(record->words));
    }
    return true;
}

}  // namespace stillpoint::logs
