// Parts that live by synchronisation: a queue with condition variables, and memory that is a synchronisation object for a
// while and integers afterwards.

#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

// -- Queue ------------------------------------------------------------------------------------

struct queue {
    struct head head;
    pthread_cond_t changed[2]; // has room, has a value: of a queue whose parameter is odd
    uint64_t put, taken;
    uint64_t value[8];
};

static pthread_cond_t volatile_conditions[parts_max][2];
enum { queue_room = 8, wait_us = 400 };

static size_t queue_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct queue);
}

static void make_condition(pthread_cond_t* condition, bool is_shared)
{
    pthread_condattr_t attributes;
    must(pthread_condattr_init(&attributes), "pthread_condattr_init");
    must(pthread_condattr_setpshared(&attributes, is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE),
         "pthread_condattr_setpshared");
    must(pthread_cond_init(condition, &attributes), "pthread_cond_init");
    pthread_condattr_destroy(&attributes);
}

static void queue_make(struct part* part)
{
    struct queue* const queue = (struct queue*)part->head;
    make_condition(&queue->changed[0], (part->parameter & 2) != 0);
    make_condition(&queue->changed[1], (part->parameter & 4) != 0);
}

static void queue_begin(struct part* part)
{
    make_condition(&volatile_conditions[part->index][0], false);
    make_condition(&volatile_conditions[part->index][1], false);
}

static uint64_t queued_value(uint64_t position) { return position * 0x9e3779b97f4a7c15u; }

static uint64_t queue_verify(const struct part* part)
{
    const struct queue* const queue = (const struct queue*)part->head;
    if (!part->is_running) {
        // Waiters of a run that is over would take signals, and stop pthread_cond_destroy forever. By glibc's own field.
        expect_equal("the waiters of a condition variable at a start", 0, queue->changed[0].__data.__wrefs >> 3);
        expect_equal("the waiters of a condition variable at a start", 0, queue->changed[1].__data.__wrefs >> 3);
    }
    if (queue->put - queue->taken > queue_room) {
        end_program(END_BROKEN, "a queue holds more than it can", queue_room, queue->put - queue->taken);
    }
    for (uint64_t i = queue->taken; i < queue->put; ++i) {
        expect_equal("a value in a queue", queued_value(i), queue->value[i % queue_room]);
    }
    return 0;
}

static pthread_cond_t* condition_of(struct part* part, unsigned which)
{
    struct queue* const queue = (struct queue*)part->head;
    return (part->parameter & 1) != 0 ? &queue->changed[which] : &volatile_conditions[part->index][which];
}

/// At the section's begin, with this lock alone.
static void queue_wait(struct part* part, struct lock* lock, unsigned which, uint64_t length_that_blocks)
{
    const struct queue* const queue = (const struct queue*)part->head;
    const struct timespec until = time_in_us(CLOCK_REALTIME, wait_us);
    const struct timespec by_clock = time_in_us(CLOCK_MONOTONIC, wait_us);
    const bool uses_clock = random_below(2) == 0;
    int error = 0;
    while (error == 0 && queue->put - queue->taken == length_that_blocks) {
        error = uses_clock ? pthread_cond_clockwait(condition_of(part, which), lock->object, CLOCK_MONOTONIC, &by_clock)
                           : pthread_cond_timedwait(condition_of(part, which), lock->object, &until);
    }
    if (error == EOWNERDEAD) {
        error = pthread_mutex_consistent(lock->object);
    }
    must(error == ETIMEDOUT ? 0 : error, "a wait for a condition");
}

void queue_wait_and_put(struct part* part, struct worker* worker, struct lock* lock)
{
    struct queue* const queue = (struct queue*)part->head;
    queue_wait(part, lock, 0, queue_room);
    part_touch(part, worker);
    if (queue->put - queue->taken < queue_room) {
        queue->value[queue->put % queue_room] = queued_value(queue->put);
        ++queue->put;
    }
    must(pthread_cond_signal(condition_of(part, 1)), "pthread_cond_signal");
}

void queue_wait_and_take(struct part* part, struct worker* worker, struct lock* lock)
{
    struct queue* const queue = (struct queue*)part->head;
    queue_wait(part, lock, 1, 0);
    part_touch(part, worker);
    if (queue->put != queue->taken) {
        expect_equal("a value taken from a queue", queued_value(queue->taken), queue->value[queue->taken % queue_room]);
        ++queue->taken;
    }
    must(pthread_cond_broadcast(condition_of(part, 0)), "pthread_cond_broadcast");
}

const struct part_kind queue_kind = {queue_bytes, queue_make, queue_verify, queue_begin};

// -- Memory that is used again ------------------------------------------------------------------

enum { MODE_NONE, MODE_OBJECT, MODE_INTEGERS };

struct objects {
    pthread_mutex_t mutex;
    union {
        pthread_cond_t condition;
        pthread_barrier_t barrier;
        sem_t semaphore;
        pthread_rwlock_t rwlock;
        pthread_spinlock_t spinlock;
    } other;
};

struct reuse {
    struct head head;
    uint64_t mode;
    uint64_t tag;
    uint64_t count; // of the integers
    char* block;
};

static size_t reuse_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct reuse);
}

static void reuse_make(struct part* part) { (void)part; }

static uint32_t small_integer(uint64_t tag, uint64_t place) { return (uint32_t)((tag + place) % 7); }

static uint64_t reuse_verify(const struct part* part)
{
    const struct reuse* const reuse = (const struct reuse*)part->head;
    if (reuse->mode == MODE_INTEGERS) {
        const uint32_t* const integers = (const uint32_t*)reuse->block;
        for (uint64_t i = 0; i < reuse->count; ++i) {
            expect_equal("an integer where a synchronisation object was", small_integer(reuse->tag, i), integers[i]);
        }
    }
    return reuse->block != NULL ? 1 : 0;
}

const struct part_kind reuse_kind = {reuse_bytes, reuse_make, reuse_verify, NULL};

static void objects_make(struct objects* objects, enum reuse_object object)
{
    must(pthread_mutex_init(&objects->mutex, NULL), "pthread_mutex_init");
    switch (object) {
    case REUSE_MUTEX: return;
    case REUSE_CONDITION: must(pthread_cond_init(&objects->other.condition, NULL), "pthread_cond_init"); return;
    case REUSE_BARRIER: must(pthread_barrier_init(&objects->other.barrier, NULL, 2), "pthread_barrier_init"); return;
    case REUSE_SEMAPHORE: must(sem_init(&objects->other.semaphore, 0, 0), "sem_init"); return;
    case REUSE_RWLOCK: must(pthread_rwlock_init(&objects->other.rwlock, NULL), "pthread_rwlock_init"); return;
    case REUSE_SPINLOCK: must(pthread_spin_init(&objects->other.spinlock, 0), "pthread_spin_init"); return;
    }
}

static void objects_destroy(struct objects* objects, enum reuse_object object)
{
    must(pthread_mutex_destroy(&objects->mutex), "pthread_mutex_destroy");
    switch (object) {
    case REUSE_MUTEX: return;
    case REUSE_CONDITION: must(pthread_cond_destroy(&objects->other.condition), "pthread_cond_destroy"); return;
    case REUSE_BARRIER: must(pthread_barrier_destroy(&objects->other.barrier), "pthread_barrier_destroy"); return;
    case REUSE_SEMAPHORE: must(sem_destroy(&objects->other.semaphore), "sem_destroy"); return;
    case REUSE_RWLOCK: must(pthread_rwlock_destroy(&objects->other.rwlock), "pthread_rwlock_destroy"); return;
    case REUSE_SPINLOCK: must(pthread_spin_destroy(&objects->other.spinlock), "pthread_spin_destroy"); return;
    }
}

struct meeting {
    struct objects* objects;
    enum reuse_object object;
};

/// Each of two threads calls it.
static void* objects_use(void* of_meeting)
{
    const struct meeting* const meeting = of_meeting;
    struct objects* const objects = meeting->objects;
    const struct timespec until = time_in_us(CLOCK_REALTIME, 300);
    for (unsigned i = 0; i < 4; ++i) {
        must(pthread_mutex_lock(&objects->mutex), "pthread_mutex_lock");
        if (meeting->object == REUSE_CONDITION) {
            pthread_cond_broadcast(&objects->other.condition);
            const int error = pthread_cond_timedwait(&objects->other.condition, &objects->mutex, &until);
            must(error == ETIMEDOUT ? 0 : error, "pthread_cond_timedwait");
        }
        must(pthread_mutex_unlock(&objects->mutex), "pthread_mutex_unlock");
    }
    switch (meeting->object) {
    case REUSE_BARRIER: pthread_barrier_wait(&objects->other.barrier); break;
    case REUSE_SEMAPHORE:
        sem_post(&objects->other.semaphore);
        while (sem_wait(&objects->other.semaphore) != 0) {
        }
        break;
    case REUSE_RWLOCK:
        must(pthread_rwlock_wrlock(&objects->other.rwlock), "pthread_rwlock_wrlock");
        must(pthread_rwlock_unlock(&objects->other.rwlock), "pthread_rwlock_unlock");
        break;
    case REUSE_SPINLOCK:
        must(pthread_spin_lock(&objects->other.spinlock), "pthread_spin_lock");
        must(pthread_spin_unlock(&objects->other.spinlock), "pthread_spin_unlock");
        break;
    default: break;
    }
    return NULL;
}

enum { big_bytes = 3 * 4096, small_bytes = 2 * 4096 };

static void fill_with_integers(struct reuse* reuse, size_t size_bytes)
{
    uint32_t* const integers = (uint32_t*)reuse->block;
    reuse->tag = next_random();
    reuse->count = size_bytes / 4;
    for (uint64_t i = 0; i < reuse->count; ++i) {
        integers[i] = small_integer(reuse->tag, i);
    }
    reuse->mode = MODE_INTEGERS;
}

/// The objects lie in the last page of the block or, for those that stay, in the first.
static void end_objects(struct reuse* reuse, enum reuse_end end)
{
    size_t size_bytes = big_bytes;
    if (end == REUSE_SHRINK) {
        must_have(reuse->block = sp_realloc(reuse->block, small_bytes), "sp_realloc");
        must_have(reuse->block = sp_realloc(reuse->block, big_bytes), "sp_realloc");
    } else if (end == REUSE_FREE) {
        sp_free(reuse->block);
        must_have(reuse->block = sp_malloc(big_bytes), "sp_malloc");
    } else if (end == REUSE_MOVE) {
        must_have(reuse->block = sp_realloc(reuse->block, 40 * 4096), "sp_realloc");
        size_bytes = 40 * 4096;
    }
    fill_with_integers(reuse, size_bytes);
}

void reuse_as(struct part* part, struct worker* worker, unsigned section, struct lock* lock, enum reuse_object object, enum reuse_end end,
              bool destroys)
{
    static bool is_busy[parts_max]; // under the lock
    struct reuse* const reuse = (struct reuse*)part->head;
    section_begin();
    lock_acquire(lock, BY_LOCK);
    const bool is_mine = !is_busy[part->index];
    struct meeting meeting = {NULL, object};
    if (is_mine) {
        is_busy[part->index] = true;
        part_touch(part, worker);
        must_have(reuse->block = sp_realloc(reuse->block, big_bytes), "sp_realloc");
        reuse->mode = MODE_OBJECT;
        meeting.objects = (struct objects*)(reuse->block + (end == REUSE_SHRINK ? small_bytes + 256 : 512));
        objects_make(meeting.objects, object);
        section_ended(worker, section);
    }
    lock_release(lock);
    section_end(worker);
    if (!is_mine) {
        return;
    }
    pthread_t other;
    must(pthread_create(&other, NULL, objects_use, &meeting), "pthread_create");
    objects_use(&meeting);
    must(pthread_join(other, NULL), "pthread_join");
    section_begin();
    lock_acquire(lock, BY_LOCK);
    part_touch(part, worker);
    if (destroys) {
        objects_destroy(meeting.objects, object);
    }
    end_objects(reuse, end);
    section_ended(worker, section);
    is_busy[part->index] = false;
    lock_release(lock);
    section_end(worker);
}
