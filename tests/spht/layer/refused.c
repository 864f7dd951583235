/* Transactions that sp_tm_run refuses or cannot commit. Usage: refused [fork | other] */

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spht-hooks.h"

enum { LARGE = 64 << 20 };
static char* large;

static void fill(void* times) { memset(large, 7, *(int*)times == 0 ? LARGE : 100); }

static void expect(int code, int wanted, const char* what)
{
    if (code != wanted)
        printf("%s: %d, not %d\n", what, code, wanted);
}

int main(int count, char** words)
{
    int small = 1, all = 0;
    large = sp_root("large", LARGE);
    if (large == NULL)
        return fprintf(stderr, "%s\n", sp_last_error()), 1;
    if (count > 1 && strcmp(words[1], "other") == 0) {
        expect(sp_tm_run(fill, &small, 0), SP_E_POOL_ENGINE, "a pool of another engine");
        expect(large[0], 0, "the body did not run");
        return puts("done"), 0;
    }
    expect(sp_tm_run(fill, &all, 0), SP_E_TRANSACTION_TOO_LARGE, "one that is too large");
    expect(large[0], 0, "one that is too large leaves nothing");
    expect(sp_tm_run(fill, &small, 0), SP_OK, "the next one");
    expect(large[99] + large[100], 7, "the next one");
    expect(sp_tm_run(fill, &small, 1u << 30), SP_E_INVALID_ARGUMENT, "unknown flags");
    expect(sp_tm_run(fill, &small, SP_SPHT_READ_ONLY), SP_OK, "one that writes though it says that it does not");
    fflush(stdout);
    if (fork() == 0) {
        expect(sp_tm_run(fill, &small, 0), SP_E_DETACHED, "in a child");
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    return puts("done"), 0;
}
