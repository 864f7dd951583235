#ifndef STILLPOINT_TESTS_PROGRAM_ARGUMENTS_H
#define STILLPOINT_TESTS_PROGRAM_ARGUMENTS_H
/* The command line of generated programs:
 *
 *   PROGRAM NOTES --source FILE [--expect KIND,KIND] [--complete] [--rounds N] [--end HOW] [--run-ms N] [--open POOL OPTIONS]
 *           [--fase] [--verify] [--random N]
 *
 * KIND: fresh, clean, crashed: how durable memory must have begun. --complete: all that the run before had finished must be
 * there. --end: return, exit, _exit, or a wrapper's name by which the program executes itself once: env, sh, taskset.
 * --run-ms: it ends so after that time, while its threads go on. --open: by sp_open, not by `stillpoint run`.
 * --fase: sections are delimited by sp_fase_begin, too (with engines where locks are no sections). */

#include <stdbool.h>
#include <stdint.h>

extern struct arguments {
    const char *notes, *source, *expect, *end, *pool, *options;
    uint64_t rounds, seed, run_ms;
    bool is_complete, verify_only, fase;
} arguments;

/* False: not of that form. */
bool parse_arguments(int argc, char** argv);

#endif
