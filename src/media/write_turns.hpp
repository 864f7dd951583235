#pragma once
// How a copier keeps a running program from writing to its pool for a moment, without stopping the program.
//
//   program, before it writes:  lock `writing` exclusively; if `hold` is locked, unlock and wait; write; unlock
//   copier:                     lock `hold`; wait for `writing`; read; unlock both
//
// Either the program sees the hold, or the copier sees that the program writes and waits. All three bytes are locks of open files: what a
// process held is free when it has ended. The program waits no longer than hold_max, so that a copier that hangs cannot keep durability
// back forever; a copier whose hold has lasted that long has read nothing that it may use.
//
// Bytes that a crash may leave are what the copier reads: between two writes of a block medium, and between two turns where the
// owner of the pool takes turns (Medium::begin_turn).

#include <cstdint>

#include "core/result.hpp"
#include "os/futex.hpp"

namespace stillpoint {

inline constexpr std::uint64_t hold_max_ns = 10'000'000'000;

/// The program's side, one for each open pool file. Threads: any.
class WriteTurns {
public:
    WriteTurns() noexcept = default;
    /// Before threads share it.
    WriteTurns(WriteTurns&& other) noexcept : fd_(other.fd_), honours_(other.honours_) {}
    WriteTurns& operator=(WriteTurns&& other) noexcept
    {
        fd_ = other.fd_;
        honours_ = other.honours_;
        return *this;
    }

    /// Copiers see from now on that holds are honoured. `fd` is open for writing and has the pool's lock. Where the file system has no
    /// such locks nothing is honoured, and begin() and end() do nothing.
    void honour_holds(int fd) noexcept;
    /// Waits while a copier holds, at most hold_max_ns. Turns of several threads, and turns inside turns, are one. Cost: two system calls
    /// for the outermost.
    void begin() noexcept;
    void end() noexcept;

private:
    [[nodiscard]] bool try_begin() noexcept;

    int fd_ = -1;
    bool honours_ = false;
    os::FutexLock lock_;
    std::uint32_t turns_ = 0;
    bool is_locked_ = false;
};

class [[nodiscard]] WriteTurn {
public:
    explicit WriteTurn(WriteTurns& turns) noexcept : turns_(turns) { turns_.begin(); }
    ~WriteTurn() { turns_.end(); }
    WriteTurn(const WriteTurn&) = delete;
    WriteTurn& operator=(const WriteTurn&) = delete;

private:
    WriteTurns& turns_;
};

/// The copier's side.
class WriteHold {
public:
    /// Whether the process that has the file open for writing honours holds. False also where there is none.
    [[nodiscard]] static bool is_honoured(int fd) noexcept;

    /// `fd` is open for reading.
    explicit WriteHold(int fd) noexcept : fd_(fd) {}
    ~WriteHold() { release(); }
    WriteHold(const WriteHold&) = delete;
    WriteHold& operator=(const WriteHold&) = delete;

    /// Returns when the program does not write, and will not for what is left of hold_max_ns. False: it went on writing for `wait_max_ns`;
    /// nothing is held.
    [[nodiscard]] bool take(std::uint64_t wait_max_ns) noexcept;
    /// How long the program may have waited so far.
    [[nodiscard]] std::uint64_t held_ns() const noexcept;
    void release() noexcept;

private:
    int fd_;
    bool is_held_ = false;
    std::uint64_t begun_ns_ = 0;
};

}  // namespace stillpoint
