#pragma once
// The open sessions' parts, for the C API (src/api and each engine's own) and for what must know which memory is whose. src/api opens
// and closes them.
//
// A process has at most one default session, number 0: that of `stillpoint run` and sp_open. Further ones are those of sp_pool_open.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "heap/heap.hpp"
#include "os/futex.hpp"
#include "pool/directory.hpp"
#include "runtime/data_layout.hpp"
#include "runtime/engine.hpp"
#include "runtime/named_blocks.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

class PrivateMedium;
class ReplicatedMedium;

/// Sessions that may be open at a time, the default one among them.
inline constexpr std::size_t sessions_max = Heap::heaps_max;
static_assert(sessions_max <= statistics_pages_max);

struct Session {
    std::unique_ptr<Engine> engine;
    const EngineDriver* driver = nullptr;
    unsigned number = 0;  ///< of the session among those that are open, and of its page of statistics
    std::uintptr_t image_begin = 0;
    std::uintptr_t image_end = 0;  ///< of the addresses that are the image's, present or to come
    Heap* heap = nullptr;
    std::optional<Directory> directory;
    os::FutexLock directory_lock;  ///< taken inside a FASE, never around one
    NamedBlocks named;             ///< what the directory names; changed under its lock
    sp_start start_kind = SP_START_VOLATILE;
    std::uint64_t serial = 0;  ///< from 1: of all sessions that this process has had
    std::string pool;          ///< path, as it was opened
    std::vector<LayoutStep> layout_steps;  ///< not run yet
    PrivateMedium* private_medium = nullptr;  ///< the engine's: the pool is only read, and nothing becomes durable
    ReplicatedMedium* replicated_medium = nullptr;  ///< the engine's: the pool has a replica
    bool makes_checkpoint_on_term = false;
    bool notifies = false;  ///< systemd
    std::atomic<bool> ending{false};
    std::atomic<bool> in_use{false};    ///< the engine runs: checkpoints are taken, and the pool knows of this session
    std::atomic<bool> detached{false};  ///< this is a child made by fork
    std::atomic<bool> detached_told{false};
};

namespace sessions {
/// By number; nullptr: not open. Written by src/api alone.
[[gnu::visibility("hidden")]] extern constinit std::array<std::atomic<Session*>, sessions_max> open;
/// How many are open besides the default one: nearly always none.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> further;
/// The session that the calling thread acts on, where that is not the default one. initial-exec: one instruction, and never a call.
[[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] extern constinit thread_local Session* chosen;
/// Slow way of session_of().
[[nodiscard, gnu::cold]] Session* find(const void* address) noexcept;
}  // namespace sessions

/// The default session, or nullptr. Acquire; one load.
[[nodiscard]] inline Session* default_session() noexcept { return sessions::open[0].load(std::memory_order_acquire); }

/// The session that calls without a pool act on: the one that this thread has chosen, else the default one; nullptr: they run volatile.
[[nodiscard]] inline Session* open_session() noexcept
{
    Session* const chosen = sessions::chosen;
    return chosen != nullptr ? chosen : default_session();
}

/// The session whose memory `address` lies in. An address in the window that no session has is the default session's business.
/// nullptr: it is not durable.
[[nodiscard]] inline Session* session_of(const void* address) noexcept
{
    if (!stillpoint_is_persistent(address)) {
        return nullptr;
    }
    return sessions::further.load(std::memory_order_acquire) == 0 ? default_session() : sessions::find(address);
}

/// Whether the pointer is that of an open session.
[[nodiscard]] inline bool is_open(const Session* session) noexcept
{
    for (const std::atomic<Session*>& place : sessions::open) {
        if (place.load(std::memory_order_acquire) == session) {
            return session != nullptr;
        }
    }
    return false;
}

/// Calls visit(session) for each open session, the default one first.
template <class Visit>
void for_each_session(Visit&& visit)
{
    for (std::atomic<Session*>& place : sessions::open) {
        if (Session* const session = place.load(std::memory_order_acquire); session != nullptr) {
            visit(*session);
        }
    }
}

/// While it lives the calling thread acts on that session.
class InSession {
public:
    explicit InSession(Session& session) noexcept : before_(sessions::chosen) { sessions::chosen = &session; }
    ~InSession() { sessions::chosen = before_; }
    InSession(const InSession&) = delete;
    InSession& operator=(const InSession&) = delete;

private:
    Session* before_;
};

/// nullptr: the session of that number is open no more.
void set_session(unsigned number, Session* session) noexcept;

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
/// The message comes from a call that was made elsewhere.
void set_last_report(const char* message) noexcept;
/// Sets errno from the failure for calls that return a pointer.
void report_as_errno(const Failure& failure) noexcept;

/// First durable use in a child made by fork, or in a program started by one that has the pool: says
/// once that nothing here is durable.
void warn_if_not_durable(Session* session) noexcept;

}  // namespace stillpoint
