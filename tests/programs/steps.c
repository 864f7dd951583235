// The actions of threads of generated programs outside of sections: threads that come and go, processes, signals, faults.

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

extern char** environ;

// -- Threads that come and go -------------------------------------------------------------------

/// One section by a thread that the worker waits for.
struct task {
    struct worker* worker;
    step* section;
    pthread_barrier_t barrier;
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t never;
    pthread_key_t key;
    bool is_waiting;
};

static struct task task_of(struct worker* worker, step* section) { return (struct task){.worker = helper_of(worker), .section = section}; }

static void run_task(struct task* task) { task->section(task->worker); }

static void* meet_and_run(void* of_task)
{
    struct task* const task = of_task;
    pthread_barrier_wait(&task->barrier);
    run_task(task);
    pthread_barrier_wait(&task->barrier);
    return NULL;
}

void help_by_barrier(struct worker* worker, step* section)
{
    struct task task = task_of(worker, section);
    pthread_t thread;
    must(pthread_barrier_init(&task.barrier, NULL, 2), "pthread_barrier_init");
    must(pthread_create(&thread, NULL, meet_and_run, &task), "pthread_create");
    pthread_barrier_wait(&task.barrier);
    pthread_barrier_wait(&task.barrier);
    must(pthread_join(thread, NULL), "pthread_join");
    pthread_barrier_destroy(&task.barrier);
}

static void unlock(void* mutex) { pthread_mutex_unlock(mutex); }

static void* run_and_wait_for_ever(void* of_task)
{
    struct task* const task = of_task;
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    run_task(task);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    pthread_mutex_lock(&task->mutex);
    pthread_cleanup_push(unlock, &task->mutex);
    while (true) {
        pthread_cond_wait(&task->never, &task->mutex);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

void help_by_cancel(struct worker* worker, step* section)
{
    struct task task = task_of(worker, section);
    pthread_t thread;
    void* result;
    must(pthread_mutex_init(&task.mutex, NULL), "pthread_mutex_init");
    must(pthread_cond_init(&task.never, NULL), "pthread_cond_init");
    must(pthread_create(&thread, NULL, run_and_wait_for_ever, &task), "pthread_create");
    usleep((useconds_t)random_below(300));
    must(pthread_cancel(thread), "pthread_cancel");
    must(pthread_join(thread, &result), "pthread_join");
    if (result != PTHREAD_CANCELED) {
        end_by_call("the end of a thread that was cancelled", 0);
    }
    must(pthread_mutex_lock(&task.mutex), "pthread_mutex_lock"); // The cleanup handler has released it.
    must(pthread_mutex_unlock(&task.mutex), "pthread_mutex_unlock");
    pthread_cond_destroy(&task.never);
    pthread_mutex_destroy(&task.mutex);
}

static void* run_and_post(void* of_task)
{
    struct task* const task = of_task;
    run_task(task);
    sem_post(&task->semaphore);
    return NULL;
}

static void wait_for(sem_t* semaphore)
{
    while (sem_wait(semaphore) != 0) {
        if (errno != EINTR) {
            end_by_call("sem_wait", errno);
        }
    }
}

void help_by_detach(struct worker* worker, step* section)
{
    // A thread that is detached may touch the task after sem_wait has returned: the tasks outlive this call.
    static struct task tasks[threads_max];
    struct task* const task = &tasks[worker->id % threads_max];
    static atomic_bool is_made[threads_max];
    if (!atomic_exchange(&is_made[worker->id % threads_max], true)) {
        must(sem_init(&task->semaphore, 0, 0) != 0 ? errno : 0, "sem_init");
    }
    task->worker = helper_of(worker);
    task->section = section;
    pthread_t thread;
    must(pthread_create(&thread, NULL, run_and_post, task), "pthread_create");
    must(pthread_detach(thread), "pthread_detach");
    wait_for(&task->semaphore);
}

static void run_by_destructor(void* of_task) { run_task(of_task); }

static void* set_key(void* of_task)
{
    struct task* const task = of_task;
    must(pthread_setspecific(task->key, task), "pthread_setspecific");
    return NULL;
}

void help_by_key(struct worker* worker, step* section)
{
    struct task task = task_of(worker, section);
    pthread_t thread;
    must(pthread_key_create(&task.key, run_by_destructor), "pthread_key_create");
    must(pthread_create(&thread, NULL, set_key, &task), "pthread_create");
    must(pthread_join(thread, NULL), "pthread_join");
    must(pthread_key_delete(task.key), "pthread_key_delete");
}

static _Thread_local struct task* once_task;

static void run_once(void) { run_task(once_task); }

void help_by_once(struct worker* worker, step* section)
{
    pthread_once_t control = PTHREAD_ONCE_INIT;
    struct task task = task_of(worker, section);
    once_task = &task;
    must(pthread_once(&control, run_once), "pthread_once");
    must(pthread_once(&control, run_once), "pthread_once");
}

static void* wait_and_run(void* of_task)
{
    struct task* const task = of_task;
    wait_for(&task->semaphore);
    run_task(task);
    return NULL;
}

void help_by_semaphore(struct worker* worker, step* section)
{
    struct task task = task_of(worker, section);
    pthread_t thread;
    must(sem_init(&task.semaphore, 0, 0) != 0 ? errno : 0, "sem_init");
    must(pthread_create(&thread, NULL, wait_and_run, &task), "pthread_create");
    sem_post(&task.semaphore);
    must(pthread_join(thread, NULL), "pthread_join");
    sem_destroy(&task.semaphore);
}

static void* run_and_return(void* of_task)
{
    run_task(of_task);
    return NULL;
}

/// The thread ends while it holds its robust mutex, with nothing half done: the next one to lock it is told so.
void die_with_robust(struct worker* worker, step* section_that_keeps_the_lock)
{
    struct task task = task_of(worker, section_that_keeps_the_lock);
    pthread_t thread;
    must(pthread_create(&thread, NULL, run_and_return, &task), "pthread_create");
    must(pthread_join(thread, NULL), "pthread_join");
    section_note(task.worker);
}

// -- Processes ----------------------------------------------------------------------------------

static void wait_for_child(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            end_by_call("waitpid", errno);
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        end_program(END_CALL_FAILED, "how a child ended", 0, (uint64_t)status);
    }
}

/// A store of the child is its own.
void fork_and_scribble(struct part* part)
{
    const pid_t child = fork();
    if (child < 0) {
        end_by_call("fork", errno);
    }
    if (child == 0) {
        memset(part->head, 0xee, sizeof *part->head);
        memset(worker_of(0), 0xdd, sizeof(struct worker));
        _exit(0);
    }
    wait_for_child(child);
}

/// Calls that would take durable memory away, or hide what is stored there. Other threads use it meanwhile.
void map_over(const struct part* part)
{
    char* const page = (char*)part->head - (uintptr_t)part->head % 4096;
    const size_t size = 4096 << random_below(3);
    const int both = PROT_READ | PROT_WRITE;
    long result = 0;
    errno = 0;
    switch (random_below(6)) {
    case 0: result = mmap(page, size, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0; break;
    case 1: result = munmap(page, size); break;
    case 2: result = mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page - 4096) == MAP_FAILED ? -1 : 0; break;
    case 3: result = mprotect(page, size, random_below(2) == 0 ? both : PROT_READ); break;
    case 4: result = madvise(page, size, MADV_DONTNEED); break;
    default: result = syscall(SYS_madvise, page, size, MADV_FREE); break;
    }
    if (result != -1 || errno != EPERM) {
        end_program(END_CALL_FAILED, "a mapping over durable memory is not refused", EPERM, (uint64_t)errno);
    }
    must(madvise(page, 4096, random_below(2) == 0 ? MADV_WILLNEED : MADV_PAGEOUT), "madvise that is harmless");
}

void spawn_true(void)
{
    pid_t child;
    char* const words[] = {"/bin/true", NULL};
    must(posix_spawn(&child, words[0], NULL, NULL, words, environ), "posix_spawn");
    wait_for_child(child);
}

// -- Sections that rest -------------------------------------------------------------------------

/// Holds a lock, lets checkpoints pass, and continues.
void pause_in_section(struct worker* worker, struct lock* lock)
{
    (void)worker;
    section_begin();
    lock_acquire(lock, BY_LOCK);
    sp_fase_pause();
    usleep((useconds_t)random_below(2000));
    sp_fase_resume();
    lock_release(lock);
    if (random_below(2) == 0) {
        usleep((useconds_t)random_below(500));
    }
    section_end(worker);
}

/// A checkpoint passes while it is held, and it is free again after a kill.
void hold_ignored(struct worker* worker, unsigned microseconds)
{
    static _Thread_local bool is_ignored;
    if (!is_ignored) {
        is_ignored = true;
        must(sp_lock_ignore(&worker->ignored), "sp_lock_ignore");
    }
    const struct timespec deadline = time_in_us(CLOCK_REALTIME, 20000000);
    must(pthread_mutex_timedlock(&worker->ignored, &deadline), "pthread_mutex_timedlock of an ignored lock");
    if (random_below(4) == 0) {
        acknowledge(true);
    } else {
        usleep((useconds_t)random_below(microseconds));
    }
    must(pthread_mutex_unlock(&worker->ignored), "pthread_mutex_unlock of an ignored lock");
}

// -- Signals and faults ---------------------------------------------------------------------------

static _Thread_local struct worker* signalled;

static void count_signal(int number)
{
    (void)number;
    const int error = errno;
    struct worker* const worker = signalled;
    if (worker != NULL) {
        sp_fase_begin();
        ++worker->signals[0];
        ++worker->signals[1];
        sp_fase_end();
    }
    errno = error;
}

void signals_begin(unsigned interval_us)
{
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval interval = {{0, interval_us}, {0, interval_us}};
    setitimer(ITIMER_REAL, &interval, NULL);
}

void signals_of_this_thread(struct worker* worker) { signalled = worker; }

static _Thread_local char* guarded_page;

static void repair(int number, siginfo_t* information, void* context)
{
    (void)context;
    if (information->si_code <= 0) { // Somebody has sent it: the program dies of it.
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    char* const address = information->si_addr;
    if (guarded_page == NULL || address < guarded_page || address >= guarded_page + 4096) {
        static const char message[] = "program: a fault that is not the program's came to its handler\n";
        (void)!write(STDERR_FILENO, message, sizeof message - 1);
        _exit(END_CALL_FAILED);
    }
    mprotect(guarded_page, 4096, PROT_READ | PROT_WRITE);
}

static void set_repair(void)
{
    const struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}

/// The program's own handler of SIGSEGV serves a page of its own.
void fault_and_repair(void)
{
    static pthread_once_t control = PTHREAD_ONCE_INIT;
    must(pthread_once(&control, set_repair), "pthread_once");
    if (guarded_page == NULL) {
        void* const page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        guarded_page = page != MAP_FAILED ? page : NULL;
    }
    must_have(guarded_page, "mmap");
    mprotect(guarded_page, 4096, PROT_NONE);
    *(volatile char*)guarded_page = 1;
}
