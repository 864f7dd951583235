// The notes of generated programs outside the pool, how they use them, and how they end.

#include "program_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program_arguments.h"
#include "stillpoint/stillpoint.h"

/// Outside the pool; programs.py reads it by these offsets.
struct notes {
    _Atomic uint64_t stage; ///< of this run: 0 not in main yet, 1 in main, 2 verified, 3 about to end by itself
    _Atomic uint64_t epoch; ///< acknowledged
    _Atomic uint64_t count[noted_workers_max];    ///< sections of each worker, acknowledged
    _Atomic uint64_t finished[noted_workers_max]; ///< sections of each worker whose FASE has ended
    _Atomic uint64_t objects[noted_workers_max];  ///< operations on each worker's durable object that have returned
};

static struct notes* notes;
static atomic_bool acknowledger_ends;
static atomic_bool process_ends; ///< While threads go on: what they find from now on is no finding.
static _Thread_local bool is_main;
static _Thread_local uint64_t random_state;
static bool waits_durable;      ///< or sp_checkpoint, in the thread that acknowledges
static bool acknowledges_early; ///< A defect.
static pthread_t acknowledger;

/// Threads of a process that ends wait for that.
static void rest_if_process_ends(void)
{
    while (atomic_load(&process_ends) && !is_main) {
        pause();
    }
}

void end_program(int code, const char* what, uint64_t wanted, uint64_t found)
{
    rest_if_process_ends();
    fprintf(stderr, "program: %s (wanted %llu, found %llu)\n", what, (unsigned long long)wanted, (unsigned long long)found);
    _exit(code);
}

void expect_equal(const char* what, uint64_t wanted, uint64_t found)
{
    if (wanted != found) {
        end_program(END_BROKEN, what, wanted, found);
    }
}

void end_by_call(const char* call, int error)
{
    rest_if_process_ends();
    fprintf(stderr, "program: %s failed: %s; %s\n", call, strerror(error), sp_last_error());
    _exit(END_CALL_FAILED);
}

void* must_have(void* block, const char* call)
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

uint64_t random_below(uint64_t limit) { return limit == 0 ? 0 : (next_random() >> 11) % limit; }

void random_begin(uint64_t salt)
{
    random_state = (arguments.seed + 1) * 0x9e3779b97f4a7c15u + salt * 0xbf58476d1ce4e5b9u + 1;
    next_random();
}

// -- What is noted ----------------------------------------------------------------------------

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

void notes_begin(void)
{
    is_main = true;
    open_notes();
    random_begin(2000);
}

void note_stage(uint64_t stage) { atomic_store(&notes->stage, stage); }

static void raise_to(_Atomic uint64_t* noted, uint64_t value)
{
    uint64_t old = atomic_load(noted);
    while (old < value && !atomic_compare_exchange_weak(noted, &old, value)) {
    }
}

void note_finished(uint64_t worker, uint64_t count) { atomic_store(&notes->finished[worker], count); }

void note_object(uint64_t worker, uint64_t count) { raise_to(&notes->objects[worker], count); }

uint64_t noted_objects(uint64_t worker) { return atomic_load(&notes->objects[worker]); }

void expect_count(uint64_t worker, uint64_t count)
{
    const uint64_t promised = atomic_load(&notes->count[worker]);
    const uint64_t finished = atomic_load(&notes->finished[worker]);
    if (count < promised) {
        end_program(END_LOST, "an acknowledged section is lost", promised, count);
    }
    if (arguments.is_complete && count != finished) {
        end_program(END_LOST, "a section is lost by a run that ended by itself", finished, count);
    }
}

void expect_start(void)
{
    static const char* const names[] = {"volatile", "fresh", "clean", "crashed"};
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

// -- Acknowledging ----------------------------------------------------------------------------

/// Waits until what has finished now is durable, and notes it.
void acknowledge(bool by_checkpoint)
{
    uint64_t counts[noted_workers_max];
    for (unsigned i = 0; i < noted_workers_max; ++i) {
        counts[i] = atomic_load(&notes->finished[i]);
    }
    const uint64_t epoch = sp_epoch();
    const int error = acknowledges_early ? SP_OK : by_checkpoint ? sp_checkpoint() : sp_wait_durable(epoch, 5000);
    if (error == SP_E_TIMED_OUT) {
        return;
    }
    if (error != SP_OK) {
        end_by_call(by_checkpoint ? "sp_checkpoint" : "sp_wait_durable", 0);
    }
    for (unsigned i = 0; i < noted_workers_max; ++i) {
        raise_to(&notes->count[i], counts[i]);
    }
    raise_to(&notes->epoch, epoch);
}

static void* acknowledge_always(void* unused)
{
    random_begin(1000);
    while (!atomic_load(&acknowledger_ends)) {
        acknowledge(!waits_durable);
        usleep((useconds_t)random_below(3000));
    }
    return unused;
}

void acknowledger_begin(bool by_waiting, bool early)
{
    waits_durable = by_waiting;
    acknowledges_early = early;
    must(pthread_create(&acknowledger, NULL, acknowledge_always, NULL), "pthread_create");
}

void acknowledger_end(void)
{
    atomic_store(&acknowledger_ends, true);
    must(pthread_join(acknowledger, NULL), "pthread_join");
}

// -- The end ----------------------------------------------------------------------------------

bool process_has_run_long_enough(void)
{
    if (arguments.run_ms == 0) {
        return false;
    }
    usleep((useconds_t)arguments.run_ms * 1000);
    note_stage(3);
    atomic_store(&process_ends, true);
    return true;
}

/// Becomes this program again, once, through a program that only executes it.
static void execute_by(const char* wrapper, char* program)
{
    char rounds[24], seed[24];
    snprintf(rounds, sizeof rounds, "%llu", (unsigned long long)arguments.rounds);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)arguments.seed + 1);
    char* words[24];
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
    char* const own[] = {program,      (char*)arguments.notes,
                         "--source",   (char*)arguments.source,
                         "--expect",   "clean",
                         "--complete", "--rounds",
                         rounds,       "--random",
                         seed,         "--end",
                         "return",     arguments.fase ? "--fase" : NULL,
                         NULL};
    for (unsigned i = 0; i < sizeof own / sizeof *own; ++i) {
        words[count++] = own[i];
    }
    execvp(words[0], words);
    end_by_call("execvp", errno);
}

void end_as_told(char* program)
{
    note_stage(3);
    if (strcmp(arguments.end, "_exit") == 0) {
        _exit(0);
    }
    if (strcmp(arguments.end, "exit") == 0) {
        exit(0);
    }
    if (strcmp(arguments.end, "return") != 0 && !arguments.verify_only) {
        execute_by(arguments.end, program);
    }
}
