/* Calls functions of libc with pointers to durable memory: what they write must be hooked (described_calls_test.py). Hooks may cover
 * more, as far as docs/guide/nvhooks-descriptions.md says so; all of the memory counts as slack. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "recorder.h"

/* One call, and the end of its epoch. */
#define STEP(...) \
    do { \
        __VA_ARGS__; \
        boundary(__LINE__); \
    } while (0)

static const char *text(const char *known)
{
    static const char *volatile unknown;
    unknown = known;
    return unknown;
}

static u64 number(u64 known)
{
    static volatile u64 unknown;
    unknown = known;
    return unknown;
}

static int compare(const void *a, const void *b) { return memcmp(a, b, 4); }

static void strings(void *durable, void *ordinary)
{
    char *d = durable, *o = ordinary;
    STEP(memcpy(d + 3, o, number(77)));
    STEP(memmove(d + 3, d + 5, number(77)));
    STEP(mempcpy(d, o, number(20)));
    STEP(memset(d + 1, 5, number(33)));
    STEP(explicit_bzero(d, number(9)));
    STEP(bzero(d, number(9)));
    STEP(bcopy(o, d, number(9)));
    STEP(o[7] = 'q'; memset(o, 'a', 7); memccpy(d, o, 'q', number(50)));
    STEP(memset(o, 'a', 60); memccpy(d, o, 'q', number(50)));
    STEP(swab(o, d, (ssize_t)number(10)));
    STEP(strcpy(d, text("some text")));
    STEP(stpcpy(d, text("some text")));
    STEP(strncpy(d, text("some text"), number(30)));
    STEP(stpncpy(d, text("some text"), number(4)));
    STEP(strcpy(d, text("one")); strcat(d, text(" and two")));
    STEP(strcpy(d, text("one")); strncat(d, text(" and two"), number(4)));
    STEP(strcpy(d, text("one")); strncat(d, text("!"), number(4)));
    STEP(strcpy(d, text("a,b")); char *rest = d; strsep(&rest, ","));
    STEP(strcpy(d, text("a,b")); strcpy(o, text("c,d")); *(char **)(d + 64) = o; strsep((char **)(d + 64), ","));
    STEP(strcpy(d, text("a b c")); char *save; strtok_r(d, " ", &save); strtok_r(NULL, " ", &save));
    STEP(strcpy(o, text("a b c")); strtok_r(o, " ", (char **)(d + 8)); strtok_r(NULL, " ", (char **)(d + 8)));
    STEP(strcpy(d, text("a b c")); strtok(d, " "));
    STEP(strxfrm(d, text("transform"), number(40)));
    STEP(strerror_r(2, d, number(80)));
    STEP(wmemcpy((wchar_t *)d, (wchar_t *)o, number(7)));
    STEP(wmemset((wchar_t *)d, L'x', number(7)));
    STEP(wcscpy((wchar_t *)d, L"wide"));
    STEP(wcscpy((wchar_t *)d, L"wide"); wcscat((wchar_t *)d, L" and wider"));
    STEP(wcsncpy((wchar_t *)d, L"wide", number(9)));
    STEP(mbstowcs((wchar_t *)d, text("multi"), number(20)));
    STEP(wcstombs(d, L"multi", number(20)));
    STEP(mbtowc((wchar_t *)d, text("m"), 1));
    STEP(memset(o, 0, 8); mbrtowc((wchar_t *)d, text("m"), 1, (mbstate_t *)o));
    STEP(wctomb(d, L'm'));
}

static void formats(void *durable, void *ordinary)
{
    char *d = durable, *o = ordinary;
    struct tm tm = {.tm_year = 100, .tm_mday = 3};
    STEP(sprintf(d, "%d %s", (int)number(44), text("formatted")));
    STEP(snprintf(d, number(9), "%d %s", (int)number(44), text("formatted")));
    STEP(snprintf(d, number(90), "%d %s %Lg", (int)number(44), text("formatted"), (long double)number(3)));
    STEP(snprintf(d, number(0), "%d", 4));
    STEP(swprintf((wchar_t *)d, number(30), L"%d %ls", (int)number(44), L"wide"));
    STEP(asprintf((char **)d, "%d", 4); free(*(char **)d));
    STEP(strftime(d, number(40), "%Y-%m-%d", &tm));
    STEP(sscanf(text("12 word 3.5 q 7"), "%d %20s %lf %c %hd", (int *)d, d + 8, (double *)(d + 32), d + 40, (short *)(d + 48)));
    STEP(sscanf(text("abc 99"), "%9[a-c] %n%ld", d, (int *)(d + 16), (long *)(d + 24)));
    STEP(strtol(text("12x"), (char **)d, 10));
    STEP(strtoul(text("12x"), (char **)d, 10));
    STEP(strtod(text("1.5x"), (char **)d));
    STEP(strptime(text("2020-03-04"), "%Y-%m-%d", (struct tm *)d));
    STEP(frexp((double)number(40), (int *)d));
    STEP(modf((double)number(40) / 7, (double *)d));
    STEP(modfl((long double)number(40) / 7, (long double *)d));
    STEP(remquo((double)number(40), 7, (int *)d));
    STEP(sincos((double)number(40), (double *)d, (double *)(d + 8)));
    STEP(memset(o, 0, 64); qsort(d, number(20), 4, compare));
    STEP(inet_pton(AF_INET, text("1.2.3.4"), d));
    STEP(inet_pton(AF_INET6, text("::1"), d));
    STEP(inet_pton(AF_INET, text("no address"), d));
    STEP(memset(o, 1, 16); inet_ntop(AF_INET, o, d, (socklen_t)number(40)));
    STEP(memset(o, 1, 16); inet_ntop(AF_INET6, o, d, (socklen_t)number(50)));
    STEP(inet_aton(text("1.2.3.4"), (struct in_addr *)d));
}

static void input(void *durable, void *ordinary)
{
    char *d = durable, *o = ordinary;
    char name[] = "/tmp/nvhooks-described-XXXXXX";
    const int fd = mkstemp(name);
    FILE *stream = fdopen(dup(fd), "r+");
    unlink(name);
    memset(o, 'z', 100);
    o[50] = '\n';
    (void)!write(fd, o, 100);
    STEP((void)!pread(fd, d, number(60), 0));
    STEP((void)!pread(fd, d, number(60), 90));
    STEP(lseek(fd, 0, SEEK_SET); (void)!read(fd, d, number(70)));
    STEP((void)!read(-1, d, number(70)));
    STEP(rewind(stream); (void)!fread(d, 3, number(9), stream));
    STEP(rewind(stream); (void)!fgets(d, (int)number(80), stream));
    STEP(rewind(stream); *(char **)(d + 512) = d; *(size_t *)(d + 520) = 200; getline((char **)(d + 512), (size_t *)(d + 520), stream));
    STEP(rewind(stream); *(char **)(d + 512) = NULL; *(size_t *)(d + 520) = 0; getline((char **)(d + 512), (size_t *)(d + 520), stream);
         free(*(char **)(d + 512)));
    STEP(fgetpos(stream, (fpos_t *)d));
    STEP(fstat(fd, (struct stat *)d));
    STEP(stat("/", (struct stat *)d));
    STEP(lstat("/", (struct stat *)d));
    STEP(statvfs("/", (struct statvfs *)d));
    STEP((void)!readlink("/proc/self/exe", d, number(300)));
    STEP((void)!getcwd(d, number(4000)));
    STEP((void)!realpath("/proc/..", d));
    STEP((void)!getrandom(d, number(40), 0));
    STEP((void)!getentropy(d, number(40)));
    STEP((void)!pipe((int *)d); close(((int *)d)[0]); close(((int *)d)[1]));
    STEP(strcpy(d, text("/tmp/nvhooks-XXXXXX")); const int made = mkstemp(d); unlink(d); close(made));
    STEP(uname((struct utsname *)d));
    STEP(gethostname(d, number(100)));
    fclose(stream);
    close(fd);
}

static void network(void *durable, void *ordinary)
{
    char *d = durable, *o = ordinary;
    int ends[2];
    (void)!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    STEP(send(ends[0], o, 30, 0); recv(ends[1], d, number(100), 0));
    STEP(send(ends[0], o, 30, 0); recv(ends[1], d, number(10), MSG_TRUNC));
    STEP(*(socklen_t *)(d + 512) = 110; send(ends[0], o, 30, 0);
         recvfrom(ends[1], d, number(100), 0, (struct sockaddr *)(d + 256), (socklen_t *)(d + 512)));
    STEP(*(socklen_t *)(d + 512) = 110; getsockname(ends[0], (struct sockaddr *)d, (socklen_t *)(d + 512)));
    STEP(*(socklen_t *)(d + 512) = 4; getsockopt(ends[0], SOL_SOCKET, SO_TYPE, d, (socklen_t *)(d + 512)));
    STEP(((struct pollfd *)d)[0] = (struct pollfd){ends[0], POLLOUT, 0}; poll((struct pollfd *)d, number(1), 0));
    STEP(FD_ZERO((fd_set *)d); FD_SET(ends[0], (fd_set *)d); select(ends[0] + 1, NULL, (fd_set *)d, NULL, &(struct timeval){0, 0}));
    const int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLOUT, {.u64 = 0x1234567890}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    STEP(epoll_wait(epoll, (struct epoll_event *)d, (int)number(4), 0));
    STEP(struct addrinfo *list = NULL; *(struct addrinfo **)d = list);
    close(epoll);
    close(ends[0]);
    close(ends[1]);
}

static void times_and_objects(void *durable, void *ordinary)
{
    char *d = durable;
    (void)ordinary;
    time_t when = (time_t)number(1000000);
    STEP(time((time_t *)d));
    STEP(gettimeofday((struct timeval *)d, NULL));
    STEP(clock_gettime(CLOCK_REALTIME, (struct timespec *)d));
    STEP(clock_gettime(-77, (struct timespec *)d));
    STEP(clock_getres(CLOCK_REALTIME, (struct timespec *)d));
    STEP(localtime_r(&when, (struct tm *)d));
    STEP(gmtime_r(&when, (struct tm *)d));
    STEP(memset(d, 0, 56); mktime((struct tm *)d));
    STEP(ctime_r(&when, d));
    STEP(times((struct tms *)d));
    STEP(getrusage(RUSAGE_SELF, (struct rusage *)d));
    STEP(getrlimit(RLIMIT_CORE, (struct rlimit *)d));
    STEP(sigemptyset((sigset_t *)d));
    STEP(sigfillset((sigset_t *)d));
    STEP(sigemptyset((sigset_t *)d); sigaddset((sigset_t *)d, 3));
    STEP(sigaction(SIGUSR1, NULL, (struct sigaction *)d));
    STEP(sigprocmask(SIG_BLOCK, NULL, (sigset_t *)d));
    STEP(pthread_mutex_init((pthread_mutex_t *)d, NULL));
    STEP(pthread_cond_init((pthread_cond_t *)d, NULL));
    STEP(pthread_rwlock_init((pthread_rwlock_t *)d, NULL));
    STEP(pthread_barrier_init((pthread_barrier_t *)d, NULL, 2));
    STEP(sem_init((sem_t *)d, 0, 3); sem_getvalue((sem_t *)d, (int *)(d + 64)));
    STEP(pthread_attr_init((pthread_attr_t *)d); pthread_attr_setstacksize((pthread_attr_t *)d, 1 << 20));
    STEP(pthread_mutexattr_init((pthread_mutexattr_t *)d); pthread_mutexattr_settype((pthread_mutexattr_t *)d, PTHREAD_MUTEX_RECURSIVE));
    STEP(pthread_key_create((pthread_key_t *)d, NULL));
    STEP(posix_memalign((void **)d, 64, 64); free(*(void **)d));
    STEP(rand_r((unsigned *)d));
    STEP(*(unsigned short *)d = 3; erand48((unsigned short *)d));
    STEP(getloadavg((double *)d, (int)number(3)));
    STEP(lfind(d + 100, d, &(size_t){0}, 4, compare));
    STEP(*(size_t *)(d + 512) = 2; lsearch(text("key!"), d, (size_t *)(d + 512), 4, compare));
    STEP(waitpid(-1, (int *)d, WNOHANG));
}

enum { BYTES = 8192 };
const struct program programs[] = {
    {strings, BYTES, 0}, {formats, BYTES, 0}, {input, BYTES, 0}, {network, BYTES, 0}, {times_and_objects, BYTES, 0}};
const u32 program_count = sizeof programs / sizeof programs[0];
