/* Marked and unmarked stores to durable memory, for verify_marks.
 *   hooks_verify marked      every store of this file is marked; locks, a condition variable, a semaphore and reads from
 *                            a file next to them
 *   hooks_verify scribble    the same, and stores of unmarked_writer.c in pages that have no mark
 *   hooks_verify libc        the same by memmove, in an unmarked library's name
 *   hooks_verify print       prints what is there
 * Each but print ends by SIGKILL after a checkpoint. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"
#include "unmarked_writer.h"

#define MARKED(object) sp_mark_written(&(object), sizeof(object))

enum { page = 4096, rounds = 20 };

struct objects {
    long first;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_rwlock_t rwlock;
    sem_t tickets;
    long turns;
    char room[2 * page];
    long unmarked;
    char more_room[2 * page];
    char text[64];
};

static struct objects* objects;

/* Takes turns with main under the condition variable, so that waiters' state is in the page at checkpoints. */
static void* take_turns(void* unused)
{
    (void)unused;
    pthread_mutex_lock(&objects->lock);
    for (int i = 0; i < rounds; i++) {
        while (objects->turns % 2 == 0) {
            pthread_cond_wait(&objects->changed, &objects->lock);
        }
        objects->turns++;
        MARKED(objects->turns);
        pthread_cond_signal(&objects->changed);
    }
    pthread_mutex_unlock(&objects->lock);
    return NULL;
}

static void use_every_lock(void)
{
    pthread_t other;
    sp_fase_begin();
    objects->turns = 0;
    sem_init(&objects->tickets, 0, rounds); /* A call that the compiler would mark. */
    sp_mark_written(objects, offsetof(struct objects, room));
    sp_fase_end();
    pthread_create(&other, NULL, take_turns, NULL);
    for (int i = 0; i < rounds; i++) {
        sp_checkpoint();
        pthread_mutex_lock(&objects->lock);
        while (objects->turns % 2 == 1) {
            pthread_cond_wait(&objects->changed, &objects->lock);
        }
        objects->turns++;
        MARKED(objects->turns);
        pthread_cond_signal(&objects->changed);
        pthread_mutex_unlock(&objects->lock);
        sp_fase_begin(); /* A semaphore's value is durable state. */
        sem_wait(&objects->tickets);
        sem_post(&objects->tickets);
        sem_trywait(&objects->tickets);
        sp_fase_end();
        sp_checkpoint();
        sp_fase_begin();
        sem_post(&objects->tickets);
        sem_wait(&objects->tickets);
        sp_fase_end();
        pthread_rwlock_rdlock(&objects->rwlock);
        pthread_rwlock_unlock(&objects->rwlock);
    }
    pthread_join(other, NULL);
}

static void allocate_and_free(void)
{
    void* blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = sp_calloc(1, (size_t)(40 << (i % 12)));
    }
    sp_checkpoint();
    for (int i = 0; i < 64; i++) {
        sp_free(sp_realloc(blocks[i], (size_t)(30 << (i % 13))));
    }
    sp_root("another", 100);
    sp_root_delete("another");
}

static void read_into_durable_memory(void)
{
    FILE* file = fopen("/dev/zero", "r");
    sp_fase_begin();
    if (file == NULL || fread(objects->text + 32, 32, 1, file) != 1) {
        exit(3);
    }
    sp_fase_end();
    fclose(file);
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "marked";
    objects = sp_root("objects", sizeof *objects);
    if (objects == NULL) {
        fprintf(stderr, "hooks_verify: %s\n", sp_last_error());
        return 3;
    }
    if (strcmp(what, "print") == 0) {
        printf("%ld %ld %s\n", objects->first, objects->unmarked, objects->text);
        return 0;
    }
    use_every_lock();
    allocate_and_free();
    read_into_durable_memory();
    sp_checkpoint();
    for (int i = 0; i < 3; i++) {
        sp_fase_begin();
        objects->first++;
        MARKED(objects->first);
        if (strcmp(what, "scribble") == 0) {
            scribble(&objects->unmarked);
        } else if (strcmp(what, "libc") == 0) {
            scribble_through_libc(objects->text, "unmarked", sizeof "unmarked");
        }
        sp_fase_end();
        sp_checkpoint();
    }
    raise(SIGKILL);
    return 0;
}
