#pragma once
// Session: an open pool of this process, with its engine, heap and directory. The C API
// and the interposer call in here; neither has logic of its own.

#include <cstdint>

#include "core/result.hpp"
#include "runtime/engine.hpp"
#include "runtime/session_engine.hpp"

namespace stillpoint {

class Heap;
struct Session;

/// Before main: opens the pool that STILLPOINT_POOL names, if any, or leaves that to the first durable use
/// (session_start.cpp). A failure is printed and ends the process with exit_code_for() of it: a program must never run
/// volatile by mistake.
void session_start_from_environment() noexcept;

/// When a session that is open begins: until then the pool's file is as it was.
enum class SessionBegin { at_once, at_first_use };

/// Opens or creates the default pool. sp_open's work, and that of a start from the environment.
[[nodiscard]] Result<void> session_open(const Options& options, SessionBegin begin = SessionBegin::at_once);

/// sp_pool_open's work: a pool beside the others. Errors: as session_open; already_open (an engine needs the process for itself);
/// window_taken (its addresses are another pool's); no_memory (as many as can be are open). Any thread.
[[nodiscard]] Result<Session*> session_open_further(const Options& options);

/// Tells the pool of the session, whose image is recovered, and begins checkpoints. Errors: as Engine::run(); no_memory.
[[nodiscard]] Result<void> run_engine(const Session& session) noexcept;

/// The first durable use (set_first_use_hook): opens the pool where that was left to it, and begins the session. Ends the process where
/// the pool cannot be opened.
[[nodiscard]] Session* begin_first_use() noexcept;

/// Runs what steps the session has still to run, by SP_LAYOUT_STEP; it is in use. Ends the process where one fails.
void take_layout_steps(Session& session) noexcept;

/// The error that session_open would give, as far as it can be known without making or changing anything.
[[nodiscard]] Result<void> session_validate(const Options& options);

/// The process is about to end in an orderly way (exit, return from main, quick_exit, _exit,
/// or exec replaces it): last checkpoint of each open pool. At most once; a no-op without a pool, in
/// a forked child, or when the calling thread is inside a FASE (then the last epoch stays).
void session_end() noexcept;

/// The end of a process that has no session: says so where `stillpoint run` has asked for one and no program took it.
void session_end_without_pool() noexcept;

/// Called once when a session is about to end in an orderly way, by session_end() or session_close(): outside FASEs, while all
/// durable memory can be read. nullptr: nothing. Any thread may set it.
void set_session_end_hook(void (*hook)(const Heap& heap) noexcept) noexcept;

/// sp_close's and sp_pool_close's work: as session_end, then durable memory is unmapped. Errors: as Engine::stop(); not_open.
[[nodiscard]] Result<void> session_close(Session& session);
/// session_close for a thread of the program, which leaves durable memory with it. Errors also: detached, inside_fase.
[[nodiscard]] Result<void> session_close_by_caller(Session& session);

void session_before_fork() noexcept;
void session_after_fork_in_parent() noexcept;
/// In a child, before anything else: a pool that is still to be opened may be opened there.
void session_defer_after_fork() noexcept;
/// Detaches the child from all pools; its first durable allocation or FASE says so once.
void session_after_fork_in_child() noexcept;

/// From the SIGSEGV handler: true if the engine's tracker raised the fault.
[[nodiscard]] bool session_handle_fault(void* address) noexcept;
/// From the SIGBUS handler: true if the engine continues without that memory. Does not return where it was the program's own
/// durable memory: the process ends with a message.
[[nodiscard]] bool session_handle_lost_memory(void* address) noexcept;
[[nodiscard]] bool session_needs_fault_handler() noexcept;

/// A thread of the program ends: its heap cache goes back.
void session_thread_exit() noexcept;

/// Prints the failure and ends the process with its exit code; no handler runs.
[[noreturn]] void end_process(const Failure& failure) noexcept;

/// Exit code of a process that cannot go on: sysexits.h numbers (docs/guide/exit-codes.md).
[[nodiscard]] int exit_code_for(sp_error code) noexcept;

}  // namespace stillpoint
