// The life of a generated program: it verifies what it finds, works until it is killed or has done its rounds, and notes
// outside the pool what it was told is durable (program_notes.h).
// program_arguments.h explains its command line.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "program_arguments.h"

/// Functions of objects.hpp; programs without durable objects are linked without them.
void objects_begin(unsigned worker_count) __attribute__((weak));
uint64_t objects_add(unsigned worker) __attribute__((weak));
uint64_t objects_verify(unsigned worker) __attribute__((weak));

const struct plan* plan;

static struct worker* workers;

const char* source_path(void) { return arguments.source; }

uint64_t source_word(uint64_t offset)
{
    const uint64_t mixed = (offset + 0x1234567) * 0x9e3779b97f4a7c15u;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
}

// -- Workers and sections ---------------------------------------------------------------------

struct worker* worker_of(unsigned id) { return &workers[id]; }

struct worker* helper_of(const struct worker* worker) { return &workers[threads_max + worker->id % threads_max]; }

void section_begin(void)
{
    if (arguments.fase) {
        sp_fase_begin();
    }
}

void section_ended(struct worker* worker, unsigned section)
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

void section_note(const struct worker* worker) { note_finished(worker->id, worker->count); }

void section_end(const struct worker* worker)
{
    section_leave();
    section_note(worker);
}

void part_touch(struct part* part, struct worker* worker)
{
    ++part->head->touched[worker->id];
    ++worker->touched[part->index];
}

/// An operation that has returned is durable.
void add_to_object(struct worker* worker)
{
    if (objects_add != NULL) {
        note_object(worker->id, objects_add((unsigned)worker->id));
    }
}

// -- Beginning --------------------------------------------------------------------------------

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

static void find_part(unsigned index, void** heap_parts)
{
    struct part* const part = &plan->parts[index];
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
        const struct worker* const worker = &workers[id];
        uint64_t sections = 0;
        for (unsigned i = 0; i < sections_max; ++i) {
            sections += worker->by_section[i];
        }
        expect_equal("the sections of a worker", worker->count, sections);
        expect_equal("the two words of a signal handler", worker->signals[0], worker->signals[1]);
        for (unsigned i = 0; i < plan->part_count; ++i) {
            expect_equal("how often a worker has touched a part", worker->touched[i], plan->parts[i].head->touched[id]);
        }
        expect_count(id, worker->count);
    }
}

static void verify_objects(void)
{
    for (unsigned i = 0; i < workers_max; ++i) {
        const uint64_t count = objects_verify(i);
        if (count == UINT64_MAX) {
            end_program(END_BROKEN, "a durable object does not hold what its operations made", 0, i);
        }
        if (count < noted_objects(i)) {
            end_program(END_LOST, "an operation that returned is lost", noted_objects(i), count);
        }
    }
}

static void verify(void)
{
    uint64_t blocks = 3; // workers, locks, heap parts
    bool has_globals = plan->global_locks != NULL;
    for (unsigned i = 0; i < plan->part_count; ++i) {
        const struct part* const part = &plan->parts[i];
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
    void** const heap_parts = must_have(sp_root("heap parts", parts_max * sizeof *heap_parts), "sp_root of the heap parts");
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
        note_finished(i, workers[i].count);
    }
    for (unsigned i = 0; i < plan->part_count; ++i) {
        plan->parts[i].is_running = true;
        if (plan->parts[i].kind->begin != NULL) {
            plan->parts[i].kind->begin(&plan->parts[i]);
        }
    }
    note_stage(2);
}

// -- Working and ending -----------------------------------------------------------------------

static void* work(void* number)
{
    const unsigned id = (unsigned)(uintptr_t)number;
    const struct thread_plan* const own = &plan->threads[id];
    struct worker* const worker = &workers[id];
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
    pthread_t threads[threads_max];
    if (plan->signal_interval_us != 0) {
        signals_begin(plan->signal_interval_us);
    }
    acknowledger_begin(plan->wait_durable, plan->acknowledges_early);
    for (unsigned i = 0; i < plan->thread_count; ++i) {
        must(pthread_create(&threads[i], NULL, work, (void*)(uintptr_t)i), "pthread_create");
    }
    if (process_has_run_long_enough()) {
        return;
    }
    for (unsigned i = 0; i < plan->thread_count; ++i) {
        must(pthread_join(threads[i], NULL), "pthread_join");
    }
    if (plan->signal_interval_us != 0) {
        signals_begin(0); // A program that this one executes has no handler yet.
    }
    acknowledger_end();
}

int run_program(int argc, char** argv, const struct plan* of_program)
{
    plan = of_program;
    if (!parse_arguments(argc, argv)) {
        fputs("usage: PROGRAM NOTES --source FILE [--expect KIND] [--complete] [--rounds N] [--end HOW] [--run-ms N] "
              "[--open POOL OPTIONS] [--fase] [--verify] [--random N]\n",
              stderr);
        return END_CANNOT_RUN;
    }
    notes_begin();
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
    end_as_told(argv[0]);
    return 0;
}
