/* One wrong access to durable memory for each name, and what is right: `mistakes NAME`. verify_stores_test.py says what becomes of it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stillpoint/spht.h>
#include <stillpoint/stillpoint.h>

struct record {
    long value, other;
    struct record* next;
    char text[4096 * 3];
};

static struct record* all;

__attribute__((noinline)) static void store_plainly(void) { *(volatile long*)&all->value = 7; }
__attribute__((noinline)) static void copy_plainly(const char* text)
{
    strcpy(all->text, text);
    __asm__ volatile("");  /* Not a jump to strcpy: the caller would not be seen. */
}
__attribute__((noinline)) static void clear_plainly(void)
{
    memset(all->text, 0, sizeof all->text);
    __asm__ volatile("");
}

static int change(sp_spht_transaction* transaction, void* place)
{
    uint64_t value;
    int code = sp_spht_read_word(transaction, place, &value);
    return code != SP_OK ? code : sp_spht_write_word(transaction, place, value + 1, UINT64_MAX);
}

static int change_and_store(sp_spht_transaction* transaction, void* place)
{
    const int code = change(transaction, place);
    store_plainly();
    return code;
}

static int only_store(sp_spht_transaction* transaction, void* argument)
{
    (void)transaction, (void)argument;
    store_plainly();
    return SP_OK;
}

__attribute__((noinline)) static void fill_plainly(struct record* made) { made->other = 1; }

static int fill_new_block(sp_spht_transaction* transaction, void* place)
{
    struct record* const made = sp_spht_malloc(transaction, sizeof *made);
    fill_plainly(made);
    const uint64_t pointer = (uint64_t)(uintptr_t)made;
    return sp_spht_write_word(transaction, place, pointer, UINT64_MAX);
}

static int make_and_free(sp_spht_transaction* transaction, void* argument)
{
    static const char text[64] = "made";
    (void)argument;
    char* const made = sp_spht_malloc(transaction, 64);
    int code = sp_spht_write(transaction, made, text, sizeof text);
    if (code == SP_OK)
        code = sp_spht_free(transaction, made);
    return code;
}

static void* in_thread(void* argument)
{
    (void)argument;
    store_plainly();
    return NULL;
}

static void in_handler(int number)
{
    (void)number;
    store_plainly();
}

static void right_uses(void)
{
    for (int i = 0; i < 1000; ++i) {
        if (sp_spht_run(change, &all->value, 0) != SP_OK || sp_spht_run(make_and_free, NULL, 0) != SP_OK)
            exit(3);
    }
    void* blocks[200];
    for (int i = 0; i < 200; ++i)
        blocks[i] = sp_calloc(1, 1000 * (size_t)i + 1);
    for (int i = 0; i < 200; ++i)
        sp_free(blocks[i]);
    if (sp_spht_run(only_store, NULL, SP_SPHT_IRREVOCABLE | SP_SPHT_PLAIN_STORES) != SP_OK || all->value != 7)
        exit(4);
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "read", 5) != 5 || read(ends[0], all->text + 4090, 5) != 5 ||
        strcmp(all->text + 4090, "read") != 0)
        exit(5);
    if (sp_root("another", 100000) == NULL || sp_checkpoint() != SP_OK)
        exit(6);
    puts("right");
}

int main(int argc, char** argv)
{
    all = sp_root("record", sizeof *all);
    if (all == NULL || argc != 2)
        return fprintf(stderr, "%s\n", sp_last_error()), 2;
    const char* const name = argv[1];
    pthread_t thread;
    if (strcmp(name, "right") != 0 && sp_spht_run(change, &all->other, 0) != SP_OK)
        return 3;
    if (strcmp(name, "right") == 0) {
        right_uses();
    } else if (strcmp(name, "outside") == 0) {
        store_plainly();
    } else if (strcmp(name, "after-right-uses") == 0) {
        right_uses();
        fflush(stdout);
        store_plainly();
    } else if (strcmp(name, "copy") == 0) {
        copy_plainly(argv[0]);
    } else if (strcmp(name, "clear") == 0) {
        clear_plainly();
    } else if (strcmp(name, "inside") == 0) {
        sp_spht_run(change_and_store, &all->other, 0);
    } else if (strcmp(name, "new-block") == 0) {
        sp_spht_run(fill_new_block, &all->next, 0);
    } else if (strcmp(name, "malloc") == 0) {
        fill_plainly(sp_malloc(sizeof *all));
    } else if (strcmp(name, "thread") == 0) {
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(name, "handler") == 0) {
        signal(SIGUSR1, in_handler);
        raise(SIGUSR1);
    } else {
        return 2;
    }
    return 0;
}
