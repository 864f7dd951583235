/* Has 64 KiB of durable data, the number of its run in each word. Prints that of the run before by page, adds one everywhere, and tells
 * what a checkpoint says of it. With "kill" it ends by SIGKILL then. Compiled with WITH_TRANSACTIONS it adds by transactions of spht. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"

enum { words_in_page = 512, pages = 16 };

#ifdef WITH_TRANSACTIONS
static int add_in_page(sp_spht_transaction* transaction, void* argument)
{
    uint64_t* const page = argument;
    int code = SP_OK;
    for (int i = 0; i < words_in_page && code == SP_OK; ++i) {
        uint64_t value = 0;
        code = sp_spht_read_word(transaction, page + i, &value);
        if (code == SP_OK) {
            code = sp_spht_write_word(transaction, page + i, value + 1, UINT64_MAX);
        }
    }
    return code;
}

static void add_everywhere(long* data)
{
    for (int page = 0; page < pages; ++page) {
        if (sp_spht_run(add_in_page, data + page * words_in_page, 0) != SP_OK) {
            fprintf(stderr, "cli_damage: %s\n", sp_last_error());
        }
    }
}
#else
static void add_everywhere(long* data)
{
    sp_fase_begin();
    for (int i = 0; i < words_in_page * pages; ++i) {
        ++data[i];
    }
    sp_fase_end();
}
#endif

int main(int argc, char** argv)
{
    long* data = sp_root("data", sizeof(long) * words_in_page * pages);
    if (data == NULL) {
        fprintf(stderr, "cli_damage: %s\n", sp_last_error());
        return 3;
    }
    printf("start %d:", (int)sp_start_kind());
    for (int page = 0; page < pages; ++page) {
        printf(" %ld", data[page * words_in_page]);
    }
    printf("\n");
    add_everywhere(data);
    const int code = sp_checkpoint();
    printf("checkpoint %d %s\n", code, code != SP_OK ? sp_last_error() : "");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "kill") == 0) {
        raise(SIGKILL);
    }
    const int waited = sp_wait_durable(sp_epoch(), 2000);
    printf("wait %d\n", waited);
    return 0;
}
