#pragma once
// Reads a log that this process has written itself: nothing is checked, the bytes are its own memory.

#include "logs/record_list.hpp"

namespace stillpoint::logs {

/// Whole records of one log, one after the other.
struct LogPiece {
    std::uint32_t chunk;
    std::uint32_t begin;  ///< offsets in the chunk, of records
    std::uint32_t end;
};

/// Appends the records with a timestamp up to `limit`, and moves `piece.begin` to the first that is left: to the end if all are
/// appended. False: `records` is full, before a later part or a later transaction. Threads: no other one writes to the piece.
[[nodiscard]] bool walk_piece(const LogBytes& bytes, LogPiece& piece, Timestamp limit, RecordList& records) noexcept;

}  // namespace stillpoint::logs
