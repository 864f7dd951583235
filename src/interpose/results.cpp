// Calls whose results the kernel stores where the caller says: facts of files, names, options, events, states of children. As io.cpp, for
// calls that fill one structure or text. What such a call may have stored to counts as written whatever it returns.

#include <algorithm>
#include <cstdarg>
#include <mqueue.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "core/sanitizers.hpp"
#include "interpose/event_bytes.hpp"
#include "interpose/real.hpp"
#include "runtime/kernel_call.hpp"

// Functions that programs built with _FORTIFY_SOURCE call; headers declare these only there.
extern "C" {
int __poll_chk(pollfd* files, nfds_t count, int limit_ms, size_t files_bytes);
char* __getcwd_chk(char* path, size_t size, size_t path_bytes) noexcept;
ssize_t __readlink_chk(const char* path, char* target, size_t size, size_t target_bytes) noexcept;
ssize_t __readlinkat_chk(int folder, const char* path, char* target, size_t size, size_t target_bytes) noexcept;
}

namespace {

using stillpoint::KernelCall;

/// `real(arguments...)` fills `bytes` from `result` on.
template <class Real, class... Arguments>
[[gnu::always_inline]] inline auto fills_bytes(void* result, std::size_t bytes, Real real, Arguments... arguments)
{
    const KernelCall call(result, bytes);
    return real(arguments...);
}

/// A call that fills one `Result`, or nothing where that is nullptr.
template <class Result, class Real, class... Arguments>
[[gnu::always_inline]] inline auto fills(Result* result, Real real, Arguments... arguments)
{
    return fills_bytes(result, sizeof *result, real, arguments...);
}

/// A call that fills an address of a socket, and says how long that is.
template <class Real, class... Arguments>
[[gnu::always_inline]] inline int fills_address(sockaddr* address, socklen_t* bytes, Real real, Arguments... arguments)
{
    const KernelCall of_address(address, address != nullptr && bytes != nullptr ? *bytes : 0);
    return fills(bytes, real, arguments...);
}

template <class Files, class Real, class... Arguments>
[[gnu::always_inline]] inline int fills_events(pollfd* files, Files count, Real real, Arguments... arguments)
{
    return fills_bytes(files, count * sizeof *files, real, arguments...);
}

/// Two places in files, each of which the kernel moves on where it is given.
template <class Real, class... Arguments>
[[gnu::always_inline]] inline ssize_t moves(off64_t* from, off64_t* to, Real real, Arguments... arguments)
{
    const KernelCall of_first(from, sizeof *from);
    return fills(to, real, arguments...);
}

/// The largest store of a request of ioctl or fcntl, as far as its number says; older numbers do not say.
constexpr std::size_t old_request_bytes = 256;

}  // namespace

// -- Files --------------------------------------------------------------------------------------

SHIM int stat(const char* path, struct stat* facts) noexcept { return fills(facts, REAL(stat), path, facts); }
SHIM int stat64(const char* path, struct stat64* facts) noexcept { return fills(facts, REAL(stat64), path, facts); }
SHIM int lstat(const char* path, struct stat* facts) noexcept { return fills(facts, REAL(lstat), path, facts); }
SHIM int lstat64(const char* path, struct stat64* facts) noexcept { return fills(facts, REAL(lstat64), path, facts); }
SHIM int fstat(int file, struct stat* facts) noexcept { return fills(facts, REAL(fstat), file, facts); }
SHIM int fstat64(int file, struct stat64* facts) noexcept { return fills(facts, REAL(fstat64), file, facts); }

SHIM int fstatat(int folder, const char* path, struct stat* facts, int flags) noexcept
{
    return fills(facts, REAL(fstatat), folder, path, facts, flags);
}

SHIM int fstatat64(int folder, const char* path, struct stat64* facts, int flags) noexcept
{
    return fills(facts, REAL(fstatat64), folder, path, facts, flags);
}

SHIM int statx(int folder, const char* path, int flags, unsigned mask, struct statx* facts) noexcept
{
    return fills(facts, REAL(statx), folder, path, flags, mask, facts);
}

SHIM int statfs(const char* path, struct statfs* facts) noexcept { return fills(facts, REAL(statfs), path, facts); }
SHIM int statfs64(const char* path, struct statfs64* facts) noexcept { return fills(facts, REAL(statfs64), path, facts); }
SHIM int fstatfs(int file, struct statfs* facts) noexcept { return fills(facts, REAL(fstatfs), file, facts); }
SHIM int fstatfs64(int file, struct statfs64* facts) noexcept { return fills(facts, REAL(fstatfs64), file, facts); }

SHIM char* getcwd(char* path, size_t size) noexcept { return fills_bytes(path, size, REAL(getcwd), path, size); }

SHIM char* __getcwd_chk(char* path, size_t size, size_t path_bytes) noexcept
{
    return fills_bytes(path, std::min(size, path_bytes), REAL(__getcwd_chk), path, size, path_bytes);
}

SHIM ssize_t readlink(const char* path, char* target, size_t size) noexcept
{
    return fills_bytes(target, size, REAL(readlink), path, target, size);
}

SHIM ssize_t readlinkat(int folder, const char* path, char* target, size_t size) noexcept
{
    return fills_bytes(target, size, REAL(readlinkat), folder, path, target, size);
}

SHIM ssize_t __readlink_chk(const char* path, char* target, size_t size, size_t target_bytes) noexcept
{
    return fills_bytes(target, std::min(size, target_bytes), REAL(__readlink_chk), path, target, size, target_bytes);
}

SHIM ssize_t __readlinkat_chk(int folder, const char* path, char* target, size_t size, size_t target_bytes) noexcept
{
    return fills_bytes(target, std::min(size, target_bytes), REAL(__readlinkat_chk), folder, path, target, size, target_bytes);
}

SHIM ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept
{
    return fills_bytes(value, size, REAL(getxattr), path, name, value, size);
}

SHIM ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) noexcept
{
    return fills_bytes(value, size, REAL(lgetxattr), path, name, value, size);
}

SHIM ssize_t fgetxattr(int file, const char* name, void* value, size_t size) noexcept
{
    return fills_bytes(value, size, REAL(fgetxattr), file, name, value, size);
}

SHIM ssize_t getdents64(int folder, void* entries, size_t size) noexcept
{
    return fills_bytes(entries, size, REAL(getdents64), folder, entries, size);
}

SHIM ssize_t sendfile(int to, int from, off_t* offset, size_t size) noexcept
{
    return fills(offset, REAL(sendfile), to, from, offset, size);
}

SHIM ssize_t sendfile64(int to, int from, off64_t* offset, size_t size) noexcept
{
    return fills(offset, REAL(sendfile64), to, from, offset, size);
}

SHIM ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size, unsigned flags)
{
    return moves(from_offset, to_offset, REAL(splice), from, from_offset, to, to_offset, size, flags);
}

SHIM ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size, unsigned flags)
{
    return moves(from_offset, to_offset, REAL(copy_file_range), from, from_offset, to, to_offset, size, flags);
}

// -- Descriptors --------------------------------------------------------------------------------

SHIM int pipe(int* ends) noexcept { return fills_bytes(ends, 2 * sizeof *ends, REAL(pipe), ends); }
SHIM int pipe2(int* ends, int flags) noexcept { return fills_bytes(ends, 2 * sizeof *ends, REAL(pipe2), ends, flags); }

SHIM int socketpair(int domain, int type, int protocol, int* ends) noexcept
{
    return fills_bytes(ends, 2 * sizeof *ends, REAL(socketpair), domain, type, protocol, ends);
}

SHIM int accept(int file, sockaddr* address, socklen_t* bytes) { return fills_address(address, bytes, REAL(accept), file, address, bytes); }

SHIM int accept4(int file, sockaddr* address, socklen_t* bytes, int flags)
{
    return fills_address(address, bytes, REAL(accept4), file, address, bytes, flags);
}

SHIM int getsockname(int file, sockaddr* address, socklen_t* bytes) noexcept
{
    return fills_address(address, bytes, REAL(getsockname), file, address, bytes);
}

SHIM int getpeername(int file, sockaddr* address, socklen_t* bytes) noexcept
{
    return fills_address(address, bytes, REAL(getpeername), file, address, bytes);
}

/// TCP_ZEROCOPY_RECEIVE copies what does not fill pages to a buffer that its argument names.
[[nodiscard]] static iovec copied_by_zero_copy(int level, int option, const void* value, const socklen_t* bytes) noexcept
{
    // The kernel's tcp_zerocopy_receive, linux/tcp.h, which cannot be included beside netinet/tcp.h.
    struct ZeroCopy {
        std::uint64_t address;
        std::uint32_t length, skip_hint, inq;
        std::int32_t error;
        std::uint64_t copy_address;
        std::int32_t copy_bytes;
    } wanted{};
    constexpr int zero_copy_receive = 35;
    if (level != IPPROTO_TCP || option != zero_copy_receive || value == nullptr || bytes == nullptr || *bytes < sizeof wanted) {
        return {};
    }
    std::memcpy(&wanted, value, sizeof wanted);
    return {reinterpret_cast<void*>(wanted.copy_address), static_cast<std::size_t>(std::max(wanted.copy_bytes, 0))};
}

SHIM int getsockopt(int file, int level, int option, void* value, socklen_t* bytes) noexcept
{
    const KernelCall of_value(value, bytes != nullptr ? *bytes : 0);
    const iovec copied = copied_by_zero_copy(level, option, value, bytes);
    const KernelCall of_copied(copied.iov_base, copied.iov_len);
    return fills(bytes, REAL(getsockopt), file, level, option, value, bytes);
}

SHIM int ioctl(int file, unsigned long request, ...) noexcept
{
    va_list passed;
    va_start(passed, request);
    void* const argument = va_arg(passed, void*);
    va_end(passed);
    return fills_bytes(argument, std::max<std::size_t>(_IOC_SIZE(request), old_request_bytes), REAL(ioctl), file, request, argument);
}

SHIM int fcntl(int file, int request, ...)
{
    va_list passed;
    va_start(passed, request);
    void* const argument = va_arg(passed, void*);
    va_end(passed);
    return fills_bytes(argument, old_request_bytes, REAL(fcntl), file, request, argument);
}

SHIM int fcntl64(int file, int request, ...)
{
    va_list passed;
    va_start(passed, request);
    void* const argument = va_arg(passed, void*);
    va_end(passed);
    return fills_bytes(argument, old_request_bytes, REAL(fcntl64), file, request, argument);
}

// -- Events and messages ------------------------------------------------------------------------

SHIM int poll(pollfd* files, nfds_t count, int limit_ms) { return fills_events(files, count, REAL(poll), files, count, limit_ms); }

SHIM int __poll_chk(pollfd* files, nfds_t count, int limit_ms, size_t files_bytes)
{
    return fills_events(files, count, REAL(__poll_chk), files, count, limit_ms, files_bytes);
}

SHIM int select(int count, fd_set* read_set, fd_set* write_set, fd_set* error_set, timeval* limit)
{
    const KernelCall of_reads(read_set, stillpoint::fd_set_bytes(count));
    const KernelCall of_writes(write_set, stillpoint::fd_set_bytes(count));
    const KernelCall of_errors(error_set, stillpoint::fd_set_bytes(count));
    return fills(limit, REAL(select), count, read_set, write_set, error_set, limit);
}

SHIM int epoll_wait(int file, epoll_event* events, int capacity, int limit_ms)
{
    return fills_bytes(events, stillpoint::events_bytes(capacity), REAL(epoll_wait), file, events, capacity, limit_ms);
}

SHIM int eventfd_read(int file, eventfd_t* value) { return fills(value, REAL(eventfd_read), file, value); }

SHIM ssize_t msgrcv(int queue, void* message, size_t size, long type, int flags)
{
    return fills_bytes(message, sizeof(long) + size, REAL(msgrcv), queue, message, size, type, flags);
}

SHIM ssize_t mq_receive(mqd_t queue, char* message, size_t size, unsigned* priority)
{
    const KernelCall of_message(message, size);
    return fills(priority, REAL(mq_receive), queue, message, size, priority);
}

SHIM ssize_t mq_timedreceive(mqd_t queue, char* message, size_t size, unsigned* priority, const timespec* deadline)
{
    const KernelCall of_message(message, size);
    return fills(priority, REAL(mq_timedreceive), queue, message, size, priority, deadline);
}

// -- Processes and the system -------------------------------------------------------------------

SHIM pid_t wait(int* state) { return fills(state, REAL(wait), state); }
SHIM pid_t waitpid(pid_t child, int* state, int flags) { return fills(state, REAL(waitpid), child, state, flags); }

SHIM pid_t wait4(pid_t child, int* state, int flags, rusage* usage) noexcept
{
    const KernelCall of_usage(usage, sizeof *usage);
    return fills(state, REAL(wait4), child, state, flags, usage);
}

SHIM int waitid(idtype_t which, id_t child, siginfo_t* facts, int flags) { return fills(facts, REAL(waitid), which, child, facts, flags); }

SHIM int getrusage(__rusage_who_t who, rusage* usage) noexcept { return fills(usage, REAL(getrusage), who, usage); }

// The sanitizers' runtimes ask for a limit before instrumented code can run.
#if !STILLPOINT_ADDRESS_SANITIZER && !STILLPOINT_THREAD_SANITIZER
SHIM int getrlimit(__rlimit_resource_t resource, rlimit* limits) noexcept { return fills(limits, REAL(getrlimit), resource, limits); }

SHIM int getrlimit64(__rlimit_resource_t resource, rlimit64* limits) noexcept { return fills(limits, REAL(getrlimit64), resource, limits); }
#endif

SHIM int prlimit(pid_t process, __rlimit_resource resource, const rlimit* wanted, rlimit* previous) noexcept
{
    return fills(previous, REAL(prlimit), process, resource, wanted, previous);
}

SHIM int prlimit64(pid_t process, __rlimit_resource resource, const rlimit64* wanted, rlimit64* previous) noexcept
{
    return fills(previous, REAL(prlimit64), process, resource, wanted, previous);
}

SHIM int uname(utsname* facts) noexcept { return fills(facts, REAL(uname), facts); }
SHIM int sysinfo(struct sysinfo* facts) noexcept { return fills(facts, REAL(sysinfo), facts); }
SHIM clock_t times(tms* ticks) noexcept { return fills(ticks, REAL(times), ticks); }
