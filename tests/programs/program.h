#ifndef STILLPOINT_TESTS_PROGRAM_H
#define STILLPOINT_TESTS_PROGRAM_H
/* The parts that generated programs are made of (program_generator.py writes them, programs.py kills them).
 *
 * A program has parts (durable structures that can be verified), locks that guard them, sections (FASEs that change several
 * parts) and steps (sections, and what threads do outside of sections). Each thread takes random steps of its list.
 *
 * The model. Every section counts itself in the worker's own page and, for each part that it touches, in the part. So at each
 * start the counts of workers and parts must agree: a section that is there in part is noticed, whatever it did. Each part has
 * rules of its own besides that: sums, patterns, orders, lengths. What was acknowledged is noted outside the pool. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "program_notes.h"
#include "stillpoint/stillpoint.h"

enum {
    threads_max = 6,
    workers_max = 2 * threads_max, /* each thread has a helper, which may run sections while its thread waits for it */
    parts_max = 16,
    sections_max = 48,
    locks_max = 12,
};

/* ---- Workers ------------------------------------------------------------------------------ */

/* Durable; a page for each, so that its counts and those of the parts are captured separately. */
struct worker {
    uint64_t id;
    uint64_t count;                    /* of sections that have ended */
    uint64_t touched[parts_max];       /* how often this worker has changed each part */
    uint64_t by_section[sections_max]; /* how often it has run each section */
    uint64_t signals[2];               /* two words that its signal handler counts up together */
    pthread_mutex_t ignored;           /* is no section */
    uint64_t room[512 - 2 - parts_max - sections_max - 2 - sizeof(pthread_mutex_t) / 8];
};

struct worker* worker_of(unsigned id);
struct worker* helper_of(const struct worker* worker);

/* A section begins before its first lock and ends after its last one; ended() comes before the first release. */
void section_begin(void);
void section_ended(struct worker* worker, unsigned section);
void section_end(const struct worker* worker);
/* The two halves of section_end(): the second only once no lock is held. */
void section_leave(void);
void section_note(const struct worker* worker);

/* ---- Locks -------------------------------------------------------------------------------- */

enum lock_kind { MUTEX, RWLOCK, SPINLOCK, C11_MUTEX };
enum {
    RECURSIVE = 1,
    ERRORCHECK = 2,
    ADAPTIVE = 4,
    ROBUST = 8,
    SHARED = 16,
    INHERIT = 32, /* priority inheritance */
    DURABLE = 64, /* lies in durable memory */
    WRITERS = 128, /* a read-write lock that prefers writers */
    GLOBAL = 256   /* lies in a durable variable of the program */
};
enum acquire_way { BY_LOCK, BY_TRY, BY_TIMED, BY_CLOCK, BY_TWICE };

struct lock {
    enum lock_kind kind;
    unsigned flags;
    void* object; /* set at the start */
};

void lock_acquire(struct lock* lock, enum acquire_way way);
void lock_read(struct lock* lock, enum acquire_way way); /* as lock_acquire where there are no readers */
void lock_release(struct lock* lock);
void lock_make(struct lock* lock, void* object); /* initialises `object` as this lock */
void locks_begin(void);
/* The absolute time that lies so far in the future, by this clock. */
struct timespec time_in_us(clockid_t clock, uint64_t microseconds);

/* ---- Parts -------------------------------------------------------------------------------- */

enum place { IN_ROOT, IN_HEAP, IN_GLOBAL };

struct part;
struct part_kind {
    size_t (*size_bytes)(const struct part* part);
    void (*make)(struct part* part);           /* inside a FASE; the memory is zeroed */
    uint64_t (*verify)(const struct part* part); /* returns how many heap blocks it has, besides its own */
    void (*begin)(struct part* part);          /* volatile state, after verify(); may be NULL */
};

/* The head of the durable memory of every part. */
struct head {
    uint64_t made;
    uint64_t touched[workers_max];
};

struct part {
    const struct part_kind* kind;
    enum place place;
    unsigned parameter; /* length, or number of pages, as the kind has it */
    void* global;       /* for IN_GLOBAL */
    size_t global_bytes;
    unsigned index;     /* these two are set at the start */
    struct head* head;
    bool is_running; /* threads may change it */
};

/* First call of each operation that changes a part. */
void part_touch(struct part* part, struct worker* worker);

extern const struct part_kind words_kind, list_kind, tree_kind, array_kind, handles_kind, slots_kind, queue_kind, reuse_kind;

/* Words whose sum never changes, over many pages. */
void words_transfer(struct part* part, struct worker* worker, unsigned times);
/* A list of blocks with patterns. `change` resizes a block to that many bytes. */
void list_push(struct part* part, struct worker* worker, size_t size_bytes);
void list_pop(struct part* part, struct worker* worker);
void list_resize(struct part* part, struct worker* worker, size_t size_bytes);
/* A search tree of blocks. */
void tree_insert(struct part* part, struct worker* worker);
void tree_erase(struct part* part, struct worker* worker);
/* An array that sp_realloc grows and shrinks. */
void array_append(struct part* part, struct worker* worker, unsigned count);
void array_shrink(struct part* part, struct worker* worker, unsigned percent);
void array_store(struct part* part, struct worker* worker);
/* Objects with names of their own. */
void handles_create(struct part* part, struct worker* worker, size_t size_bytes);
void handles_delete(struct part* part, struct worker* worker);
void handles_resize(struct part* part, struct worker* worker, size_t size_bytes);
/* A bounded queue with condition variables. The section holds one lock, a mutex, when it waits. */
void queue_wait_and_put(struct part* part, struct worker* worker, struct lock* lock);
void queue_wait_and_take(struct part* part, struct worker* worker, struct lock* lock);

/* Slots that system calls fill from a file whose content follows from the offset. */
enum fill_way {
    FILL_CPU,
    FILL_READ,
    FILL_PREAD,
    FILL_READV,
    FILL_PREADV,
    FILL_DIRECT,
    FILL_DIRECT_READV,
    FILL_FREAD,
    FILL_RECV,
    FILL_RECVMSG,
    FILL_PIPE,
    FILL_RANDOM,
    FILL_URING,
    FILL_URING_DIRECT,
    FILL_URING_FIXED,
    FILL_VM_WRITE
};
void slots_fill(struct part* part, struct worker* worker, enum fill_way way, size_t size_bytes);
uint64_t uring_read(int file, void* to, size_t size_bytes, uint64_t offset, bool is_fixed);

/* ---- Steps outside of sections ------------------------------------------------------------- */

typedef void step(struct worker* worker);

/* Memory that was a synchronisation object becomes integers: made and used as `object`, ended as `end` says, with its destroy
 * call before or, as by std::mutex, which has none, without. */
enum reuse_object { REUSE_MUTEX, REUSE_CONDITION, REUSE_BARRIER, REUSE_SEMAPHORE, REUSE_RWLOCK, REUSE_SPINLOCK };
enum reuse_end { REUSE_IN_PLACE, REUSE_SHRINK, REUSE_FREE, REUSE_MOVE };
void reuse_as(struct part* part, struct worker* worker, unsigned section, struct lock* lock, enum reuse_object object, enum reuse_end end,
              bool destroys);

void help_by_barrier(struct worker* worker, step* section);
void help_by_cancel(struct worker* worker, step* section);
void help_by_detach(struct worker* worker, step* section);
void help_by_key(struct worker* worker, step* section);
void help_by_once(struct worker* worker, step* section);
void help_by_semaphore(struct worker* worker, step* section);
void die_with_robust(struct worker* worker, step* section_that_keeps_the_lock);
void fork_and_scribble(struct part* part);
void map_over(const struct part* part);
void spawn_true(void);
void fault_and_repair(void);
void pause_in_section(struct worker* worker, struct lock* lock);
void hold_ignored(struct worker* worker, unsigned microseconds); /* a lock of sp_lock_ignore, in durable memory */
void add_to_object(struct worker* worker); /* with the engine pronto: objects.hpp */
void signals_begin(unsigned interval_us); /* 0: ends them */
void signals_of_this_thread(struct worker* worker);

/* ---- The program --------------------------------------------------------------------------- */

struct thread_plan {
    step* const* steps;
    unsigned count;
};

struct plan {
    struct part* parts;
    unsigned part_count;
    struct lock* locks;
    unsigned lock_count;
    char* global_locks; /* a durable variable, with room for all; or NULL */
    const struct thread_plan* threads;
    unsigned thread_count;
    unsigned signal_interval_us; /* 0: no signals */
    bool wait_durable;           /* or sp_checkpoint, in the thread that acknowledges */
    bool acknowledges_early;     /* a defect, which must be found */
};

extern const struct plan* plan;
int run_program(int argc, char** argv, const struct plan* of_program);
const char* source_path(void);
uint64_t source_word(uint64_t offset);
enum { source_bytes = 8 << 20 };

#endif
