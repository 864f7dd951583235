#ifndef STILLPOINT_TESTS_RESPCT_PROGRAM_H
#define STILLPOINT_TESTS_RESPCT_PROGRAM_H
/* The parts that generated programs with restart points are made of (respct_generator.py writes them, programs.py kills them).
 *
 * As in program.h, but a section lies between two restart points, and what its variables need is told: logged variables, or
 * add_modified. The model is the same: every section counts itself in its worker's frame and, for each part that it touches, in
 * the part; at each start the counts must agree. */

#include "program_notes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    respct_threads_max = 6,
    respct_workers_max = 2 * respct_threads_max, /* each thread has a helper */
    respct_parts_max = 8,
    respct_sections_max = 32,
    respct_locks_max = 6,
};

struct respct_worker; /* a thread, and its frame */
typedef void respct_step(struct respct_worker* worker);

/* Begins at restart point 1 + `section`, ends before the next one; it holds no lock at either. */
void section_begin(struct respct_worker* worker, unsigned section);
void section_ended(struct respct_worker* worker, unsigned section); /* before the first release */
void section_end(struct respct_worker* worker);
/* A defect, which must be found: the two halves of section_ended() with a restart point between them. */
void section_torn(struct respct_worker* worker, unsigned section);
void section_torn_end(struct respct_worker* worker);

/* ONE_WORD, PTHREAD and READ_WRITE lie in typed durable memory. */
enum respct_lock_kind { ONE_WORD, PTHREAD, READ_WRITE, VOLATILE };
void lock_acquire(unsigned lock);
void lock_release(unsigned lock);

enum respct_part_kind { WORDS, STACK, LOG, CHUNKS, NAMES, QUEUE };
struct respct_part {
    enum respct_part_kind kind;
    unsigned parameter; /* words; entries */
};

/* Logged words whose sum never changes. */
void words_transfer(unsigned part, struct respct_worker* worker, unsigned times);
/* A stack of blocks with a pattern. */
void stack_push(unsigned part, struct respct_worker* worker);
void stack_pop(unsigned part, struct respct_worker* worker);
/* Plain entries below a logged length; `told` is false where add_modified is left out, a defect. */
void log_append(unsigned part, struct respct_worker* worker, unsigned count, bool told);
/* Pages that calls of libc fill, which the library tells by itself. */
enum respct_fill { BY_PREAD, BY_PREADV, BY_PREAD_DIRECT, BY_SOCKET };
void chunk_read(unsigned part, struct respct_worker* worker, enum respct_fill fill);
void chunk_drop(unsigned part, struct respct_worker* worker);
/* A named object comes, or goes. */
void name_toggle(unsigned part, struct respct_worker* worker);
/* A section enters, one that takes waits before it writes, and each leaves; only meet_thread() calls both. */
void meeting_enter(unsigned part);
void meeting_wait(unsigned part);
void meeting_put(unsigned part, struct respct_worker* worker);
void meeting_take(unsigned part, struct respct_worker* worker);
void meeting_leave(unsigned part);
/* Plain memory that is allocated, written and freed within the section. */
void scratch(struct respct_worker* worker, size_t size_bytes);

/* Steps outside of sections. */
void rest(struct respct_worker* worker, unsigned microseconds);
void acknowledge_now(struct respct_worker* worker, bool by_checkpoint);
void help_by_thread(struct respct_worker* worker, respct_step* section); /* by another thread, with a frame of its own */
void meet_thread(struct respct_worker* worker, respct_step* puts, respct_step* takes); /* another thread puts what this one waits for */
void fork_and_end(struct respct_worker* worker);

struct respct_thread_plan {
    respct_step* const* steps;
    unsigned count;
};

struct respct_plan {
    const struct respct_part* parts;
    unsigned part_count;
    const enum respct_lock_kind* locks;
    unsigned lock_count;
    const struct respct_thread_plan* threads;
    unsigned thread_count;
    bool wait_durable;       /* or sp_checkpoint, in the thread that acknowledges */
    bool acknowledges_early; /* a defect */
    unsigned signal_interval_us; /* 0: none */
};

int run_respct_program(int argc, char** argv, const struct respct_plan* plan);

#ifdef __cplusplus
}
#endif

#endif
