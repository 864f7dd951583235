/* Counts its runs in durable memory, prints the count, and then does what its first argument says:
 *   exit N     ends with code N          kill       ends by SIGKILL, after a checkpoint
 *   wait       says "ready" and sleeps   exec PATH  replaces itself, as `exec` in a shell
 *   child PATH starts a command and waits for it
 *   copy NEW [BASE]  copies the pool after a checkpoint: all of it, or what has changed since BASE */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

static long count_this_run(void)
{
    long* runs = sp_root("runs", sizeof *runs);
    if (runs == NULL) {
        fprintf(stderr, "cli_counter: %s\n", sp_last_error());
        exit(3);
    }
    sp_fase_begin();
    const long now = ++*runs;
    sp_fase_end();
    return now;
}

static int start(char** command)
{
    const pid_t child = fork();
    if (child == 0) {
        execv(command[0], command);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int copy(const char* to, const char* base)
{
    if (sp_checkpoint() != SP_OK || (base == NULL ? sp_copy(to) : sp_copy_since(to, base)) != SP_OK) {
        fprintf(stderr, "cli_counter: %s\n", sp_last_error());
        return 4;
    }
    return 0;
}

int main(int argc, char** argv)
{
    const char* what = argc > 1 ? argv[1] : "exit";
    printf("run %ld start %d\n", count_this_run(), (int)sp_start_kind());
    fflush(stdout);
    if (strcmp(what, "kill") == 0) {
        sp_checkpoint();
        raise(SIGKILL);
    } else if (strcmp(what, "wait") == 0) {
        sp_checkpoint();
        puts("ready");
        fflush(stdout);
        while (1) {
            pause();
        }
    } else if (strcmp(what, "exec") == 0) {
        execv(argv[2], argv + 2);
        return 127;
    } else if (strcmp(what, "child") == 0) {
        return start(argv + 2);
    } else if (strcmp(what, "copy") == 0) {
        return copy(argv[2], argc > 3 ? argv[3] : NULL);
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
