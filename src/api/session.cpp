#include "api/session.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "api/messages.hpp"
#include "api/options.hpp"
#include "api/session_faults.hpp"
#include "api/session_image.hpp"
#include "api/session_pool.hpp"
#include "api/statistics.hpp"
#include "media/open.hpp"
#include "media/replica/replicated_medium.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/own_mappings.hpp"
#include "os/service_manager.hpp"
#include "os/thread_calls.hpp"
#include "runtime/data_layout.hpp"
#include "runtime/durable_globals.hpp"
#include "runtime/fase.hpp"
#include "runtime/fault_handler.hpp"
#include "runtime/kernel_call.hpp"
#include "runtime/kernel_lock_call.hpp"
#include "runtime/message_queue.hpp"
#include "runtime/program_fit.hpp"
#include "runtime/program_limits.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "runtime/session_waits.hpp"
#include "runtime/stop_turns.hpp"
#include "runtime/sync_objects.hpp"
#include "runtime/term_signal.hpp"

namespace stillpoint {

namespace {

/// While a pool is opened or closed.
constinit os::FutexLock opening_lock;
/// While a thread that ends leaves the sessions, and while one of them is taken off the list. Inside opening_lock. An engine that stops
/// waits for its threads, so this lock is free then.
constinit os::FutexLock leaving_lock;

void announce(const Session& session, const Options& options, const RecoveryReport& report, std::string_view mechanism)
{
    const char* how = "new pool";
    if (session.start_kind == SP_START_CLEAN) {
        how = "reopened after a normal end";
    } else if (session.start_kind == SP_START_CRASHED) {
        how = "recovered after a crash";
    }
    const char* promise = "process";
    if (session.engine->pool_facts().durability == Durability::power) {
        promise = options.medium == "memory" ? "power (emulated)" : "power";
    }
    os::log(os::Severity::note,
            "{}: {} at epoch {} in {:.1f} ms ({} {}); engine {}, "
            "tracker {}, {}, durability {}, interval {} ms",
            options.pool, how, report.epoch, static_cast<double>(report.recovery_ns) / 1e6, report.pages_rolled_back, report.rolled_back,
            session.engine->pool_facts().engine_name, session.engine->tracker_name(), mechanism, promise, options.interval_ms);
}

}  // namespace

namespace {

Result<RecoveryReport> start_engine(Session& session, Pool pool, const Options& options)
{
    // Before the engine has threads: then it takes a microsecond, beside threads 4 to 10 ms. fase_activate() sees what came of it.
    static_cast<void>(os::register_for_membarrier());
    auto report = session.engine->start(std::move(pool), options);
    if (!report) {
        return report;
    }
    set_fault_engine(session.number, session.engine.get());
    auto installed = fault_handler_install(SIGBUS, &session_handle_lost_memory);
    if (installed && session.engine->needs_fault_handler()) {
        installed = check_faults_keep_registers();
    }
    if (installed && session.engine->needs_fault_handler()) {
        installed = fault_handler_install(SIGSEGV, &session_handle_fault);
    }
    if (!installed) {
        return pass_on(installed.error());
    }
    if (session.engine->needs_fault_handler()) {
        kernel_locks::are_guarded.store(true, std::memory_order_relaxed);
    }
    return report;
}

/// From a recovered image to running checkpoints.
Result<void> start_session(Session& session, const RecoveryReport& report, SessionBegin begin, const Options& options)
{
    const bool fresh = report.epoch == 0;
    if (auto attached = attach_image(session, report, options); !attached) {
        return attached;
    }
    session.start_kind = fresh ? SP_START_FRESH : report.clean ? SP_START_CLEAN : SP_START_CRASHED;
    session.notifies = options.notify && session.number == 0;
    session.makes_checkpoint_on_term = options.on_term == "checkpoint";
    set_thread_exit_hook(&session_thread_exit);
    if (auto activated = fase_activate(); !activated) {
        return activated;
    }
    if (begin == SessionBegin::at_first_use && !has_durable_globals()) {
        set_first_use_hook(&begin_first_use);
        return {};
    }
    session.in_use.store(true, std::memory_order_release);
    return run_engine(session);
}

}  // namespace

namespace {

/// The end of a session that did not begin, and of one whose engine has stopped: no thread finds it any more.
void forget_session(unsigned number) noexcept
{
    set_fault_engine(number, nullptr);
    const std::lock_guard guard(leaving_lock);
    set_session(number, nullptr);
    bool any = false;
    bool any_faults = false;
    for_each_session([&](const Session& other) {
        any = true;
        any_faults = any_faults || other.engine->needs_fault_handler();
    });
    kernel_locks::are_guarded.store(any_faults, std::memory_order_relaxed);
    if (!any) {
        fase_deactivate();
    }
}

/// The pool of a session, before anything of the process is changed for it.
Result<SessionPool> pool_for_session(unsigned number, const Options& options)
{
    os::set_least_severity(least_severity_of(options));
    if (auto checked = check_options(options); !checked) {
        return pass_on(checked.error());
    }
    if (auto checked = check_program_fits(); !checked) {
        return pass_on(checked.error());
    }
    auto opened = open_or_create_pool(options, number == 0 ? PoolPlace::usual : PoolPlace::free, number);
    if (opened) {
        tell_of_idle_options(options, opened->driver->format.name);
    }
    return opened;
}

/// A session on that pool, which is not published yet. The caller holds the lock.
Result<std::unique_ptr<Session>> make_session(unsigned number, SessionPool opened, Options options, SessionBegin begin,
                                              std::uint64_t begun_ns)
{
    const EngineDriver* const driver = opened.driver;
    Pool* const pool = &opened.pool;
    if (options.interval_ms == 0) {
        options.interval_ms = driver->interval_ms;
    }
    const std::string mechanism(pool->medium().mechanism());
    const PoolFacts facts = pool->facts();
    const StatisticsScope own_figures(number);
    // Figures are a service; a program is not refused where they cannot be kept.
    if (auto shared = statistics_open(options.pool, facts.uuid, driver->format.name, statistics_table()); !shared) {
        os::write_line(os::Severity::warning, shared.error().text());
    }
    static std::uint64_t sessions_made = 0;
    auto session = std::make_unique<Session>();
    session->serial = ++sessions_made;
    session->number = number;
    session->driver = driver;
    session->image_begin = facts.base_address;
    session->image_end = facts.base_address + facts.image_bytes_max;
    session->pool = options.pool;
    session->private_medium = opened.private_medium;
    session->replicated_medium = opened.replicated_medium;
    session->engine = driver->make();
    auto report = start_engine(*session, std::move(*pool), options);
    if (!report) {
        return pass_on(report.error());
    }
    if (auto started = start_session(*session, *report, begin, options); !started) {
        sync_objects_detach(session->engine->image_base());
        if (session->heap != nullptr) {
            session->heap->detach();
        }
        return pass_on(started.error());
    }
    report->recovery_ns = os::monotonic_ns() - begun_ns;
    Statistics& figures = statistics();
    figures.interval_ns.store(options.interval_ms * 1'000'000, std::memory_order_relaxed);
    figures.recovery_ns.store(report->recovery_ns, std::memory_order_relaxed);
    figures.recovered_epoch.store(report->epoch, std::memory_order_relaxed);
    announce(*session, options, *report, mechanism);
    tell_limits_of_program();
    return session;
}

/// Undoes what make_session() did before it failed.
void forget_attempt(unsigned number) noexcept
{
    const StatisticsScope own_figures(number);
    statistics_close();
    forget_session(number);
}

void tell_what_helps(const Failure& failure, const Options& options)
{
    if (failure.code == SP_E_POOL_CORRUPT) {
        os::log(os::Severity::note, "{}: `stillpoint check {}` tells what is lost, what is not, and which command helps", options.pool,
                options.pool);
    }
}

/// The lock is held: two threads that open a pool each get a number each.
Result<Session*> open_as(unsigned number, const Options& options, SessionBegin begin)
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    bool begun = false;
    // The only code that may run out of memory by an exception: what comes later does not call malloc.
    try {
        auto opened = pool_for_session(number, options);
        if (!opened) {
            tell_what_helps(opened.error(), options);
            return pass_on(opened.error());
        }
        set_end_handler(&end_process);
        begun = true;
        auto made = make_session(number, std::move(*opened), options, begin, begun_ns);
        if (!made) {
            forget_attempt(number);
            tell_what_helps(made.error(), options);
            return pass_on(made.error());
        }
        set_session(number, made->get());
        return made->release();
    } catch (const std::bad_alloc&) {
        if (begun) {
            forget_attempt(number);
        }
        return fail(SP_E_NO_MEMORY, ENOMEM, "no memory to open {}", options.pool);
    }
}

}  // namespace

namespace {

Result<Session*> open_default(const Options& options, SessionBegin begin)
{
    const std::lock_guard guard(opening_lock);
    if (default_session() != nullptr) {
        return fail(SP_E_ALREADY_OPEN, 0, "this process has the pool {} open already; sp_pool_open opens another one beside it",
                    default_session()->pool);
    }
    return open_as(0, options, begin);
}

}  // namespace

void take_layout_steps(Session& session) noexcept
{
    if (session.layout_steps.empty()) {
        return;
    }
    if (auto taken = run_layout_steps(session); !taken) {
        end_process(taken.error());
    }
}

Result<void> session_open(const Options& options, SessionBegin begin)
{
    auto opened = open_default(options, begin);
    if (!opened) {
        return pass_on(opened.error());
    }
    if ((*opened)->in_use.load(std::memory_order_relaxed)) {
        take_layout_steps(**opened);
    }
    return {};
}

Result<Session*> session_open_further(const Options& options)
{
    const std::lock_guard guard(opening_lock);
    for (unsigned number = 1; number < sessions_max; ++number) {
        if (sessions::open[number].load(std::memory_order_relaxed) == nullptr) {
            return open_as(number, options, SessionBegin::at_once);
        }
    }
    return fail(SP_E_NO_MEMORY, 0, "{}: this process has {} pools open beside its default one, the maximum", options.pool,
                sessions_max - 1);
}

Result<void> session_validate(const Options& options)
{
    os::set_least_severity(least_severity_of(options));
    return validate_pool(options);
}

namespace {
std::atomic<void (*)(const Heap&) noexcept> end_hook{nullptr};

void call_end_hook(const Session& session) noexcept
{
    if (const auto hook = end_hook.load(std::memory_order_acquire); hook != nullptr) {
        hook(*session.heap);
    }
}
}  // namespace

void set_session_end_hook(void (*hook)(const Heap& heap) noexcept) noexcept { end_hook.store(hook, std::memory_order_release); }

namespace {

/// The program's exit code is its own, whatever is lost: so this is an error's line, which no option silences, unless the program never
/// had durable memory. `what` ends before the epoch's number.
void tell_of_lost_end(const Session& session, const char* what, bool others_hold) noexcept
{
    const Statistics& figures = statistics();
    const std::uint64_t durable = session.engine->durable_epoch();
    char holder[96] = "";
    if (const auto thread = figures.blocker_thread_id.load(std::memory_order_relaxed); others_hold && thread != 0) {
        const auto lock = reinterpret_cast<const void*>(figures.blocker_lock.load(std::memory_order_relaxed));
        const auto end = fmt::format_to_n(holder, sizeof holder - 1, "; thread {} was in a section to the end (outermost lock {})", thread,
                                          lock);
        *end.out = '\0';
    }
    const bool nothing = durable <= figures.recovered_epoch.load(std::memory_order_relaxed);
    const bool has_something_to_lose = session.heap->statistics().live_blocks != 0;  // Globals are kept in a block.
    os::log(has_something_to_lose ? os::Severity::error : os::Severity::warning, "{} {}{}; {}", what, durable, holder,
            nothing ? "no work of this run is kept" : "what was done after it is lost");
}

}  // namespace

namespace {

/// Nothing where it has ended before, or was never in use.
void end_engine(Session& session) noexcept
{
    if (session.detached.load(std::memory_order_acquire) || session.ending.exchange(true, std::memory_order_acq_rel) ||
        !session.in_use.load(std::memory_order_acquire)) {
        return;  // Not in use: the pool is as it was, and its next start is what this one would have been.
    }
    const StatisticsScope own_figures(session.number);
    const AtRest here(&session);
    if (inside_fase()) {
        tell_of_lost_end(session,
                         "the program ends inside a failure-atomic section (a lock is held): no last checkpoint; the pool stays at "
                         "epoch",
                         false);
        return;
    }
    call_end_hook(session);
    auto stopped = session.engine->stop(true);
    if (session.private_medium != nullptr) {
        return;  // The start has said so.
    }
    if (!stopped && stopped.error().code == SP_E_TIMED_OUT) {
        tell_of_lost_end(session, "no quiescent state for a last checkpoint; the pool stays at epoch", true);
    } else if (!stopped) {
        os::write_line(os::Severity::warning, stopped.error().text());  // The failure itself was an error's line when it happened.
    }
}

void end_session(Session& session) noexcept
{
    end_engine(session);
    const bool has_run = session.in_use.load(std::memory_order_acquire) && !session.detached.load(std::memory_order_acquire);
    if (has_run && session.replicated_medium != nullptr) {
        session.replicated_medium->finish();  // The process ends with its medium open.
    }
}

}  // namespace

void session_end() noexcept
{
    if (const auto* const calls = session_process::elsewhere.load(std::memory_order_acquire); calls != nullptr) {
        calls->program_ends();
        return;
    }
    if (default_session() == nullptr) {
        session_end_without_pool();
    }
    os::tell_service_manager("STOPPING=1");
    note_program_ends();
    for_each_session(&end_session);
    message_queue::flush();
}

Result<void> session_close(Session& session)
{
    if (session_process::is_elsewhere()) {
        return fail(SP_E_UNSUPPORTED, 0, "{}: a program whose threads are processes keeps its pool until it ends", session.pool);
    }
    const std::lock_guard guard(opening_lock);
    if (session.ending.exchange(true, std::memory_order_acq_rel)) {
        return fail(SP_E_NOT_OPEN, 0, "the pool {} is being closed already", session.pool);
    }
    const StatisticsScope own_figures(session.number);
    call_end_hook(session);
    auto stopped = session.engine->stop(true);
    if (session.private_medium != nullptr) {
        stopped = {};  // Nothing was to become durable.
    }
    sync_objects_detach(session.engine->image_base());
    forget_session(session.number);
    session.heap->detach();
    statistics_close();
    delete &session;
    return stopped;
}

Result<void> session_close_by_caller(Session& session)
{
    {
        const InSession in(session);
        session.engine->thread_ends();
        if (auto outside = session_to_wait_in(); !outside) {
            return pass_on(outside.error());
        }
    }
    if (sessions::chosen == &session) {
        sessions::chosen = nullptr;
    }
    return session_close(session);
}

void session_before_fork() noexcept
{
    if (session_process::is_elsewhere()) {
        end_process(fail(SP_E_UNSUPPORTED, 0,
                         "a copy of a process (daemon, forkpty) would share all memory with this program, whose "
                         "threads are processes: use threads=threads")
                        .value());
    }
    for_each_session([](const Session& session) {
        if (!session.detached.load(std::memory_order_acquire)) {
            session.engine->before_fork();
        }
    });
}

void session_after_fork_in_parent() noexcept {}

void session_after_fork_in_child() noexcept
{
    session_defer_after_fork();
    opening_lock.reset_after_fork();
    leaving_lock.reset_after_fork();
    message_queue::reset_after_fork();
    term_signal::reset_after_fork();
    bool any = false;
    for_each_session([&](Session& session) { any = !session.detached.exchange(true, std::memory_order_acq_rel) || any; });
    if (!any) {
        return;
    }
    fase_reset_after_fork();
    stop_turns_reset_after_fork();
    os::disown_mappings_after_fork();
    kernel_writes::reset_after_fork();
    kernel_locks::are_guarded.store(false, std::memory_order_relaxed);
    for_each_session([](Session& session) {
        session.directory_lock.reset_after_fork();
        session.engine->detach_after_fork();
    });
}

void session_thread_exit() noexcept
{
    kernel_calls_end_thread();
    const std::lock_guard guard(leaving_lock);
    for_each_session([](const Session& session) {
        session.engine->thread_ends();  // First: frees that wait belong to the running epoch.
        if (session_process::is_elsewhere()) {
            return;  // And so is its heap.
        }
        const FaseGuard fase;  // A span of which the last block comes back changes durable tables.
        session.heap->flush_thread_cache();
    });
}

}  // namespace stillpoint
