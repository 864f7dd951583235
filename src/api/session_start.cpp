// How a process comes to its session: before main where the program, or a library that it was started with, refers to
// this library; at the first durable use in all others. So wrappers (shells, taskset, env, timeout, interpreters) leave
// the pool, and what is to be said of its last run, to the program that uses it.
//
// A session that is open has not begun before the program's first call that needs it: until then the pool is as it was,
// and a process that ends, or becomes another program, leaves it so.

#include <cerrno>
#include <csignal>
#include <climits>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "api/options.hpp"
#include "api/registry.hpp"
#include "api/session.hpp"
#include "api/session_pool.hpp"
#include "api/session_service.hpp"
#include "media/open.hpp"
#include "media/private_medium.hpp"
#include "os/environment.hpp"
#include "os/library_users.hpp"
#include "os/log.hpp"
#include "runtime/durable_globals.hpp"
#include "runtime/fase.hpp"
#include "runtime/fault_handler.hpp"
#include "runtime/message_queue.hpp"
#include "runtime/pool_owner.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

namespace {

constinit std::atomic<bool> deferred{false};  ///< a pool is named, and the first durable use opens it
constinit os::FutexLock use_lock;
constinit thread_local bool is_beginning [[gnu::tls_model("initial-exec")]] = false;

/// The process that `stillpoint run` became, and not what that has started.
bool is_the_process_of_run() { return process_in(run_variable) == getpid(); }

bool opens_at_the_start()
{
    const char* const choice = os::environment_variable("STILLPOINT_OPEN");
    return (choice != nullptr && std::string_view(choice) == "start") || os::loaded_modules_use_this_library() || has_durable_globals();
}

/// The user hears once of variables that name no option: from this process, or from the one that `stillpoint run` became.
constinit bool heard_of_unknown_variables = false;

void warn_of_unknown_variables_once(const Options& options)
{
    if (!options.quiet && !heard_of_unknown_variables) {
        warn_of_unknown_variables();
    }
    heard_of_unknown_variables = true;
}

/// The program has ended: this process, which the user has started, ends likewise.
[[noreturn]] void end_as(const ProgramEnd& end)
{
    const int status = end.status;
    if (WIFSIGNALED(status)) {
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);  // The program's process has left one, if it was to.
        struct sigaction standard{};
        standard.sa_handler = SIG_DFL;
        sigaction(WTERMSIG(status), &standard, nullptr);
        const std::uint64_t none = 0;
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
        syscall(SYS_kill, getpid(), WTERMSIG(status));
    } else if (end.sections_are_whole) {
        session_end();
    } else {
        os::log(os::Severity::warning, "the program ended while a thread was inside a section of which others had seen a part: no last "
                                       "checkpoint, and what came after the beginning of that section is lost");
    }
    syscall(SYS_exit_group, WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE);
    __builtin_unreachable();
}

/// Returns in the program's process.
void divide_or_end(Session& session)
{
    static_cast<void>(begin_first_use());
    auto divided = session.engine->divide_program();
    if (!divided) {
        end_process(divided.error());
    }
    if (divided->has_value()) {
        end_as(**divided);
    }
    session.detached.store(false, std::memory_order_release);
}

/// Opens the pool that the environment names, or ends the process.
void open_or_end(const char* pool, bool begins)
{
    try {
        auto options = options_from_environment();
        if (!options) {
            end_process(options.error());
        }
        warn_of_unknown_variables_once(*options);
        const auto beginning = begins || options->open == "start" ? SessionBegin::at_once : SessionBegin::at_first_use;
        session_process::may_divide.store(!begins, std::memory_order_relaxed);
        if (auto opened = session_open(*options, beginning); !opened) {
            end_process(opened.error());
        }
        session_process::may_divide.store(false, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
        end_process(fail(SP_E_NO_MEMORY, ENOMEM, "no memory to open {}", pool).value());
    }
    announce_owner();
    if (Session* const session = default_session(); session->engine->divides_program()) {
        divide_or_end(*session);
    }
}

/// Warnings for the user of `stillpoint run` before anything runs.
void validate_or_end(const char* pool)
{
    try {
        auto options = options_from_environment();
        if (!options) {
            end_process(options.error());
        }
        warn_of_unknown_variables_once(*options);
        if (auto fit = session_validate(*options); !fit) {
            end_process(fit.error());
        }
    } catch (const std::bad_alloc&) {
        end_process(fail(SP_E_NO_MEMORY, ENOMEM, "no memory to open {}", pool).value());
    }
}

/// The first use may come after chdir, or in a program that this one starts elsewhere.
void make_path_absolute(const char* pool)
{
    static char text[PATH_MAX + sizeof "STILLPOINT_POOL=/"];
    char folder[PATH_MAX];
    if (*pool == '/' || lies_in_no_file(pool) || getcwd(folder, sizeof folder) == nullptr) {
        return;
    }
    const auto end = fmt::format_to_n(text, sizeof text - 1, "{}={}/{}", pool_variable, folder, pool);
    if (end.size < sizeof text) {
        os::put_environment_variable(text);
    }
}

/// Whether the engine that will serve this process counts locks: the one that is named, or the one of the pool that exists.
bool locks_will_count()
{
    try {
        Options options;
        options.pool = os::environment_variable(pool_variable);
        const char* const engine = os::environment_variable("STILLPOINT_ENGINE");
        const auto parsed = engine != nullptr ? parse_option(options, "engine", engine) : Result<void>{};
        const EngineDriver* const driver = parsed ? find_engine(engine_of_next_opening(options)) : nullptr;
        return driver == nullptr || locks_delimit(driver->programs);
    } catch (const std::bad_alloc&) {
        return true;
    }
}

/// Locks that are held when the pool is opened must count: the section that opens it is whole, too.
void count_locks_early()
{
    static const bool locks_count = locks_will_count();  // Before any fork.
    if (locks_count) {
        [[maybe_unused]] const auto ignored = fase_activate();  // Opening the pool tells what is wrong.
    }
}

Session* open_deferred() noexcept
{
    if (!deferred.load(std::memory_order_acquire)) {
        return nullptr;
    }
    const char* const pool = os::environment_variable(pool_variable);
    deferred.store(false, std::memory_order_relaxed);
    if (pool != nullptr && *pool != '\0') {
        open_or_end(pool, true);
    }
    return default_session();
}

}  // namespace

void session_start_from_environment() noexcept
{
    const char* const pool = os::environment_variable(pool_variable);
    if (pool == nullptr || *pool == '\0' || owned_by_another_process()) {
        return;
    }
    heard_of_unknown_variables = is_later_program_of_run();
    reserve_owner_variable();
    set_first_use_hook(&begin_first_use);
    if (opens_at_the_start()) {
        open_or_end(pool, false);
        return;
    }
    if (is_the_process_of_run()) {
        validate_or_end(pool);
    }
    make_path_absolute(pool);
    count_locks_early();
    expect_fault_handlers();
    deferred.store(true, std::memory_order_release);
}

Result<void> run_engine(const Session& session) noexcept
{
    try {
        if (auto begun = session.engine->run(); !begun) {
            return begun;
        }
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, ENOMEM, "no memory to open {}", session.pool);
    }
    if (session.private_medium != nullptr) {
        session.private_medium->seal();
    }
    if (auto taken = session_take_term(session); !taken) {
        return taken;
    }
    session_tell_ready(session);
    if (session.engine->pool_facts().superblock_repaired) {
        os::log(os::Severity::warning, "{}: a damaged superblock was repaired from its copy", session.pool);
    }
    return {};
}

Session* begin_first_use() noexcept
{
    if (is_beginning || (default_session() == nullptr && !deferred.load(std::memory_order_acquire))) {
        return default_session();
    }
    is_beginning = true;
    const int saved_errno = errno;
    {
        const std::lock_guard guard(use_lock);
        Session* session = default_session();
        if (session == nullptr) {
            session = open_deferred();
        }
        const bool begins = session != nullptr && !session->in_use.load(std::memory_order_relaxed) &&
                            !session->detached.load(std::memory_order_relaxed);
        if (begins) {
            if (auto begun = run_engine(*session); !begun) {
                end_process(begun.error());
            }
            session->in_use.store(true, std::memory_order_release);
            take_layout_steps(*session);
        }
    }
    errno = saved_errno;
    is_beginning = false;
    return default_session();
}

void session_defer_after_fork() noexcept
{
    use_lock.reset_after_fork();
    if (deferred.load(std::memory_order_acquire)) {
        count_locks_early();
    }
}

void session_end_without_pool() noexcept
{
    const char* const pool = os::environment_variable(pool_variable);
    if (deferred.load(std::memory_order_acquire) && pool != nullptr && is_the_process_of_run() && !lies_in_no_file(pool) &&
        access(pool, F_OK) != 0 && errno == ENOENT) {
        os::log(os::Severity::warning,
                "{} was not made: neither {} nor what it started calls this library for durable memory, so nothing "
                "survives. Link the program with -lstillpoint, and keep data that must survive in memory of sp_malloc and sp_root",
                pool, program_invocation_short_name);
    }
}

void end_process(const Failure& failure) noexcept
{
    os::write_line(os::Severity::error, failure.text());
    message_queue::flush();
    syscall(SYS_exit_group, exit_code_for(failure.code));
    __builtin_unreachable();
}

}  // namespace stillpoint
