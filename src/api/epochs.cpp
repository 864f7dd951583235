// The C API: opening, epochs, failure-atomic sections, errors.

#include <algorithm>
#include <new>

#include "api/options.hpp"
#include "api/session.hpp"
#include "api/statistics.hpp"
#include "media/open.hpp"
#include "media/replica/replicated_medium.hpp"
#include "os/clock.hpp"
#include "runtime/api_export.hpp"
#include "runtime/fase.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "runtime/session_waits.hpp"
#include "stillpoint/stillpoint.h"

using stillpoint::fail;
using stillpoint::Failure;
using stillpoint::Result;
using stillpoint::Session;
using stillpoint::used_session;

STILLPOINT_API const char* sp_last_error(void) { return stillpoint::last_report(); }

STILLPOINT_API const char* sp_version(void) { return STILLPOINT_VERSION; }

STILLPOINT_API int sp_open(const char* path, const char* options_text)
{
    if (path == nullptr || *path == '\0') {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "sp_open needs a path").value());
    }
    try {
        auto options = stillpoint::options_of_call(path, options_text);
        if (!options) {
            return stillpoint::report(options.error());
        }
        auto opened = stillpoint::session_open(*options);
        return opened ? SP_OK : stillpoint::report(opened.error());
    } catch (const std::bad_alloc&) {
        return stillpoint::report(fail(SP_E_NO_MEMORY, ENOMEM, "no memory to open {}", path).value());
    }
}

STILLPOINT_API int sp_close(void)
{
    Session* const session = stillpoint::default_session();
    if (session == nullptr) {
        return stillpoint::report(fail(SP_E_NOT_OPEN, 0, "no pool is open").value());
    }
    auto closed = stillpoint::session_close_by_caller(*session);
    return closed ? SP_OK : stillpoint::report(closed.error());
}

STILLPOINT_API sp_start sp_start_kind(void)
{
    Session* const session = used_session();
    return session != nullptr ? session->start_kind : SP_START_VOLATILE;
}

STILLPOINT_API void sp_fase_begin(void) { stillpoint::fase_enter_section(); }

STILLPOINT_API void sp_fase_end(void) { stillpoint::fase_leave(nullptr); }

STILLPOINT_API bool sp_sections_are_atomic(void)
{
    const Session* const session = used_session();
    return session == nullptr || stillpoint::sections_are_atomic(session->driver->programs);
}

STILLPOINT_API void sp_fase_pause(void) { stillpoint::fase_pause(); }

STILLPOINT_API void sp_fase_resume(void) { stillpoint::fase_resume(); }

STILLPOINT_API int sp_lock_ignore(const void* lock)
{
    if (lock == nullptr) {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "sp_lock_ignore needs a lock").value());
    }
    auto ignored = stillpoint::fase_ignore_lock(lock);
    return ignored ? SP_OK : stillpoint::report(ignored.error());
}

STILLPOINT_API uint64_t sp_epoch(void)
{
    Session* const session = used_session();
    return session != nullptr ? session->engine->epoch() : 0;
}

STILLPOINT_API uint64_t sp_durable_epoch(void)
{
    Session* const session = used_session();
    return session != nullptr ? session->engine->durable_epoch() : 0;
}

STILLPOINT_API int sp_wait_durable(uint64_t epoch, int64_t timeout_ms)
{
    const stillpoint::AtRest here(used_session());
    auto session = stillpoint::session_to_make_durable();
    if (!session) {
        return stillpoint::report(session.error());
    }
    auto waited = (*session)->engine->wait_durable(epoch, stillpoint::os::deadline_after_ms(timeout_ms));
    return waited ? SP_OK : stillpoint::report(waited.error());
}

namespace {

/// Where threads are processes the supervisor waits a moment at a time, and serves other calls between.
Result<void> wait_for_replica(stillpoint::ReplicatedMedium* replicated, std::uint64_t deadline_ns)
{
    namespace process = stillpoint::session_process;
    constexpr std::uint64_t moment_ns = 2'000'000;
    if (!process::is_elsewhere()) {
        return replicated->wait(deadline_ns);
    }
    const std::uint64_t position = process::there([replicated] { return replicated->position(); });
    for (;;) {
        const std::uint64_t now_ns = stillpoint::os::monotonic_ns();
        const std::uint64_t end_ns = std::min(deadline_ns, now_ns + moment_ns);
        const int code = process::there([replicated, position, end_ns] {
            const auto waited = replicated->wait_for(position, end_ns);
            return waited ? static_cast<int>(SP_OK) : stillpoint::report(waited.error());
        });
        if (code == SP_OK) {
            return {};
        }
        if (code != SP_E_TIMED_OUT || now_ns >= deadline_ns) {
            return fail(static_cast<sp_error>(code), 0, "{}", stillpoint::last_report());
        }
    }
}

}  // namespace

STILLPOINT_API int sp_wait_durable_at(uint64_t epoch, sp_level level, int64_t timeout_ms)
{
    if (level != SP_LEVEL_LOCAL && level != SP_LEVEL_REMOTE) {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0,
                                       "sp_wait_durable_at: there is no level {}; use SP_LEVEL_LOCAL or SP_LEVEL_REMOTE",
                                       static_cast<int>(level))
                                      .value());
    }
    const std::uint64_t deadline_ns = stillpoint::os::deadline_after_ms(timeout_ms);
    const stillpoint::AtRest here(used_session());
    auto session = stillpoint::session_to_make_durable();
    if (!session) {
        return stillpoint::report(session.error());
    }
    stillpoint::ReplicatedMedium* const replicated = (*session)->replicated_medium;
    if (level == SP_LEVEL_REMOTE && replicated == nullptr && !stillpoint::lies_in_no_file((*session)->pool)) {
        return stillpoint::report(
            fail(SP_E_UNSUPPORTED, 0,
                 "{}: the pool has no replica, so no epoch survives the loss of this machine; name one (option replica)", (*session)->pool)
                .value());
    }
    auto waited = (*session)->engine->wait_durable(epoch, deadline_ns);
    if (waited && level == SP_LEVEL_REMOTE && replicated != nullptr) {
        waited = wait_for_replica(replicated, deadline_ns);
    }
    return waited ? SP_OK : stillpoint::report(waited.error());
}

STILLPOINT_API int sp_checkpoint(void)
{
    auto taken = stillpoint::take_checkpoint();
    return taken ? SP_OK : stillpoint::report(taken.error());
}

namespace {

int statistic_elsewhere(const char* name, uint64_t* value)
{
    struct Read {
        int code;
        uint64_t value;
    };
    const Read read = stillpoint::session_process::there([text = stillpoint::session_process::PassedText(name)] {
        Read there{};
        there.code = sp_statistic(text.get(), &there.value);
        return there;
    });
    if (read.code == SP_OK) {
        *value = read.value;
    }
    return read.code;
}

}  // namespace

STILLPOINT_API int sp_statistic(const char* name, uint64_t* value)
{
    if (name == nullptr || value == nullptr) {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "sp_statistic needs a name and a place for the value").value());
    }
    const Session* const session = used_session();
    if (session == nullptr) {
        return stillpoint::report(fail(SP_E_NOT_OPEN, 0, "no pool is open: there are no statistics").value());
    }
    if (stillpoint::session_process::is_elsewhere()) [[unlikely]] {
        return statistic_elsewhere(name, value);
    }
    for (const stillpoint::StatisticRow& row : stillpoint::statistic_rows()) {
        if (row.name == name) {
            *value = stillpoint::read_statistic(stillpoint::statistics_of(session->number), row);
            return SP_OK;
        }
    }
    return stillpoint::report(
        fail(SP_E_INVALID_ARGUMENT, 0, "\"{}\" is not a statistic: docs/guide/statistics.md lists all", name).value());
}
