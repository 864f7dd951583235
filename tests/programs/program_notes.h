#ifndef STILLPOINT_TESTS_PROGRAM_NOTES_H
#define STILLPOINT_TESTS_PROGRAM_NOTES_H
/* The notes of generated programs outside the pool: how far they are, what has finished, what they were told is durable. And what
 * every one of them needs besides that: findings, random numbers, the end. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { noted_workers_max = 12 };

/* Exit codes of a program. */
enum { END_BROKEN = 3, END_LOST = 4, END_CALL_FAILED = 5, END_WRONG_START = 6, END_CANNOT_RUN = 2 };

/* In main, before anything else of this header. */
void notes_begin(void);
void note_stage(uint64_t stage); /* 2: verified; 3: about to end by itself */
/* Sections of a worker whose FASE has ended; operations on its durable object that have returned. */
void note_finished(uint64_t worker, uint64_t count);
void note_object(uint64_t worker, uint64_t count);
uint64_t noted_objects(uint64_t worker);

/* The start is of the kind that the command line names, and no acknowledged epoch is missing. */
void expect_start(void);
/* So many sections of a worker are there: not fewer than were acknowledged, and all of a run that ended by itself. */
void expect_count(uint64_t worker, uint64_t count);

/* Waits until what has finished now is durable, and notes it. */
void acknowledge(bool by_checkpoint);
/* A thread that does so all the time; `early` is a defect, which must be found: without waiting. */
void acknowledger_begin(bool by_waiting, bool early);
void acknowledger_end(void);

/* Waits as long as the command line says, if it says so; from then on what other threads find is no finding. */
bool process_has_run_long_enough(void);
/* By the way that the command line names; returns where main is to return. */
void end_as_told(char* program);

void random_begin(uint64_t salt);
uint64_t next_random(void);
uint64_t random_below(uint64_t limit);

__attribute__((noreturn)) void end_program(int code, const char* what, uint64_t wanted, uint64_t found);
void expect_equal(const char* what, uint64_t wanted, uint64_t found);
/* A call that may not fail has failed: with its errno. */
__attribute__((noreturn)) void end_by_call(const char* call, int error);
static inline void must(int error, const char* call)
{
    if (error != 0) {
        end_by_call(call, error);
    }
}
void* must_have(void* block, const char* call);

#ifdef __cplusplus
}
#endif

#endif
