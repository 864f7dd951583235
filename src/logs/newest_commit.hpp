#pragma once
// Finds the newest durable transaction where the pool has no marker of it: the logs themselves tell which that is, by one of the rules of
// other systems (CommitRule in log_scan.hpp).

#include "logs/log_scan.hpp"

namespace stillpoint::logs {

struct NewestCommit {
    Timestamp timestamp;  ///< the newest that counts; Bounds::replayed: none after that does
    Timestamp known_durable;  ///< the logs say that transactions up to here were durable: if it is the later one, some are lost
};

/// `bounds.marker` has no meaning. Errors: no_memory.
[[nodiscard]] Result<NewestCommit> newest_commit(const LogBytes& bytes, const Bounds& bounds);

}  // namespace stillpoint::logs
