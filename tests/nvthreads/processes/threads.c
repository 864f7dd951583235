/* Threads, what is their own, and the heaps. */

#include "program.h"

#include <signal.h>
#include <sys/mman.h>
#include <threads.h>

static char* heap_block;

static _Thread_local int own = 5;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_calls, key_ends;

static void note_once(void) { once_calls++; }
static void note_key(void* value) { key_ends += (int)(intptr_t)value; }
/* One thread makes a key that another, which was there before, uses too. */
static pthread_key_t late_key;
static int late_ends, late_is_made;
static void note_late(void* value) { __atomic_fetch_add(&late_ends, (int)(intptr_t)value, __ATOMIC_SEQ_CST); }
static void make_late(void) { pthread_key_create(&late_key, note_late); }

static void* use_late_key(void* number)
{
    if (number == NULL) {
        pthread_once_t first = PTHREAD_ONCE_INIT;
        pthread_once(&first, make_late);
        __atomic_store_n(&late_is_made, 1, __ATOMIC_SEQ_CST);
    }
    while (!__atomic_load_n(&late_is_made, __ATOMIC_SEQ_CST)) {
        usleep(1000);
    }
    CHECK(pthread_getspecific(late_key) == NULL && pthread_setspecific(late_key, (void*)(intptr_t)2) == 0);
    CHECK(pthread_getspecific(late_key) == (void*)(intptr_t)2);
    return (void*)((uintptr_t)number + 100);
}

static void note_cleanup(void* place) { *(int*)place += 1; }

static void* use_thread_state(void* place)
{
    CHECK(own == 5);
    own = 6;
    pthread_once(&once, note_once);
    pthread_setspecific(key, (void*)(intptr_t)3);
    CHECK(pthread_getspecific(key) == (void*)(intptr_t)3);
    pthread_cleanup_push(note_cleanup, place);
    pthread_exit((void*)(intptr_t)42);
    pthread_cleanup_pop(0);
    return NULL;
}

static void unlock(void* mutex) { pthread_mutex_unlock(mutex); }

static void* wait_for_cancel(void* place)
{
    pthread_cleanup_push(note_cleanup, place);
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    while (1) {
        pthread_cond_wait(&condition, &lock);
    }
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    return NULL;
}

static int c11_thread(void* number) { return *(int*)number - 50; }

void test_threads(void)
{
    pthread_t thread;
    thrd_t c11;
    void* value = NULL;
    int cleanups = 0, number = 43, result = 0; /* on this stack, changed by the others */
    run(use_late_key);
    CHECK(late_ends == 2 * threads);
    pthread_key_create(&key, note_key);
    CHECK(pthread_create(&thread, NULL, use_thread_state, &cleanups) == 0);
    CHECK(pthread_tryjoin_np(thread, &value) == EBUSY || value == (void*)(intptr_t)42);
    if (value == NULL) {
        CHECK(pthread_join(thread, &value) == 0 && value == (void*)(intptr_t)42);
    }
    CHECK(own == 5 && cleanups == 1 && once_calls == 1 && key_ends == 3);
    pthread_once(&once, note_once);
    CHECK(once_calls == 1);
    CHECK(pthread_create(&thread, NULL, wait_for_cancel, &cleanups) == 0);
    usleep(20000);
    CHECK(pthread_kill(thread, 0) == 0);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED && cleanups == 2);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    CHECK(thrd_create(&c11, c11_thread, &number) == thrd_success && thrd_join(c11, &result) == thrd_success && result == -7);
}

static unsigned char* mapped;

static void* allocate_and_fill(void* number)
{
    char* block = malloc(100000);
    mapped[(uintptr_t)number] = (unsigned char)((uintptr_t)number + 1);
    memset(block, 'a' + (int)(uintptr_t)number, 100000);
    pthread_mutex_lock(&lock);
    free(heap_block);
    heap_block = block;
    pthread_mutex_unlock(&lock);
    for (int i = 1; i < 2000; ++i) {
        char* small = malloc((size_t)i);
        memset(small, i, (size_t)i);
        small = realloc(small, (size_t)i * 2);
        CHECK(small[i - 1] == (char)i);
        free(small);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_heap(void)
{
    mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    run(allocate_and_fill);
    for (int i = 0; i < threads; ++i) {
        CHECK(mapped[i] == i + 1);
    }
    CHECK(heap_block[0] >= 'a' && heap_block[0] < 'a' + threads && heap_block[99999] == heap_block[0]);
    free(heap_block);
}

static void* replace_blocks(void* number)
{
    uint64_t** slot = sp_root("slots", threads * sizeof *slot);
    slot += (uintptr_t)number;
    for (uint64_t i = 0; i < 300; ++i) {
        pthread_mutex_lock(&byte_locks[(uintptr_t)number]);
        uint64_t* block = sp_malloc(2 * sizeof *block);
        CHECK(block != NULL);
        block[0] = i;
        block[1] = ~i;
        sp_free(*slot);
        *slot = block;
        pthread_mutex_unlock(&byte_locks[(uintptr_t)number]);
        CHECK((*slot)[0] == ~(*slot)[1]);
    }
    return (void*)((uintptr_t)number + 100);
}

void test_durable_heap(void)
{
    sp_heap_statistics before, after;
    CHECK(sp_root("slots", threads * sizeof(uint64_t*)) != NULL);
    run(replace_blocks);
    CHECK(sp_heap_stats(&before) == SP_OK);
    run(replace_blocks);
    CHECK(sp_heap_stats(&after) == SP_OK && after.live_blocks == before.live_blocks);
    CHECK(sp_root_find("nothing", NULL) == NULL && errno == ENOENT && strstr(sp_last_error(), "nothing") != NULL);
    CHECK(sp_checkpoint() == SP_OK && sp_durable_epoch() > 0);
}
