// A pool with one of each kind of field, for the commands that look inside.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stillpoint/stillpoint.h>

enum state { closed, open = 4, frozen = 8 };
struct account {
    struct account* next;
    char owner[16];
    long balance;
    double rate;
    enum state state;
    unsigned small : 3;
    signed int negative : 5;
    bool is_new;
    uint8_t key[4];
    union {
        int number;
        float real;
    };
    struct {
        short left, right;
    } pair[2];
    void* outside;
    char* label;
    struct account* too_small;
    struct account* freed;
};
struct bank {
    pthread_mutex_t lock;
    struct account* first;
    struct account* again;
    unsigned count;
    int matrix[2][3];
};
struct item {
    long number;
};
SP_PERSISTENT int starts = 1;
SP_PERSISTENT_VARIABLE(double[3], rates) = {1.5, 2.5};
SP_PERSISTENT_STATIC(struct item, hidden) = {7};

static struct account* new_account(struct bank* bank)
{
    struct account* one = sp_calloc(1, sizeof *one);
    snprintf(one->owner, sizeof one->owner, "owner \"%u\"", bank->count);
    one->balance = -100 * (long)bank->count;
    one->rate = 0.1;
    one->state = bank->count % 2 != 0 ? open : frozen | open;
    one->small = 5;
    one->negative = -3;
    one->is_new = true;
    one->key[0] = 0xfe;
    one->real = 1.0f;
    one->pair[1].right = -2;
    one->outside = stdout;
    one->label = sp_malloc(20);
    strcpy(one->label, "hello\n");
    one->too_small = sp_malloc(16);
    one->freed = sp_malloc(3000);
    sp_free(one->freed);
    ++bank->count;
    return one;
}

/// An object of words at random, some of which lead into the pool, as damage may leave it.
static void fill_with_junk(unsigned seed)
{
    char name[32];
    snprintf(name, sizeof name, "junk %u", seed);
    uint64_t* words = sp_root(name, 4096);
    sp_fase_begin();
    for (int i = 0; i < 512; ++i) {
        const int kind = rand() % 8;
        const uint64_t inside = (uint64_t)(uintptr_t)words + (uint64_t)(rand() % 4096);
        words[i] = kind < 4    ? inside & ~7ull
                   : kind == 4 ? inside
                   : kind == 5 ? 0
                   : kind == 6 ? (uint64_t)rand() % 64
                               : (uint64_t)rand() << 33;
    }
    sp_fase_end();
}

/// A ring of accounts, which each run makes longer by two.
int main(int argc, char** argv)
{
    struct bank* bank = sp_root("bank", sizeof *bank);
    struct item* items = sp_root("items", 50 * sizeof *items);
    if (bank == NULL || items == NULL) {
        return fprintf(stderr, "cli_inside: %s\n", sp_last_error()), 1;
    }
    if (argc > 1 && strcmp(argv[1], "junk") == 0) {
        for (unsigned seed = 0; seed < 40; ++seed) {
            fill_with_junk(seed);
        }
        return 0;
    }
    pthread_mutex_lock(&bank->lock);
    if (argc > 1 && strcmp(argv[1], "delete") == 0) {
        sp_root_delete("items");
        bank->first->balance = 1;
    } else {
        struct account* first = new_account(bank);
        first->next = new_account(bank);
        first->next->next = bank->first == NULL ? first : bank->first;
        bank->first = bank->again = first;
        for (int i = 0; i < 50; ++i) {
            items[i].number += i;
        }
        bank->matrix[1][2] = 42;
    }
    ++starts;
    pthread_mutex_unlock(&bank->lock);
    return 0;
}
