// The life of a generated program: it verifies what it finds, works until it is killed or has done its rounds, and notes
// outside the pool what it was told is durable.
// program_arguments.h explains its command line.

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "program_arguments.h"

/// Outside the pool; programs.py reads it by these offsets.
struct notes {
    _Atomic uint64_t stage; ///< of this run: 0 not in main yet, 1 in main, 2 verified, 3 about to end by itself
    _Atomic uint64_t epoch; ///< acknowledged
    _Atomic uint64_t count[workers_max];    ///< sections of each worker, acknowledged
    _Atomic uint64_t finished[workers_max]; ///< sections of each worker whose FASE has ended
    _Atomic uint64_t objects[workers_max];  ///< operations on each worker's durable object that have returned
};

/// Functions of objects.hpp; programs without durable objects are linked without them.
void objects_begin(unsigned worker_count) __attribute__((weak));
uint64_t objects_add(unsigned worker) __attribute__((weak));
uint64_t objects_verify(unsigned worker) __attribute__((weak));

const struct plan *plan;

static struct notes *notes;
static struct worker *workers;
static atomic_bool acknowledger_ends;
static atomic_bool process_ends; ///< While threads go on: what they find from now on is no finding.
static _Thread_local bool is_main;
static _Thread_local uint64_t random_state;

/// Threads of a process that ends wait for that.
static void rest_if_process_ends(void)
{
    while (atomic_load(&process_ends) && !is_main) {
        pause();
    }
}

_Noreturn void end_program(int code, const char *what, uint64_t wanted, uint64_t found)
{
    rest_if_process_ends();
    fprintf(stderr, "program: %s (wanted %llu, found %llu)\n", what, (unsigned long long)wanted, (unsigned long long)found);
    _exit(code);
}

void expect_equal(const char *what, uint64_t wanted, uint64_t found)
{
    if (wanted != found) {
        end_program(END_BROKEN, what, wanted, found);
    }
}

_Noreturn void end_by_call(const char *call, int error)
{
    rest_if_process_ends();
    fprintf(stderr, "program: %s failed: %s; %s\n", call, strerror(error), sp_last_error());
    _exit(END_CALL_FAILED);
}

void *must_have(void *block, const char *call)
{
    if (block == NULL) {
        end_by_call(call, errno);
    }
    return block;
}

uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du;
}

uint64_t random_below(uint64_t limit)
{
    return limit == 0 ? 0 : (next_random() >> 11) % limit;
}

static void random_begin(uint64_t salt)
{
    random_state = (arguments.seed + 1) * 0x9e3779b97f4a7c15u + salt * 0xbf58476d1ce4e5b9u + 1;
    next_random();
}

const char *source_path(void)
{
    return arguments.source;
}

uint64_t source_word(uint64_t offset)
{
    const uint64_t mixed = (offset + 0x1234567) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
}

// -- Workers and sections ---------------------------------------------------------------------

struct worker *worker_of(unsigned id)
{
    return &workers[id];
}

struct worker *helper_of(const struct worker *worker)
{
    return &workers[threads_max + worker->id % threads_max];
}

void section_begin(void)
{
    if (arguments.fase) {
        sp_fase_begin();
    }
}

void section_ended(struct worker *worker, unsigned section)
{
    ++worker->by_section[section];
    ++worker->count;
}

void section_leave(void)
{
    if (arguments.fase) {
        sp_fase_end();
    }
}

void section_note(const struct worker *worker)
{
    atomic_store(&notes->finished[worker->id], worker->count);
}

void section_end(const struct worker *worker)
{
    section_leave();
    section_note(worker);
}

void part_touch(struct part *part, struct worker *worker)
{
    ++part->head->touched[worker->id];
    ++worker->touched[part->index];
}

// -- Acknowledging ----------------------------------------------------------------------------

static void raise_to(_Atomic uint64_t *noted, uint64_t value)
{
    uint64_t old = atomic_load(noted);
    while (old < value && !atomic_compare_exchange_weak(noted, &old, value)) {
    }
}

/// Waits until what has finished now is durable, and notes it.
void acknowledge(bool by_checkpoint)
{
    uint64_t counts[workers_max];
    for (unsigned i = 0; i < workers_max; ++i) {
        counts[i] = atomic_load(&notes->finished[i]);
    }
    const uint64_t epoch = sp_epoch();
    const int error = plan->acknowledges_early ? SP_OK : by_checkpoint ? sp_checkpoint() : sp_wait_durable(epoch, 5000);
    if (error == SP_E_TIMED_OUT) {
        return;
    }
    if (error != SP_OK) {
        end_by_call(by_checkpoint ? "sp_checkpoint" : "sp_wait_durable", 0);
    }
    for (unsigned i = 0; i < workers_max; ++i) {
        raise_to(&notes->count[i], counts[i]);
    }
    raise_to(&notes->epoch, epoch);
}

static void *acknowledge_always(void *unused)
{
    random_begin(1000);
    while (!atomic_load(&acknowledger_ends)) {
        acknowledge(!plan->wait_durable);
        usleep((useconds_t)random_below(3000));
    }
    return unused;
}

/// An operation that has returned is durable.
void add_to_object(struct worker *worker)
{
    if (objects_add != NULL) {
        raise_to(&notes->objects[worker->id], objects_add((unsigned)worker->id));
    }
}

// -- Beginning --------------------------------------------------------------------------------

static void open_notes(void)
{
    const int file = open(arguments.notes, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof *notes) != 0) {
        end_program(END_CANNOT_RUN, "cannot open the notes", 0, (uint64_t)errno);
    }
    notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (notes == MAP_FAILED) {
        end_program(END_CANNOT_RUN, "cannot map the notes", 0, (uint64_t)errno);
    }
    close(file);
    atomic_store(&notes->stage, 1);
}

/// The file that slots are filled from; made once, by a name of its own that is then given.
static void make_source(void)
{
    struct stat status;
    if (stat(arguments.source, &status) == 0 && status.st_size == source_bytes) {
        return;
    }
    char part[4096];
    snprintf(part, sizeof part, "%s.%d", arguments.source, (int)getpid());
    const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    static uint64_t words[8192];
    for (uint64_t at = 0; at < source_bytes; at += sizeof words) {
        for (uint64_t i = 0; i < sizeof words / 8; ++i) {
            words[i] = source_word(at + 8 * i);
        }
        if (file < 0 || write(file, words, sizeof words) != (ssize_t)sizeof words) {
            end_program(END_CANNOT_RUN, "cannot make the source file", 0, (uint64_t)errno);
        }
    }
    fsync(file);
    close(file);
    rename(part, arguments.source);
}

static void expect_start(void)
{
    static const char *const names[] = {"volatile", "fresh", "clean", "crashed"};
    const sp_start kind = sp_start_kind();
    if (kind == SP_START_VOLATILE) {
        end_program(END_CANNOT_RUN, "this run is volatile", 0, 0);
    }
    if (arguments.expect != NULL && strstr(arguments.expect, names[kind]) == NULL) {
        fprintf(stderr, "program: the start is %s, not %s\n", names[kind], arguments.expect);
        _exit(END_WRONG_START);
    }
    if (sp_durable_epoch() < atomic_load(&notes->epoch)) {
        end_program(END_LOST, "an acknowledged epoch is lost", atomic_load(&notes->epoch), sp_durable_epoch());
    }
}

static void find_part(unsigned index, void **heap_parts)
{
    struct part *const part = &plan->parts[index];
    const size_t size_bytes = part->kind->size_bytes(part);
    char name[32];
    part->index = index;
    if (part->place == IN_ROOT) {
        snprintf(name, sizeof name, "part %u", index);
        part->head = must_have(sp_root(name, size_bytes), "sp_root");
    } else if (part->place == IN_GLOBAL) {
        if (part->global_bytes < size_bytes) {
            end_program(END_CANNOT_RUN, "a part's variable is too small", size_bytes, part->global_bytes);
        }
        part->head = part->global;
    } else {
        if (heap_parts[index] == NULL) {
            sp_fase_begin();
            heap_parts[index] = must_have(sp_calloc(1, size_bytes), "sp_calloc");
            sp_fase_end();
        }
        part->head = heap_parts[index];
    }
    if (part->head->made == 0) {
        sp_fase_begin();
        part->kind->make(part);
        part->head->made = 1;
        sp_fase_end();
    }
}

static void verify_workers(void)
{
    for (unsigned id = 0; id < workers_max; ++id) {
        const struct worker *const worker = &workers[id];
        uint64_t sections = 0;
        for (unsigned i = 0; i < sections_max; ++i) {
            sections += worker->by_section[i];
        }
        expect_equal("the sections of a worker", worker->count, sections);
        expect_equal("the two words of a signal handler", worker->signals[0], worker->signals[1]);
        for (unsigned i = 0; i < plan->part_count; ++i) {
            expect_equal("how often a worker has touched a part", worker->touched[i], plan->parts[i].head->touched[id]);
        }
        const uint64_t promised = atomic_load(&notes->count[id]);
        if (worker->count < promised) {
            end_program(END_LOST, "an acknowledged section is lost", promised, worker->count);
        }
        if (arguments.is_complete && worker->count != atomic_load(&notes->finished[id])) {
            end_program(END_LOST, "a section is lost by a run that ended by itself", atomic_load(&notes->finished[id]), worker->count);
        }
    }
}

static void verify_objects(void)
{
    for (unsigned i = 0; i < workers_max; ++i) {
        const uint64_t count = objects_verify(i);
        if (count == UINT64_MAX) {
            end_program(END_BROKEN, "a durable object does not hold what its operations made", 0, i);
        }
        if (count < atomic_load(&notes->objects[i])) {
            end_program(END_LOST, "an operation that returned is lost", atomic_load(&notes->objects[i]), count);
        }
    }
}

static void verify(void)
{
    uint64_t blocks = 3; // workers, locks, heap parts
    bool has_globals = plan->global_locks != NULL;
    for (unsigned i = 0; i < plan->part_count; ++i) {
        const struct part *const part = &plan->parts[i];
        blocks += part->kind->verify(part) + (part->place == IN_GLOBAL ? 0 : 1);
        has_globals = has_globals || part->place == IN_GLOBAL;
    }
    blocks += has_globals ? 1 : 0; // The copy of the program's SP_PERSISTENT variables.
    verify_workers();
    if (objects_verify != NULL) {
        verify_objects(); // They have blocks of their own.
        return;
    }
    sp_heap_statistics heap;
    must(sp_heap_stats(&heap), "sp_heap_stats");
    expect_equal("the live blocks of the heap", blocks, heap.live_blocks);
}

static void begin(void)
{
    expect_start();
    workers = must_have(sp_root("workers", workers_max * sizeof *workers), "sp_root of the workers");
    void **const heap_parts = must_have(sp_root("heap parts", parts_max * sizeof *heap_parts), "sp_root of the heap parts");
    if (workers[workers_max - 1].id == 0) {
        sp_fase_begin();
        for (unsigned i = 0; i < workers_max; ++i) {
            workers[i].id = i;
        }
        sp_fase_end();
    }
    locks_begin();
    if (objects_begin != NULL) {
        objects_begin(workers_max);
    }
    for (unsigned i = 0; i < plan->part_count; ++i) {
        find_part(i, heap_parts);
    }
    verify();
    for (unsigned i = 0; i < workers_max; ++i) {
        atomic_store(&notes->finished[i], workers[i].count);
    }
    for (unsigned i = 0; i < plan->part_count; ++i) {
        plan->parts[i].is_running = true;
        if (plan->parts[i].kind->begin != NULL) {
            plan->parts[i].kind->begin(&plan->parts[i]);
        }
    }
    atomic_store(&notes->stage, 2);
}

// -- Working and ending -----------------------------------------------------------------------

static void *work(void *number)
{
    const unsigned id = (unsigned)(uintptr_t)number;
    const struct thread_plan *const own = &plan->threads[id];
    struct worker *const worker = &workers[id];
    random_begin(id + 16 * worker->count);
    if (plan->signal_interval_us != 0) {
        signals_of_this_thread(worker);
    }
    for (uint64_t i = 0; arguments.rounds == 0 || i < arguments.rounds || arguments.run_ms != 0; ++i) {
        own->steps[random_below(own->count)](worker);
    }
    return NULL;
}

static void work_all(void)
{
    pthread_t threads[threads_max], acknowledger;
    if (plan->signal_interval_us != 0) {
        signals_begin(plan->signal_interval_us);
    }
    must(pthread_create(&acknowledger, NULL, acknowledge_always, NULL), "pthread_create");
    for (unsigned i = 0; i < plan->thread_count; ++i) {
        must(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), "pthread_create");
    }
    if (arguments.run_ms != 0) {
        usleep((useconds_t)arguments.run_ms * 1000);
        atomic_store(&notes->stage, 3);
        atomic_store(&process_ends, true);
        return;
    }
    for (unsigned i = 0; i < plan->thread_count; ++i) {
        must(pthread_join(threads[i], NULL), "pthread_join");
    }
    if (plan->signal_interval_us != 0) {
        signals_begin(0); // A program that this one executes has no handler yet.
    }
    atomic_store(&acknowledger_ends, true);
    must(pthread_join(acknowledger, NULL), "pthread_join");
}

/// Becomes this program again, once, through a program that only executes it.
static void execute_by(const char *wrapper, char *program)
{
    char rounds[24], seed[24];
    snprintf(rounds, sizeof rounds, "%llu", (unsigned long long)arguments.rounds);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)arguments.seed + 1);
    char *words[24];
    unsigned count = 0;
    if (strcmp(wrapper, "sh") == 0) {
        words[count++] = "/bin/sh";
        words[count++] = "-c";
        words[count++] = "exec \"$0\" \"$@\"";
    } else if (strcmp(wrapper, "taskset") == 0) {
        words[count++] = "taskset";
        words[count++] = "-a";
        words[count++] = "3";
    } else {
        words[count++] = "env";
        words[count++] = "WRAPPED=1";
    }
    char *const own[] = {program, (char *)arguments.notes, "--source", (char *)arguments.source, "--expect", "clean", "--complete",
                         "--rounds", rounds, "--random", seed, "--end", "return", arguments.fase ? "--fase" : NULL, NULL};
    for (unsigned i = 0; i < sizeof own / sizeof *own; ++i) {
        words[count++] = own[i];
    }
    execvp(words[0], words);
    end_by_call("execvp", errno);
}

int run_program(int argc, char **argv, const struct plan *of_program)
{
    plan = of_program;
    if (!parse_arguments(argc, argv)) {
        fputs("usage: PROGRAM NOTES --source FILE [--expect KIND] [--complete] [--rounds N] [--end HOW] [--run-ms N] "
              "[--open POOL OPTIONS] [--fase] [--verify] [--random N]\n", stderr);
        return END_CANNOT_RUN;
    }
    is_main = true;
    open_notes();
    random_begin(2000);
    if (arguments.pool != NULL && sp_open(arguments.pool, arguments.options) != SP_OK) {
        fprintf(stderr, "program: sp_open failed: %s\n", sp_last_error());
        return END_CANNOT_RUN;
    }
    make_source();
    begin();
    if (!arguments.verify_only) {
        work_all();
        if (arguments.run_ms == 0) {
            verify();
        }
    }
    atomic_store(&notes->stage, 3);
    if (strcmp(arguments.end, "_exit") == 0) {
        _exit(0);
    }
    if (strcmp(arguments.end, "exit") == 0) {
        exit(0);
    }
    if (strcmp(arguments.end, "return") != 0 && !arguments.verify_only) {
        execute_by(arguments.end, argv[0]);
    }
    return 0;
}
