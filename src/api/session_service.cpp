#include "api/session_service.hpp"

#include "media/open.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/service_manager.hpp"
#include "runtime/message_queue.hpp"
#include "runtime/term_signal.hpp"

namespace stillpoint {

namespace {

constexpr std::uint64_t limit_ms = 5000;

constinit sync::Atomic<std::uint32_t> never_changes{0};

void checkpoint(Session& session) noexcept
{
    if (session.detached.load(std::memory_order_acquire) || !session.in_use.load(std::memory_order_acquire)) {
        return;
    }
    while (is_open(&session) && session.ending.load(std::memory_order_acquire)) {
        // A thread of the program takes the last checkpoint already: until it has ended, or the limit.
        os::futex_wait(never_changes, 0, os::deadline_after_ms(1));
    }
    if (!is_open(&session)) {
        return;  // sp_close has made it durable.
    }
    const InSession in(session);
    const AtRest here(&session);
    const std::uint64_t epoch = session.engine->epoch();
    if (auto taken = session.engine->checkpoint_now(); taken) {
        os::log(os::Severity::note, "SIGTERM: {} has everything up to epoch {}; the program ends", session.pool, epoch);
    } else {
        os::log(os::Severity::error, "SIGTERM: no last checkpoint of {}: {}", session.pool, taken.error().text());
    }
}

void checkpoint_all() noexcept
{
    os::tell_service_manager("STOPPING=1\nSTATUS=making a last checkpoint");
    note_program_ends();
    for_each_session(&checkpoint);
    message_queue::flush();
}

}  // namespace

Result<void> session_take_term(const Session& session)
{
    // Where threads are processes, the process of this session is not the program's.
    if (!session.makes_checkpoint_on_term || session.engine->divides_program()) {
        return {};
    }
    return term_signal::take_over(&checkpoint_all, limit_ms);
}

void session_tell_ready(const Session& session) noexcept
{
    if (!session.notifies) {
        return;
    }
    const auto found = os::find_service_manager();
    if (!found) {
        os::write_line(os::Severity::warning, found.error().text());
        return;
    }
    const char* const how = session.start_kind == SP_START_FRESH   ? "a new pool"
                            : session.start_kind == SP_START_CLEAN ? "reopened after a normal end"
                                                                   : "recovered after a crash";
    char state[128];
    *fmt::format_to_n(state, sizeof state - 1, "READY=1\nSTATUS=pool: {}, epoch {}", how, session.engine->durable_epoch()).out = '\0';
    os::tell_service_manager(state);
}

}  // namespace stillpoint
