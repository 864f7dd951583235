// A thread is made by a clone of its maker's process that shares files and the current folder, not memory [NVthreads §2, "executes a
// multi-threaded program as a multi-process program"]. The clone makes an ordinary thread of libc in itself, which runs the program's
// function: so thread-local variables, keys, cleanup handlers and pthread_exit are libc's own. The clone's first thread waits until that
// one has ended, or is to be cancelled.

#include "engines/nvthreads/processes/threads.hpp"

#include <alloca.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engines/nvthreads/processes/sync_calls.hpp"
#include "engines/nvthreads/processes/thread_stacks.hpp"
#include "engines/nvthreads/processes/worker.hpp"
#include "os/log.hpp"
#include "os/thread_calls.hpp"

namespace stillpoint::nvthreads::processes {

namespace {

enum Request : std::uint32_t { nothing, to_cancel, has_ended };

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Join = int(pthread_t, void**);
using Cancel = int(pthread_t);
Create* libc_create() noexcept
{
    static Create* const found = libc<Create>("pthread_create");
    return found;
}

ThreadState state_of(const ThreadSlot& slot) noexcept { return static_cast<ThreadState>(slot.state.load(std::memory_order_acquire)); }

void set_state(ThreadSlot& slot, ThreadState state) noexcept
{
    slot.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
    shared_wake(slot.state);
}

/// The slot of a thread that was made and is not gone; nullptr: there is none.
ThreadSlot* find(pthread_t thread) noexcept
{
    ControlArea& area = Worker::own().control();
    for (std::uint32_t i = 0; i < area.threads_used; ++i) {
        ThreadSlot& slot = area.threads[i];
        if (state_of(slot) != ThreadState::unused && slot.self.load(std::memory_order_acquire) == thread) {
            return &slot;
        }
    }
    return nullptr;
}

std::uint32_t index_of(const ThreadSlot& slot) noexcept
{
    return static_cast<std::uint32_t>(&slot - Worker::own().control().threads.data());
}

// ---- In the new process -------------------------------------------------------------------------

/// Tells the process's first thread, also when the thread is left by pthread_exit or cancelled.
class TellsEnd {
public:
    explicit TellsEnd(ThreadSlot& slot) noexcept : slot_(slot) {}
    ~TellsEnd()
    {
        slot_.request.store(has_ended, std::memory_order_release);
        shared_wake(slot_.request);
    }
    TellsEnd(const TellsEnd&) = delete;
    TellsEnd& operator=(const TellsEnd&) = delete;

private:
    ThreadSlot& slot_;
};

[[gnu::noinline]] void* run_program(ThreadSlot& slot)
{
    const TellsEnd end(slot);
    return slot.start(slot.argument);
}

std::uint64_t own_top_bytes = 0;  ///< of this process's stack place

void* thread_main(void* argument)
{
    auto& slot = *static_cast<ThreadSlot*>(argument);
    slot.thread_id.store(os::thread_id(), std::memory_order_relaxed);
    slot.self.store(pthread_self(), std::memory_order_release);
    set_state(slot, ThreadState::running);
    // The program's frames lie below the part of the stack that is this process's own.
    const std::byte* const place = ThreadStacks::place(Worker::own().control().stacks, Worker::own().index());
    const std::byte* const here = static_cast<std::byte*>(__builtin_frame_address(0));
    const std::byte* const shared_end = place + ThreadStacks::place_bytes - own_top_bytes;
    if (here > shared_end) {
        auto* const skipped = static_cast<volatile char*>(alloca(static_cast<std::size_t>(here - shared_end)));
        skipped[0] = 0;
    }
    return run_program(slot);
}

void end_process_with(ThreadSlot& slot, void* value) noexcept
{
    slot.value = value;
    Worker::own().thread_ends();  // Also what its last destructors have stored.
    slot.held.take_all([](SyncState& state, bool is_shared) {
        if (is_of_robust_mutex(state)) {
            release_for_dead(state, is_shared, Worker::own().number());
        }
    });
    std::fflush(stdout);
    set_state(slot, ThreadState::ended);
    syscall(SYS_exit_group, 0);
}

bool make_thread(ThreadSlot& slot, std::uint32_t index, pthread_t& made) noexcept
{
    const std::uintptr_t stacks = Worker::own().control().stacks;
    own_top_bytes = ThreadStacks::begin_place(stacks, index);
    pthread_attr_t attributes;
    const bool is_made = own_top_bytes != 0 && pthread_attr_init(&attributes) == 0 &&
                         pthread_attr_setstack(&attributes, ThreadStacks::place(stacks, index) + page_bytes,
                                               ThreadStacks::place_bytes - page_bytes) == 0 &&
                         libc_create()(&made, &attributes, &thread_main, &slot) == 0;
    return is_made;
}

/// The first thread of a thread's process.
int process_main(void* argument)
{
    auto& slot = *static_cast<ThreadSlot*>(argument);
    Worker& worker = Worker::own();
    ControlArea& area = worker.control();
    const auto index = static_cast<std::uint32_t>(&slot - area.threads.data());
    worker.become(index);
    static const auto heap_in_new_process = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "stillpoint_shared_heap_new_process"));
    heap_in_new_process();
    pthread_t made{};
    if (!die_with_supervisor(area.supervisor) || !make_thread(slot, index, made)) {
        syscall(SYS_exit_group, 1);
    }
    // Signals to the process are the thread's.
    const std::uint64_t all = ~std::uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);
    std::uint32_t request = nothing;
    while ((request = slot.request.load(std::memory_order_acquire)) != has_ended) {
        if (request == to_cancel) {
            static Cancel* const cancel = libc<Cancel>("pthread_cancel");
            static bool is_cancelled = false;
            if (!is_cancelled) {
                is_cancelled = true;
                cancel(made);
            }
        }
        shared_wait(slot.request, request);
    }
    void* value = nullptr;
    libc<Join>("pthread_join")(made, &value);
    end_process_with(slot, value);
    return 0;
}

// ---- In the maker's process ---------------------------------------------------------------------

/// A free slot, taken; nullptr: there is none.
ThreadSlot* take_slot(Worker& worker) noexcept
{
    ControlArea& area = worker.control();
    const Held lock(area.threads_lock, worker.number());
    for (std::uint32_t i = 0; i < threads_max; ++i) {
        ThreadSlot& slot = area.threads[i];
        if (state_of(slot) == ThreadState::unused && slot.process.load(std::memory_order_acquire) == 0) {
            area.threads_used = i >= area.threads_used ? i + 1 : area.threads_used;
            slot.is_detached.store(0, std::memory_order_relaxed);
            slot.is_joined.store(0, std::memory_order_relaxed);
            slot.request.store(nothing, std::memory_order_relaxed);
            slot.self.store(0, std::memory_order_relaxed);
            slot.exit_asked.store(0, std::memory_order_relaxed);
            slot.value = PTHREAD_CANCELED;
            set_state(slot, ThreadState::starting);
            return &slot;
        }
    }
    return nullptr;
}

pid_t clone_process(ThreadSlot& slot) noexcept
{
    constexpr std::size_t stack_bytes = std::size_t{128} << 10;
    void* const stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return -1;
    }
    const pid_t process = clone(&process_main, static_cast<std::byte*>(stack) + stack_bytes,
                                CLONE_FILES | CLONE_FS | CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD, &slot, &slot.process);
    munmap(stack, stack_bytes);
    return process;
}

/// No thread will ask for the thread's value any more, for the reason that `mark` says.
void release_slot(Worker& worker, ThreadSlot& slot, SharedWord& mark) noexcept
{
    const Held lock(worker.control().threads_lock, worker.number());
    mark.store(1, std::memory_order_release);
    free_slot_if_done(worker.control(), index_of(slot));
}

/// Waits until the thread has ended. False: the deadline is past.
bool await_end(ThreadSlot& slot, const Deadline& deadline)
{
    std::uint32_t seen = 0;
    while (static_cast<ThreadState>(seen = slot.state.load(std::memory_order_acquire)) != ThreadState::ended) {
        const std::uint64_t left = deadline.ns_left();
        if (left == 0) {
            return false;
        }
        shared_wait(slot.state, seen, left < cancel_check_ns ? left : cancel_check_ns);
        pthread_testcancel();
    }
    return true;
}

int join_until(pthread_t thread, void** value, const Deadline& deadline, int late)
{
    Worker& worker = Worker::own();
    ThreadSlot* const slot = find(thread);
    if (slot == nullptr) {
        return ESRCH;
    }
    if (index_of(*slot) == worker.index()) {
        return EDEADLK;
    }
    if (slot->is_detached.load(std::memory_order_relaxed) != 0) {
        return EINVAL;
    }
    if (!await_end(*slot, deadline)) {
        return late;
    }
    if (value != nullptr) {
        *value = slot->value;
    }
    release_slot(worker, *slot, slot->is_joined);
    worker.note_acquire();
    return 0;
}

const timespec no_time{0, 0};

}  // namespace

namespace calls {

int thread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept
{
    Worker& worker = Worker::own();
    ThreadSlot* const slot = take_slot(worker);
    if (slot == nullptr) {
        return EAGAIN;
    }
    int detached = PTHREAD_CREATE_JOINABLE;
    if (attributes != nullptr) {
        pthread_attr_getdetachstate(attributes, &detached);
    }
    slot->start = start;
    slot->argument = argument;
    std::fflush(stdout);  // The copy has the buffer, too, and would write it a second time.
    ControlArea& area = worker.control();
    area.threads_alive.fetch_add(1, std::memory_order_seq_cst);
    const pid_t process = clone_process(*slot);
    if (process < 0) {
        area.threads_alive.fetch_sub(1, std::memory_order_seq_cst);
        set_state(*slot, ThreadState::unused);
        return EAGAIN;
    }
    std::uintptr_t self = 0;
    while ((self = slot->self.load(std::memory_order_acquire)) == 0) {
        const std::uint32_t state = slot->state.load(std::memory_order_acquire);
        if (static_cast<ThreadState>(state) == ThreadState::ended) {
            release_slot(worker, *slot, slot->is_joined);  // The process died before the thread began.
            return EAGAIN;
        }
        if (static_cast<ThreadState>(state) == ThreadState::starting) {
            constexpr std::uint64_t look_again_ns = 100'000'000;
            shared_wait(slot->state, state, look_again_ns);
        }
    }
    *thread = self;
    if (detached == PTHREAD_CREATE_DETACHED) {
        release_slot(worker, *slot, slot->is_detached);
    }
    return 0;
}

int thread_create_c11(thrd_t* thread, int (*start)(void*), void* argument) noexcept
{
    // The value of a C11 thread is an int, which comes back as the low half of the pointer on every ABI that this runs on.
    switch (thread_create(thread, nullptr, reinterpret_cast<void* (*)(void*)>(reinterpret_cast<void*>(start)), argument)) {
    case 0: return thrd_success;
    case EAGAIN: return thrd_nomem;
    default: return thrd_error;
    }
}

int thread_join(pthread_t thread, void** value) { return join_until(thread, value, {}, 0); }
int thread_tryjoin(pthread_t thread, void** value) { return join_until(thread, value, {CLOCK_REALTIME, &no_time}, EBUSY); }
int thread_timedjoin(pthread_t thread, void** value, const timespec* time)
{
    return join_until(thread, value, {CLOCK_REALTIME, time}, ETIMEDOUT);
}
int thread_clockjoin(pthread_t thread, void** value, clockid_t clock, const timespec* time)
{
    return join_until(thread, value, {clock, time}, ETIMEDOUT);
}

int thread_join_c11(thrd_t thread, int* value)
{
    void* found = nullptr;
    const int result = thread_join(thread, &found);
    if (result == 0 && value != nullptr) {
        *value = static_cast<int>(reinterpret_cast<std::intptr_t>(found));
    }
    return result == 0 ? thrd_success : thrd_error;
}

int thread_detach(pthread_t thread) noexcept
{
    Worker& worker = Worker::own();
    ThreadSlot* const slot = find(thread);
    if (slot == nullptr) {
        return ESRCH;
    }
    const Held lock(worker.control().threads_lock, worker.number());
    if (slot->is_detached.exchange(1, std::memory_order_acq_rel) != 0) {
        return EINVAL;
    }
    free_slot_if_done(worker.control(), index_of(*slot));
    return 0;
}

int thread_detach_c11(thrd_t thread) noexcept { return thread_detach(thread) == 0 ? thrd_success : thrd_error; }

int thread_cancel(pthread_t thread) noexcept
{
    ThreadSlot* const slot = find(thread);
    if (slot == nullptr || slot->process.load(std::memory_order_acquire) == 0) {
        return ESRCH;
    }
    std::uint32_t expected = nothing;
    if (index_of(*slot) != 0 && slot->request.compare_exchange_strong(expected, to_cancel, std::memory_order_acq_rel)) {
        shared_wake(slot->request);
    }
    return index_of(*slot) != 0 ? 0 : ENOSYS;  // The first thread has no second one that could hear of it.
}

int thread_kill(pthread_t thread, int number) noexcept
{
    ThreadSlot* const slot = find(thread);
    const pid_t process = slot != nullptr ? slot->process.load(std::memory_order_acquire) : 0;
    if (process == 0) {
        return ESRCH;
    }
    return syscall(SYS_tgkill, process, slot->thread_id.load(std::memory_order_relaxed), number) == 0 ? 0 : errno;
}

/// The first thread of the program ends without ending the program: that ends with the last of the others.
void thread_exit(void* value)
{
    Worker& worker = Worker::own();
    if (worker.index() != 0) {
        libc<void(void*)>("pthread_exit")(value);
        return;
    }
    ControlArea& area = worker.control();
    worker.hand_over(section_ends::Handover::outside);
    worker.slot().value = value;
    set_state(worker.slot(), ThreadState::ended);
    std::uint32_t alive = 0;
    while ((alive = area.threads_alive.load(std::memory_order_acquire)) != 0) {
        shared_wait(area.threads_alive, alive);
    }
    std::exit(0);
}

/// The word lies in memory that all processes share: 0, begun or done.
int once(pthread_once_t* control, void (*routine)())
{
    constexpr std::uint32_t is_done = 2;
    constexpr std::uint32_t is_begun = 1;
    SharedWord& word = *reinterpret_cast<SharedWord*>(control);
    while (word.load(std::memory_order_acquire) != is_done) {
        std::uint32_t seen = 0;
        if (!word.compare_exchange_strong(seen, is_begun, std::memory_order_acq_rel)) {
            shared_wait(word, is_begun, cancel_check_ns);
            continue;
        }
        struct Undo {
            SharedWord& word;
            std::uint32_t value = 0;
            ~Undo()
            {
                word.store(value, std::memory_order_release);
                shared_wake(word);
            }
        } undo{word};
        routine();
        Worker::own().hand_over(section_ends::Handover::inside);
        undo.value = is_done;
    }
    return 0;
}

void once_c11(once_flag* flag, void (*routine)()) { static_cast<void>(once(reinterpret_cast<pthread_once_t*>(flag), routine)); }

/// The copy would share the program's memory with its maker, which no program expects.
pid_t fork_process() noexcept
{
    os::log(os::Severity::error, "fork is refused with threads=processes: the child would share all memory with this program. Use "
                                 "posix_spawn, vfork, system or popen, or threads=threads");
    errno = ENOSYS;
    return -1;
}

}  // namespace calls

bool die_with_supervisor(pid_t supervisor) noexcept { return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == supervisor; }

void free_slot_if_done(ControlArea& area, std::uint32_t index) noexcept
{
    ThreadSlot& slot = area.threads[index];
    const bool is_wanted = slot.is_detached.load(std::memory_order_acquire) == 0 && slot.is_joined.load(std::memory_order_acquire) == 0;
    if (index != 0 && state_of(slot) == ThreadState::ended && slot.process.load(std::memory_order_acquire) == 0 && !is_wanted) {
        ThreadStacks::clear_place(area.stacks, index);
        set_state(slot, ThreadState::unused);
    }
}

}  // namespace stillpoint::nvthreads::processes
