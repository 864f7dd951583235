// Lets every call whose result the kernel stores fill durable memory that a checkpoint has just protected.
//
// First life: each call fills a page of its own, and a copy of that page is stored beside it; then a checkpoint and a kill. Second life:
// each page equals its copy. Prints the calls that failed or stored nothing, and those whose page was lost.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <iterator>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t second = 2048;  ///< where a second result goes

/// A page, seen as what a call fills.
class Page {
public:
    explicit Page(char* bytes) : bytes_(bytes) {}
    template <class Result>
    Result* as(std::size_t at = 0) const
    {
        return reinterpret_cast<Result*>(bytes_ + at);
    }
    char* text() const { return bytes_; }

private:
    char* bytes_;
};

struct Entry {
    const char* name;
    bool (*fill)(Page page);
    bool stores_zeroes = false;
};

int opened(const char* path, int flags = O_RDONLY) { return open(path, flags | O_CLOEXEC, 0600); }

/// A pipe with so many bytes in it: its reading end.
int full_pipe(std::size_t bytes)
{
    int ends[2];
    static const char nothing[page_bytes] = {};
    return pipe(ends) == 0 && write(ends[1], nothing, bytes) == static_cast<ssize_t>(bytes) ? ends[0] : -1;
}

int writable_file() { return static_cast<int>(syscall(SYS_memfd_create, "kernel stores", MFD_CLOEXEC)); }

pid_t child()
{
    const pid_t made = fork();
    if (made == 0) {
        syscall(SYS_exit_group, 7);
    }
    return made;
}

/// A listening socket of this machine, and a connection to it that waits to be accepted.
int with_connection()
{
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(listener, any, bytes) == 0 && listen(listener, 1) == 0 && getsockname(listener, any, &bytes) == 0 &&
                   connect(client, any, bytes) == 0
               ? listener
               : -1;
}

/// Before the pages are protected: a length that a call is given in the second place.
socklen_t* length_in(Page page) { return page.as<socklen_t>(second); }

mqd_t queue_with_message()
{
    mq_attr facts{};
    facts.mq_maxmsg = 1;
    facts.mq_msgsize = 16;
    static int number = 0;
    char name[64];
    std::snprintf(name, sizeof name, "/stillpoint-%d-%d", getpid(), ++number);
    const mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &facts);
    mq_unlink(name);
    return queue != mqd_t(-1) && mq_send(queue, "message", 7, 3) == 0 ? queue : mqd_t(-1);
}

bool message_of_system_v(Page page)
{
    struct {
        long type;
        char text[8];
    } message{5, "seven"};
    const int queue = msgget(IPC_PRIVATE, 0600);
    const bool sent = msgsnd(queue, &message, sizeof message.text, 0) == 0;
    const bool got = msgrcv(queue, page.text(), sizeof message.text, 0, 0) == sizeof message.text;
    msgctl(queue, IPC_RMID, nullptr);
    return sent && got;
}

bool epoll(Page page, int (*wait_for)(int file, epoll_event* events))
{
    const int file = epoll_create1(EPOLL_CLOEXEC);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = 42;
    return epoll_ctl(file, EPOLL_CTL_ADD, full_pipe(1), &wanted) == 0 && wait_for(file, page.as<epoll_event>()) == 1;
}

/// The contents of the page before it is protected, where a call needs something there.
void prepare(const char* name, Page page)
{
    if (std::strstr(name, "poll") != nullptr && std::strstr(name, "epoll") == nullptr) {
        page.as<pollfd>()->fd = -1;
        page.as<pollfd>(sizeof(pollfd))->fd = -1;
        *page.as<pollfd>(sizeof(pollfd)) = {opened("/dev/null"), POLLIN, 0};
    } else if (std::strstr(name, "select") != nullptr) {
        FD_SET(opened("/dev/null"), page.as<fd_set>());
    } else if (std::strstr(name, "fcntl") != nullptr) {
        page.as<struct flock>()->l_type = F_RDLCK;
    } else {
        *length_in(page) = 128;
    }
}

/// Taken as arguments that the compiler does not know, so that it calls what checks them.
volatile std::size_t path_bytes = 1024;

const Entry entries[] = {
    {"stat", [](Page page) { return stat("/", page.as<struct stat>()) == 0; }},
    {"lstat", [](Page page) { return lstat("/", page.as<struct stat>()) == 0; }},
    {"fstat", [](Page page) { return fstat(0, page.as<struct stat>()) == 0; }},
    {"fstatat", [](Page page) { return fstatat(AT_FDCWD, "/", page.as<struct stat>(), 0) == 0; }},
    {"stat64", [](Page page) { return stat64("/", page.as<struct stat64>()) == 0; }},
    {"lstat64", [](Page page) { return lstat64("/", page.as<struct stat64>()) == 0; }},
    {"fstat64", [](Page page) { return fstat64(0, page.as<struct stat64>()) == 0; }},
    {"fstatat64", [](Page page) { return fstatat64(AT_FDCWD, "/", page.as<struct stat64>(), 0) == 0; }},
    {"statx", [](Page page) { return statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, page.as<struct statx>()) == 0; }},
    {"statfs", [](Page page) { return statfs("/", page.as<struct statfs>()) == 0; }},
    {"fstatfs", [](Page page) { return fstatfs(0, page.as<struct statfs>()) == 0; }},
    {"statfs64", [](Page page) { return statfs64("/", page.as<struct statfs64>()) == 0; }},
    {"fstatfs64", [](Page page) { return fstatfs64(0, page.as<struct statfs64>()) == 0; }},
    {"getcwd", [](Page page) { return getcwd(page.text(), path_bytes) != nullptr; }},
    {"readlink", [](Page page) { return readlink("/proc/self/exe", page.text(), path_bytes) > 0; }},
    {"readlinkat", [](Page page) { return readlinkat(AT_FDCWD, "/proc/self/exe", page.text(), path_bytes) > 0; }},
    {"getxattr",
     [](Page page) {
         const int file = opened("kernel-stores-attribute", O_RDWR | O_CREAT);
         if (fsetxattr(file, "user.a", "value", 5, 0) != 0) {
             return true;  // A file system without attributes.
         }
         return getxattr("kernel-stores-attribute", "user.a", page.text(), 5) == 5 &&
                lgetxattr("kernel-stores-attribute", "user.a", page.text() + second, 5) == 5;
     },
     true},
    {"fgetxattr",
     [](Page page) {
         const int file = opened("kernel-stores-attribute", O_RDWR | O_CREAT);
         return fsetxattr(file, "user.a", "value", 5, 0) != 0 || fgetxattr(file, "user.a", page.text(), 5) == 5;
     },
     true},
    {"getdents64", [](Page page) { return getdents64(opened("/", O_RDONLY | O_DIRECTORY), page.text(), page_bytes) > 0; }},
    {"sendfile", [](Page page) { return sendfile(writable_file(), opened("/proc/self/exe"), page.as<off_t>(), 64) == 64; }},
    {"sendfile64", [](Page page) { return sendfile64(writable_file(), opened("/proc/self/exe"), page.as<off64_t>(), 64) == 64; }},
    {"splice", [](Page page) { return splice(full_pipe(64), nullptr, writable_file(), page.as<off64_t>(), 64, 0) == 64; }},
    {"copy_file_range",
     [](Page page) {
         const int from = writable_file();
         auto* const to_offset = page.as<off64_t>(second);
         return ftruncate(from, 8192) == 0 && copy_file_range(from, page.as<off64_t>(), writable_file(), to_offset, 64, 0) == 64;
     }},
    {"pipe", [](Page page) { return pipe(page.as<int>()) == 0; }},
    {"pipe2", [](Page page) { return pipe2(page.as<int>(), O_CLOEXEC) == 0; }},
    {"socketpair", [](Page page) { return socketpair(AF_UNIX, SOCK_STREAM, 0, page.as<int>()) == 0; }},
    {"accept", [](Page page) { return accept(with_connection(), page.as<sockaddr>(), length_in(page)) >= 0; }},
    {"accept4", [](Page page) { return accept4(with_connection(), page.as<sockaddr>(), length_in(page), SOCK_CLOEXEC) >= 0; }},
    {"getsockname", [](Page page) { return getsockname(with_connection(), page.as<sockaddr>(), length_in(page)) == 0; }},
    {"getpeername",
     [](Page page) {
         const int file = accept(with_connection(), nullptr, nullptr);
         return getpeername(file, page.as<sockaddr>(), length_in(page)) == 0;
     }},
    {"getsockopt", [](Page page) { return getsockopt(with_connection(), SOL_SOCKET, SO_RCVBUF, page.as<int>(), length_in(page)) == 0; }},
    {"ioctl", [](Page page) { return ioctl(full_pipe(9), FIONREAD, page.as<int>()) == 0; }},
    {"fcntl", [](Page page) { return fcntl(writable_file(), F_GETLK, page.as<struct flock>()) == 0; }},
    {"fcntl64", [](Page page) { return fcntl64(writable_file(), F_GETLK, page.as<struct flock64>()) == 0; }},
    {"poll", [](Page page) { return poll(page.as<pollfd>(), 2, 0) == 1; }},
    {"ppoll", [](Page page) { return ppoll(page.as<pollfd>(), 2, nullptr, nullptr) == 1; }},
    {"select",
     [](Page page) {
         timeval at_once{};
         return select(FD_SETSIZE, nullptr, nullptr, page.as<fd_set>(), &at_once) == 0;
     }},
    {"pselect",
     [](Page page) {
         const timespec at_once{};
         return pselect(FD_SETSIZE, nullptr, nullptr, page.as<fd_set>(), &at_once, nullptr) == 0;
     }},
    {"epoll_wait", [](Page page) { return epoll(page, [](int file, epoll_event* events) { return epoll_wait(file, events, 8, -1); }); }},
    {"epoll_pwait",
     [](Page page) { return epoll(page, [](int file, epoll_event* events) { return epoll_pwait(file, events, 8, -1, nullptr); }); }},
    {"eventfd_read", [](Page page) { return eventfd_read(eventfd(6, EFD_CLOEXEC), page.as<eventfd_t>()) == 0; }},
    {"msgrcv", message_of_system_v},
    {"mq_receive",
     [](Page page) {
         const mqd_t queue = queue_with_message();
         return (queue == mqd_t(-1) && errno != EFAULT) || mq_receive(queue, page.text(), 16, page.as<unsigned>(second)) == 7;
     },
     true},
    {"wait", [](Page page) { return child() > 0 && wait(page.as<int>()) > 0; }},
    {"waitpid", [](Page page) { return waitpid(child(), page.as<int>(), 0) > 0; }},
    {"wait4", [](Page page) { return wait4(child(), page.as<int>(), 0, page.as<rusage>(second)) > 0; }},
    {"waitid", [](Page page) { return waitid(P_PID, static_cast<id_t>(child()), page.as<siginfo_t>(), WEXITED) == 0; }},
    {"getrusage", [](Page page) { return getrusage(RUSAGE_SELF, page.as<rusage>()) == 0; }},
    {"getrlimit", [](Page page) { return getrlimit(RLIMIT_NOFILE, page.as<rlimit>()) == 0; }},
    {"prlimit", [](Page page) { return prlimit(0, RLIMIT_NOFILE, nullptr, page.as<rlimit>()) == 0; }},
    {"uname", [](Page page) { return uname(page.as<utsname>()) == 0; }},
    {"sysinfo", [](Page page) { return sysinfo(page.as<struct sysinfo>()) == 0; }},
    {"times", [](Page page) { return times(page.as<tms>()) != clock_t(-1); }, true},
    {"sigprocmask",
     [](Page page) {
         sigset_t none;
         sigemptyset(&none);
         return sigprocmask(SIG_BLOCK, &none, page.as<sigset_t>()) == 0 && pthread_sigmask(SIG_BLOCK, &none, page.as<sigset_t>()) == 0;
     },
     true},
    {"getrandom", [](Page page) { return getrandom(page.text(), 64, 0) == 64; }},
    {"process_vm_writev",
     [](Page page) {
         static char bytes[] = "from this process";
         const iovec from{bytes, sizeof bytes};
         const iovec to{page.text(), sizeof bytes};
         return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof bytes;
     }},
    {"vmsplice from a pipe",
     [](Page page) {
         int ends[2];
         const iovec to{page.text(), 8};
         return pipe(ends) == 0 && write(ends[1], "received", 8) == 8 && vmsplice(ends[0], &to, 1, 0) == 8;
     }},
    {"vmsplice of pages as a gift",
     [](Page page) {
         // The pipe has the page itself: what is stored into it afterwards is the program's own, and followed.
         int ends[2];
         const iovec gift{page.text(), page_bytes};
         if (pipe(ends) != 0 || vmsplice(ends[1], &gift, 1, SPLICE_F_GIFT) != page_bytes ||
             splice(ends[0], nullptr, writable_file(), nullptr, page_bytes, SPLICE_F_MOVE) != page_bytes) {
             return false;
         }
         std::memcpy(page.text(), "stored after the gift", 22);
         sp_mark_written(page.text(), 22);
         return true;
     }},
    {"futex with an owner", [](Page page) { return syscall(SYS_futex, page.text(), FUTEX_LOCK_PI, 0, nullptr, nullptr, 0) == 0; }},
    {"futex of several processes", [](Page page) { return syscall(SYS_futex, page.text(), FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0; },
     true},
    {"private futex", [](Page page) { return syscall(SYS_futex, page.text(), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0) == 0; }, true},
};

struct State {
    char* pages;  ///< two for each entry: what was filled, and a copy
    bool filled;
};

char* page_of(const State& state, const Entry& entry) { return state.pages + 2 * page_bytes * static_cast<std::size_t>(&entry - entries); }

void make(State& state)
{
    sp_fase_begin();
    state.pages = static_cast<char*>(sp_aligned_alloc(page_bytes, 2 * page_bytes * std::size(entries)));
    std::memset(state.pages, 0, 2 * page_bytes * std::size(entries));
    for (const Entry& entry : entries) {
        prepare(entry.name, Page(page_of(state, entry)));
    }
    sp_mark_written(state.pages, 2 * page_bytes * std::size(entries));
    sp_mark_written(&state, sizeof state);
    sp_fase_end();
}

int fill(State& state)
{
    int failed = 0;
    for (const Entry& entry : entries) {
        char* const page = page_of(state, entry);
        static char before[page_bytes];
        std::memcpy(before, page, page_bytes);
        sp_fase_begin();
        errno = 0;
        const bool done = entry.fill(Page(page));
        const int error = errno;
        std::memcpy(page + page_bytes, page, page_bytes);
        sp_mark_written(page + page_bytes, page_bytes);
        sp_fase_end();
        if (!done || (!entry.stores_zeroes && std::memcmp(before, page, page_bytes) == 0)) {
            std::printf("%s: %s\n", entry.name, done ? "stored nothing" : std::strerror(error));
            ++failed;
        }
    }
    sp_fase_begin();
    state.filled = true;
    sp_mark_written(&state, sizeof state);
    sp_fase_end();
    return failed;
}

int verify(const State& state)
{
    int lost = 0;
    for (const Entry& entry : entries) {
        if (const char* const page = page_of(state, entry); std::memcmp(page, page + page_bytes, page_bytes) != 0) {
            std::printf("%s: lost\n", entry.name);
            ++lost;
        }
    }
    std::printf("%zu calls\n", std::size(entries));
    return lost == 0 ? 0 : 1;
}

}  // namespace

int main()
{
    auto* const state = static_cast<State*>(sp_root("kernel stores", sizeof(State)));
    if (state == nullptr) {
        std::fprintf(stderr, "kernel_stores: %s\n", sp_last_error());
        return 2;
    }
    if (state->filled) {
        return verify(*state);
    }
    make(*state);
    if (sp_checkpoint() != SP_OK || fill(*state) != 0 || sp_checkpoint() != SP_OK) {
        return 1;
    }
    std::fflush(stdout);
    return raise(SIGKILL);
}
