/* Stillpoint's door for peers: hold a system of yours against Stillpoint's engines with one file of glue.
 *
 * Write a shared library that defines the one object `stillpoint_peer` below, in C or C++, and run
 *
 *     stillpoint bench --peer ./libmine.so
 *
 * The bench loads the library with dlopen in a process of its own, lets that process work in turn with those of the engines and of the
 * volatile program, and shows it as a row beside theirs. std_maps.cpp next to this header is an example; bench/README.md of Stillpoint has
 * the section "Hold your system against ours".
 *
 * Only the C standard library is included, and nothing of Stillpoint is linked. C99 and C++20, or GNU C++ from 11 on.
 *
 * Threads. The bench's threads call the operations at the same time, without any lock of the bench's. open, close, fill, sync and figures
 * are called by one thread while no operation runs. A thread may sleep for long between two operations: between its slices it has no work.
 *
 * Results. Every function returns a status: STILLPOINT_PEER_OK, STILLPOINT_PEER_ABSENT where that is allowed, or any negative number of
 * your own for an error. An error ends the measured process, and the run says which function returned which status, and what `message`
 * tells about it. No exception may leave a function.
 *
 * Functions that are NULL are not offered. The workloads that need them are left out for this peer, with the reason; none is imitated.
 *
 * Standard output of your library goes to standard error, which the bench shows when the process fails.
 */
#ifndef STILLPOINT_PEER_H
#define STILLPOINT_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library that was built for another version is refused: build it again with the header of the bench. */
#define STILLPOINT_PEER_VERSION 1

/* Statuses. */
#define STILLPOINT_PEER_OK 0
/* get, remove: there is no such key; dequeue: the queue is empty. */
#define STILLPOINT_PEER_ABSENT 1

/* A crash may lose this, by your own word: the bench shows it beside the ratios, and kills the process to see. */
enum stillpoint_peer_loss {
    STILLPOINT_PEER_LOSES_ALL = 0,    /* everything: the peer keeps nothing, and is not killed */
    STILLPOINT_PEER_LOSES_RECENT = 1, /* operations that had returned may be lost, as by an engine that takes checkpoints */
    STILLPOINT_PEER_LOSES_NOTHING = 2 /* every operation that had returned is there again; the run fails where that is not so */
};

/* Crashes that may have to be survived. */
enum stillpoint_peer_crash {
    STILLPOINT_PEER_PROCESS = 0, /* the process dies, the kernel lives: what it has of files and shared mappings survives */
    STILLPOINT_PEER_POWER = 1    /* the machine loses power: only what the medium has survives */
};

/* The work that is ahead. Valid during the call of open only. */
struct stillpoint_peer_settings {
    const char* folder;    /* where your files go: exists, empty at the first open, and as you left it at an open after a kill */
    uint32_t crash;        /* which crash must be survived: enum stillpoint_peer_crash */
    uint32_t threads;      /* at most as many threads have begun at any time, the one that fills and checks included */
    uint64_t value_bytes;  /* every value has this size: 8 to 8192 bytes */
    uint64_t keys;         /* about how many keys there will be; 0 where the work is a queue */
};

/* Figures that only you can know, counted since open. The bench sets all of them to STILLPOINT_PEER_UNKNOWN before it asks. */
#define STILLPOINT_PEER_UNKNOWN UINT64_MAX
struct stillpoint_peer_figures {
    uint64_t bytes_written; /* bytes sent to the medium: for written/changed, instead of the bytes that write calls took */
    uint64_t syncs;         /* fsync, msync or the like, or write-backs with their fence */
    uint64_t checkpoints;   /* times that a consistent state became durable as a whole */
    uint64_t recovery_ns;   /* how long open took to find the data again */
};

/* `store`: what open gave. `thread`: what thread_begin gave to the calling thread; NULL where there is no thread_begin. */
struct stillpoint_peer_functions {
    uint32_t version;    /* STILLPOINT_PEER_VERSION */
    uint32_t loses;      /* enum stillpoint_peer_loss */
    const char* name;    /* of the row: 1 to 32 letters, digits, - and _, beginning with a letter; never NULL */
    const char* summary; /* one sentence for `stillpoint bench list`; may be NULL */

    /* Opens the peer, empty or with what an earlier process left in the folder. Never NULL. */
    int (*open)(const struct stillpoint_peer_settings* settings, void** store);
    /* Ends it in order: every thread has ended, and nothing is called afterwards. Threads of your own end here too. Never NULL. */
    int (*close)(void* store);
    /* A thread that will work begins, before its first operation. `number`: below settings.threads, another one for each thread. May be
     * NULL. */
    int (*thread_begin)(void* store, uint32_t number, void** thread);
    /* Called by the same thread: it ends, and calls nothing afterwards. May be NULL. */
    int (*thread_end)(void* store, void* thread);

    /* Copies the key's value to `value`, which has room for value_bytes; STILLPOINT_PEER_ABSENT: there is no such key. Keys are any 64-bit
     * numbers. get and put are offered together; without them no workload of keys and values runs. */
    int (*get)(void* store, void* thread, uint64_t key, void* value, size_t value_bytes);
    /* Inserts the key or overwrites its value, as one operation for other threads and for a crash. */
    int (*put)(void* store, void* thread, uint64_t key, const void* value, size_t value_bytes);
    /* Removes the key; STILLPOINT_PEER_ABSENT: there was no such key. NULL leaves out the workloads that remove. */
    int (*remove)(void* store, void* thread, uint64_t key);

    /* Adds a number at the end of the one queue of the store, apart from its keys. enqueue and dequeue are offered together. */
    int (*enqueue)(void* store, void* thread, uint64_t number);
    /* Takes the oldest number; STILLPOINT_PEER_ABSENT: the queue is empty. */
    int (*dequeue)(void* store, void* thread, uint64_t* number);

    /* Waits until all that has returned is durable by your promise, and until work that it caused in the background is done: called at the
     * end of each slice, so that no side works in another one's time. Its CPU time is counted. NULL: there is never such work. */
    int (*sync)(void* store);
    /* The store is about to be filled (`is_beginning` 1), or has been (0). Between the two, one thread puts or enqueues, none reads, and
     * nothing need be durable before the second call returns. NULL: filling is like any other work. */
    int (*fill)(void* store, int is_beginning);
    /* Figures since open. NULL: none. */
    int (*figures)(void* store, struct stillpoint_peer_figures* figures);
    /* The meaning of a negative status that a function has just returned to the calling thread, in words. NULL: there are none. */
    const char* (*message)(int status);
};

/* The one symbol that the bench looks up. Define it in your library, in C as
 *     const struct stillpoint_peer_functions stillpoint_peer = { .version = STILLPOINT_PEER_VERSION, ... };
 * and in C++ as
 *     extern "C" const stillpoint_peer_functions stillpoint_peer = { .version = STILLPOINT_PEER_VERSION, ... };  */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const struct stillpoint_peer_functions stillpoint_peer;

#ifdef __cplusplus
}
#endif

#endif
