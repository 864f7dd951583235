#pragma once
// The open session's parts, for the C API (src/api and each engine's own) and for what must know which memory is whose. src/api opens
// and closes it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "heap/heap.hpp"
#include "os/futex.hpp"
#include "pool/directory.hpp"
#include "runtime/engine.hpp"
#include "runtime/named_blocks.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

struct Session {
    std::unique_ptr<Engine> engine;
    Heap* heap = nullptr;
    std::optional<Directory> directory;
    os::FutexLock directory_lock;  ///< taken inside a FASE, never around one
    NamedBlocks named;             ///< what the directory names; changed under its lock
    sp_start start_kind = SP_START_VOLATILE;
    std::uint64_t number = 0;  ///< from 1: of this process's sessions
    std::string pool;          ///< path, as it was opened
    std::atomic<bool> in_use{false};    ///< the engine runs: checkpoints are taken, and the pool knows of this session
    std::atomic<bool> detached{false};  ///< this is a child made by fork
    std::atomic<bool> detached_told{false};
};

/// The open session, or nullptr: the process runs volatile. Acquire; one load.
[[nodiscard]] Session* open_session() noexcept;
/// nullptr: there is none any more.
void set_open_session(Session* session) noexcept;

/// Work of the first durable use where the opening was left to it (api/session_start.cpp): opens pool and session. Returns the
/// session, or nullptr.
void set_first_use_hook(Session* (*hook)() noexcept) noexcept;

/// Slow way of used_session().
[[gnu::cold]] Session* begin_use() noexcept;

/// For calls of the program that need durable memory, or facts of it: as open_session(), but from here on the session is in
/// use. Ends the process where the pool cannot be opened.
[[nodiscard]] inline Session* used_session() noexcept
{
    Session* const session = open_session();
    return session != nullptr && session->in_use.load(std::memory_order_acquire) ? session : begin_use();
}

/// While it lives the calling thread rests (Engine::begin_rest): for calls that wait for a checkpoint, and the end of the program.
class AtRest {
public:
    explicit AtRest(Session* session) noexcept
    {
        if (session != nullptr && session->engine->begin_rest()) {
            engine_ = session->engine.get();
        }
    }
    AtRest(const AtRest&) = delete;
    AtRest& operator=(const AtRest&) = delete;
    ~AtRest()
    {
        if (engine_ != nullptr) {
            engine_->end_rest();
        }
    }

private:
    Engine* engine_ = nullptr;
};

/// Keeps the failure for sp_last_error() of this thread, prints nothing, returns its code.
int report(const Failure& failure) noexcept;
/// The message of this thread's last report(), or "".
[[nodiscard]] const char* last_report() noexcept;
/// Sets errno from the failure for calls that return a pointer.
void report_as_errno(const Failure& failure) noexcept;

/// First durable use in a child made by fork, or in a program started by one that has the pool: says
/// once that nothing here is durable.
void warn_if_not_durable(Session* session) noexcept;

}  // namespace stillpoint
