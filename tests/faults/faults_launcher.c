/* Runs a command on a kernel that seems to lack something: a seccomp filter makes one system call fail.
 *   faults_launcher userfaultfd ERRNO COMMAND...    as under a container's filter, or on an old kernel
 *   faults_launcher io_uring_setup ERRNO COMMAND...
 *   faults_launcher membarrier ERRNO COMMAND...
 *   faults_launcher pagemap_scan ERRNO COMMAND...   Linux before 6.7 (ENOTTY)
 * Exit code 125: the filter could not be installed. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* _IOWR('f', 16, struct pm_scan_arg): 96 bytes. Newer than some systems' headers. */
#define PAGEMAP_SCAN_REQUEST 0xC0606610u

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))

static int install(struct sock_filter* filter, size_t count)
{
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0;
}

int main(int argc, char** argv)
{
    if (argc < 4) {
        fputs("usage: faults_launcher userfaultfd|io_uring_setup|membarrier|pagemap_scan ERRNO COMMAND...\n", stderr);
        return 64;
    }
    const unsigned answer = SECCOMP_RET_ERRNO | ((unsigned)atoi(argv[2]) & SECCOMP_RET_DATA);
    const unsigned call = strcmp(argv[1], "io_uring_setup") == 0 ? SYS_io_uring_setup
                          : strcmp(argv[1], "membarrier") == 0   ? SYS_membarrier
                                                                 : SYS_userfaultfd;
    struct sock_filter without_call[] = {LOAD(nr), SKIP_UNLESS(call, 1), ANSWER(answer), ANSWER(SECCOMP_RET_ALLOW)};
    /* The low half of the second argument: the same offset on the little-endian machines that there are. */
    struct sock_filter without_scan[] = {LOAD(nr),       SKIP_UNLESS(SYS_ioctl, 3), LOAD(args[1]), SKIP_UNLESS(PAGEMAP_SCAN_REQUEST, 1),
                                         ANSWER(answer), ANSWER(SECCOMP_RET_ALLOW)};
    const int failed = strcmp(argv[1], "pagemap_scan") == 0 ? install(without_scan, sizeof without_scan / sizeof *without_scan)
                                                            : install(without_call, sizeof without_call / sizeof *without_call);
    if (failed) {
        perror("faults_launcher: no filter");
        return 125;
    }
    execv(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
