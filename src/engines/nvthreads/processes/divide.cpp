#include "engines/nvthreads/processes/divide.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engines/nvthreads/processes/supervisor.hpp"
#include "engines/nvthreads/processes/thread_stacks.hpp"
#include "engines/nvthreads/processes/threads.hpp"
#include "engines/nvthreads/processes/worker.hpp"
#include "os/own_mappings.hpp"
#include "os/thread_calls.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/fault_handler.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/session_process.hpp"

namespace stillpoint::nvthreads::processes {

namespace {

/// The function of libstillpoint-heap that begins to share.
constexpr const char* heap_symbol = "stillpoint_shared_heap";

void hand_over(section_ends::Handover handover) noexcept { Worker::own().hand_over(handover); }
void section_ended() noexcept { Worker::own().acknowledge(); }
bool handle_fault(void* address) noexcept { return Worker::own().handle_fault(address); }

void call_supervisor(void (*function)(void* bytes), void* bytes, std::size_t size) noexcept { Worker::own().call(function, bytes, size); }

/// Stores of a section that has not ended are left out.
void program_ends() noexcept
{
    Worker& worker = Worker::own();
    if (worker.slot().process.load(std::memory_order_relaxed) != getpid()) {
        return;  // A child made by vfork, on this one's memory.
    }
    if (!inside_fase()) {
        worker.hand_over(section_ends::Handover::outside);
    }
    worker.slot().exit_asked.store(1, std::memory_order_release);
}

void tell_exit(int /*status*/, void* /*unused*/) { program_ends(); }

/// Each process has its own buffers, in this library's private memory; the streams themselves are libc's, and private, too. Lines are
/// written whole.
void separate_streams() noexcept
{
    static char of_stdin[BUFSIZ];
    static char of_stdout[BUFSIZ];
    std::setvbuf(stdin, of_stdin, _IOFBF, sizeof of_stdin);
    std::setvbuf(stdout, of_stdout, _IOLBF, sizeof of_stdout);
}

/// The calling process is the program's, and its thread the first one.
Result<void> begin_program(ControlArea& area, const DivisionParts& parts)
{
    if (!die_with_supervisor(area.supervisor)) {
        syscall(SYS_exit_group, 1);
    }
    const WorkerSettings settings{&area, parts.shadow->base(), parts.image_bytes_max, parts.shadow->file(),
                                  parts.logs->mode() == Acknowledge::unlock};
    if (auto done = Worker::own().begin(settings); !done) {
        return done;
    }
    if (!os::claim_mapping(parts.shadow->base(), parts.image_bytes_max)) {
        return fail(SP_E_NO_MEMORY, 0, "too many pools are open in this process");
    }
    if (const auto share_heap = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, heap_symbol)); share_heap() != 0) {
        return fail(SP_E_NO_MEMORY, errno, "no shared memory for the program's heap: {}", std::strerror(errno));
    }
    if (auto done = share_variables(); !done) {
        return done;
    }
    if (auto done = ThreadStacks::share_first_stack(); !done) {
        return done;
    }
    if (auto done = check_faults_keep_registers(); !done) {
        return done;
    }
    if (auto done = fault_handler_install(SIGSEGV, &handle_fault); !done) {
        return done;
    }
    ThreadSlot& slot = area.threads[0];
    slot.process.store(getpid(), std::memory_order_relaxed);
    slot.thread_id.store(os::thread_id(), std::memory_order_relaxed);
    slot.self.store(pthread_self(), std::memory_order_relaxed);
    slot.state.store(static_cast<std::uint32_t>(ThreadState::running), std::memory_order_release);
    area.threads_used = 1;
    static constexpr session_process::Calls calls{&call_supervisor, &program_ends};
    session_process::set_elsewhere(calls, {replaced_lock_calls(), replaced_other_calls()});
    if (auto done = fase_activate(); !done) {
        return done;
    }
    fase::gate.bits.fetch_or(fase::libc_only);
    static constexpr section_ends::Calls ends{&hand_over, &section_ended};
    section_ends::want(ends);
    separate_streams();
    on_exit(&tell_exit, nullptr);
    return {};
}

}  // namespace

Result<void> check_divisible()
{
    if (!session_process::may_divide.load(std::memory_order_relaxed)) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "threads=processes needs the pool to be opened before main: start the program with `stillpoint run --open=start`, and "
                    "do not open the pool by sp_open");
    }
    if (dlsym(RTLD_DEFAULT, heap_symbol) == nullptr) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "threads=processes needs malloc in shared memory: start the program with `stillpoint run`, or preload "
                    "libstillpoint-heap.so");
    }
    return {};
}

Result<std::optional<ProgramEnd>> divide(const DivisionParts& parts)
{
    auto area = make_control_area();
    if (!area) {
        return pass_on(area.error());
    }
    const auto stacks = ThreadStacks::reserve();
    if (!stacks) {
        return pass_on(stacks.error());
    }
    (*area)->stacks = *stacks;
    (*area)->supervisor = getpid();
    std::uint64_t before = 0;
    const std::uint64_t all = ~std::uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    const pid_t first = fork();
    if (first < 0) {
        return fail(SP_E_NO_MEMORY, errno, "the program's process cannot be made: {}", std::strerror(errno));
    }
    if (first == 0) {
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
        if (auto begun = begin_program(**area, parts); !begun) {
            return pass_on(begun.error());
        }
        return std::nullopt;
    }
    static Supervisor supervisor;
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, nullptr);
    if (auto started =
            supervisor.start({*area, parts.logs, parts.shadow->base(), parts.image_bytes_max, parts.wait_max_ns, parts.statistics_number});
        !started) {
        kill(first, SIGKILL);
        return pass_on(started.error());
    }
    const ProgramEnd end = supervisor.wait_for_program(first);
    supervisor.stop();
    return end;
}

bool is_program() noexcept { return session_process::is_elsewhere(); }
Result<void> wait_durable_in_program(std::uint64_t deadline_ns) noexcept { return Worker::own().wait_durable(deadline_ns); }
void open_pages_in_program(const void* address, std::size_t size) noexcept { Worker::own().open_pages(address, size); }

}  // namespace stillpoint::nvthreads::processes
