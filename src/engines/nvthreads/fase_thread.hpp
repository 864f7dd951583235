#pragma once
// FaseThread: what a thread has stored and not handed over yet, and its log. The owner alone uses it, but for the log.

#include <atomic>
#include <cstdint>

#include "logs/commit_order.hpp"
#include "logs/record_builder.hpp"
#include "logs/redo_log.hpp"

namespace stillpoint::nvthreads {

struct FaseThread {
    logs::RecordBuilder record;  ///< the stores, with their values, in the order in which they came
    logs::RedoLog log;
    logs::CommitOrder::Slot* slot;
    std::uint32_t number;  ///< of slot and log
    bool is_open;          ///< its FASE has handed a part over, and is not over
    bool is_part;          ///< what it hands over is a part of another process's FASE
    bool has_stored;       ///< since the thread's last FASE has ended
    logs::Timestamp newest;  ///< of its records
    std::atomic<std::uint64_t> fases;    ///< that stored something and have ended
    std::atomic<std::uint64_t> parts;    ///< handed over before the end of their FASE
};

}  // namespace stillpoint::nvthreads
