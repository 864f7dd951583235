// The C API of this engine (stillpoint/pronto.h).

#include "engines/pronto/pronto_engine.hpp"
#include "engines/pronto/types.hpp"
#include "runtime/api_export.hpp"
#include "runtime/session_state.hpp"
#include "runtime/session_waits.hpp"
#include "stillpoint/pronto.h"

using stillpoint::fail;
using stillpoint::Result;
using stillpoint::Session;
using stillpoint::used_session;
using stillpoint::pronto::OperationLog;
using stillpoint::pronto::ThreadLog;
using stillpoint::pronto::WaitsUntilDurable;

namespace {

/// Why no log is available.
stillpoint::Failure no_log(const Session* session)
{
    if (session == nullptr) {
        return fail(SP_E_NOT_OPEN, 0,
                    "durable objects need a pool: start the program with `stillpoint run --engine pronto`, or call sp_open with "
                    "\"engine=pronto\"")
            .value();
    }
    return fail(SP_E_POOL_ENGINE, 0, "durable objects need a pool of the engine pronto; this one is of {}",
                session->engine->pool_facts().engine_name)
        .value();
}

Result<OperationLog*> log_of(Session* session)
{
    if (session != nullptr && session->detached.load(std::memory_order_acquire)) {
        return fail(SP_E_DETACHED, 0, "a child made by fork has no durable objects: they belong to its parent");
    }
    OperationLog* const log = session != nullptr ? stillpoint::pronto::log_of_session(*session) : nullptr;
    if (log == nullptr) {
        return stillpoint::pass_on(no_log(session));
    }
    return log;
}

template <class Call>
int on_log(Session* session, Call&& call)
{
    auto log = log_of(session);
    if (!log) {
        return stillpoint::report(log.error());
    }
    if (auto done = call(**log); !done) {
        return stillpoint::report(done.error());
    }
    return SP_OK;
}

/// The session of the pool that `object` lies in; of an address in no pool, the one that the thread acts on, whose log will say so.
Session* session_with(const void* object) noexcept
{
    Session* const session = stillpoint::session_of(object);
    return session != nullptr && session->in_use.load(std::memory_order_acquire) ? session : used_session();
}

/// For calls on an operation that was begun: there is a log, or the pool was closed since. One that is not logged may have any log.
template <class Call>
int on_log_of(const sp_pronto_operation& memory, Call&& call)
{
    Session* const session = reinterpret_cast<const stillpoint::pronto::Operation&>(memory).session;
    if (session == nullptr) {
        return on_log(used_session(), call);
    }
    return on_log(stillpoint::is_open(session) ? session : nullptr, call);
}

/// The ticket of an operation that this thread has just committed. In a replay, and inside another operation, there is nothing to wait for.
sp_pronto_ticket ticket_of(const sp_pronto_operation& memory)
{
    const auto& operation = reinterpret_cast<const stillpoint::pronto::Operation&>(memory);
    return operation.state == stillpoint::pronto::Operation::inactive ? sp_pronto_ticket{} : operation.thread->newest;
}

/// To `ticket`, if it is wanted, that of the thread's newest operation that was not waited for.
void give_newest(const ThreadLog* thread, sp_pronto_ticket* ticket) noexcept
{
    if (ticket != nullptr) {
        *ticket = thread != nullptr ? thread->newest : sp_pronto_ticket{};
    }
}

void* address_or_error(const Result<void*>& result, int* error)
{
    const int code = result ? static_cast<int>(SP_OK) : stillpoint::report(result.error());
    if (error != nullptr) {
        *error = code;
    }
    return result ? *result : nullptr;
}

}  // namespace

STILLPOINT_API int sp_pronto_register(const sp_pronto_type* type)
{
    if (type == nullptr) {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "no type").value());
    }
    if (auto done = stillpoint::pronto::register_type(*type); !done) {
        return stillpoint::report(done.error());
    }
    return SP_OK;
}

STILLPOINT_API void* sp_pronto_object(const sp_pronto_type* type, const char* name, unsigned flags, const void* arguments, size_t bytes,
                                      int* error)
{
    Session* const session = used_session();
    const auto open = [&]() -> Result<void*> {
        auto log = log_of(session);
        if (!log) {
            return stillpoint::pass_on(log.error());
        }
        if (type == nullptr || name == nullptr) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "a durable object needs a type and a name");
        }
        return (*log)->object(*session, *type, name, flags, arguments, bytes);
    };
    return address_or_error(open(), error);
}

STILLPOINT_API int sp_pronto_delete(const char* name)
{
    Session* const session = used_session();
    return on_log(session, [&](OperationLog& log) -> Result<void> {
        if (name == nullptr) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "no name");
        }
        return log.delete_object(*session, name);
    });
}

STILLPOINT_API int sp_pronto_is_object(const void* object)
{
    auto log = log_of(session_with(object));
    return log && (*log)->is_object(object) ? 1 : 0;
}

STILLPOINT_API void* sp_pronto_begin(sp_pronto_operation* operation, void* object, uint32_t method, size_t bytes, int* error)
{
    auto log = log_of(session_with(object));
    return address_or_error(log ? (*log)->begin(*operation, object, method, bytes) : stillpoint::pass_on(log.error()), error);
}

STILLPOINT_API void sp_pronto_start_logging(sp_pronto_operation* operation)
{
    static_cast<void>(on_log_of(*operation, [&](OperationLog& log) -> Result<void> {
        log.start_logging(*operation);
        return {};
    }));
}

STILLPOINT_API int sp_pronto_commit(sp_pronto_operation* operation)
{
    return on_log_of(*operation, [&](OperationLog& log) { return log.commit(*operation, WaitsUntilDurable::commit); });
}

STILLPOINT_API int sp_pronto_commit_early(sp_pronto_operation* operation)
{
    return on_log_of(*operation, [&](OperationLog& log) { return log.commit(*operation, WaitsUntilDurable::end); });
}

STILLPOINT_API int sp_pronto_commit_async(sp_pronto_operation* operation, sp_pronto_ticket* ticket)
{
    return on_log_of(*operation, [&](OperationLog& log) {
        auto done = log.commit(*operation, WaitsUntilDurable::none);
        *ticket = ticket_of(*operation);
        return done;
    });
}

STILLPOINT_API int sp_pronto_wait(const sp_pronto_ticket* ticket, int64_t timeout_ms)
{
    if (ticket->object == nullptr) {
        return SP_OK;
    }
    return on_log(session_with(ticket->object), [&](OperationLog& log) { return log.wait(*ticket, timeout_ms); });
}

STILLPOINT_API void sp_pronto_defer_begin(void)
{
    if (ThreadLog* const thread = stillpoint::pronto::own_thread_log(); thread != nullptr && thread->deferrals++ == 0) {
        thread->newest = {};
    }
}

STILLPOINT_API void sp_pronto_defer_end(sp_pronto_ticket* ticket)
{
    ThreadLog* const thread = stillpoint::pronto::existing_thread_log();
    give_newest(thread, ticket);
    if (thread != nullptr && thread->deferrals != 0) {
        --thread->deferrals;
    }
}

STILLPOINT_API int sp_pronto_inside_operation(void)
{
    const ThreadLog* const thread = stillpoint::pronto::existing_thread_log();
    return thread != nullptr && (thread->current != nullptr || thread->replaying != nullptr) ? 1 : 0;
}

STILLPOINT_API void sp_pronto_group_begin(void)
{
    ThreadLog* const thread = stillpoint::pronto::own_thread_log();
    if (thread != nullptr && thread->group.depth++ == 0 && thread->deferrals == 0) {
        thread->newest = {};
    }
}

STILLPOINT_API int sp_pronto_group_end(sp_pronto_ticket* ticket)
{
    ThreadLog* const thread = stillpoint::pronto::existing_thread_log();
    give_newest(thread, ticket);
    if (thread == nullptr || thread->group.depth == 0) {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "sp_pronto_group_end: the thread has begun no group").value());
    }
    if (--thread->group.depth != 0 || thread->group.object == nullptr) {
        return SP_OK;
    }
    return on_log(thread->group.object->session, [&](OperationLog& log) { return log.end_group(*thread); });
}

STILLPOINT_API int sp_pronto_wait_or_defer(const sp_pronto_ticket* ticket)
{
    if (ticket->turn == 0) {
        return SP_OK;
    }
    ThreadLog* const thread = stillpoint::pronto::existing_thread_log();
    if (thread == nullptr || thread->deferrals == 0) {
        return sp_pronto_wait(ticket, -1);
    }
    thread->newest = *ticket;
    return SP_OK;
}

STILLPOINT_API int sp_pronto_end(sp_pronto_operation* operation, int by_exception)
{
    return on_log_of(*operation, [&](OperationLog& log) { return log.end(*operation, by_exception != 0); });
}

STILLPOINT_API int sp_pronto_commit_current(void)
{
    const ThreadLog* const thread = stillpoint::pronto::existing_thread_log();
    if (thread == nullptr || thread->current == nullptr) {
        return on_log(used_session(), [](OperationLog&) { return Result<void>{}; });
    }
    return sp_pronto_commit(reinterpret_cast<sp_pronto_operation*>(thread->current));
}

STILLPOINT_API int sp_pronto_wait_read(const void* object)
{
    return on_log(session_with(object), [&](OperationLog& log) { return log.wait_read(object); });
}

STILLPOINT_API int sp_pronto_numbers(const void* object, uint64_t* committed, uint64_t* durable)
{
    return on_log(session_with(object), [&](OperationLog& log) { return log.numbers(object, committed, durable); });
}

STILLPOINT_API int sp_pronto_snapshot(void)
{
    auto taken = stillpoint::take_checkpoint();
    return taken ? SP_OK : stillpoint::report(taken.error());
}
