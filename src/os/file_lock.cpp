#include "os/file_lock.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/descriptor.hpp"

namespace stillpoint::os {

int try_lock_file(int fd, LockKind kind) noexcept
{
    const int operation = (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    while (flock(fd, operation) != 0) {
        if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

namespace {

/// The pid of one line of /proc/locks if it is an exclusive flock on `file`, otherwise 0.
/// "1: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF"; device numbers are hexadecimal. Lines with
/// "->" are waiters, not holders, and do not match.
int holder_in_line(const char* line, const struct stat& file) noexcept
{
    int pid = 0;
    unsigned device_major = 0;
    unsigned device_minor = 0;
    unsigned long long inode = 0;
    char mode[8] = {};
    if (std::sscanf(line, "%*d: FLOCK %*s %7s %d %x:%x:%llu", mode, &pid, &device_major, &device_minor, &inode) != 5 ||
        std::strcmp(mode, "WRITE") != 0 || pid <= 0) {
        return 0;
    }
    const bool same = device_major == major(file.st_dev) && device_minor == minor(file.st_dev) && inode == file.st_ino;
    return same ? pid : 0;
}

/// A reading during which the list changed may have missed a lock; few do, even where locks come and go all the time.
constexpr int readings_of_a_changing_list = 32;

/// Reads the whole of /proc/locks without malloc. The kernel gives it a page at a time and counts its
/// lines again for each, so where a lock ends between two pages, another one moves into what was read already.
/// Each page therefore begins with the last line of the page before: where that is still the same, with
/// its number, every lock that stayed behind it is still to come. Where it is not, `changed` is set.
int holder_in_list(int locks, const struct stat& file, bool& changed) noexcept
{
    std::array<char, 4096> text{};
    std::array<char, 4096> last_line{};
    off_t next = 0;
    for (;;) {
        const ssize_t got = pread(locks, text.data(), text.size() - 1, next);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            changed = changed || (got == 0 && next != 0);  // The last line is no longer there.
            return 0;
        }
        text[static_cast<std::size_t>(got)] = '\0';
        char* last = text.data();
        for (char* line = text.data(); char* const line_end = std::strchr(line, '\n'); line = line_end + 1) {
            *line_end = '\0';
            if (const int pid = holder_in_line(line, file); pid != 0) {
                return pid;
            }
            if (line == text.data() && next != 0 && std::strcmp(line, last_line.data()) != 0) {
                changed = true;
            }
            last = line;
        }
        if (last == text.data()) {
            return 0;  // The last line alone: the list is at its end.
        }
        std::strcpy(last_line.data(), last);
        next += last - text.data();
    }
}

/// True for a process that was killed and not yet waited for, too.
bool has_ended(int pid) noexcept
{
    if (kill(pid, 0) != 0 && errno == ESRCH) {
        return true;
    }
    std::array<char, 32> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
    const Descriptor status{open(path.data(), O_RDONLY | O_CLOEXEC)};
    std::array<char, 256> text{};
    if (!status.valid() || read(status.get(), text.data(), text.size() - 1) <= 0) {
        return false;
    }
    // "pid (name) state …": the name may hold anything, so the state is after the last parenthesis.
    const char* const end_of_name = std::strrchr(text.data(), ')');
    return end_of_name != nullptr && (end_of_name[2] == 'Z' || end_of_name[2] == 'X');
}

constexpr int attempts_for_unknown = 200;  ///< two seconds
constexpr int attempts_for_dead = 3000;    ///< thirty
constexpr timespec pause_between_tries{0, 10'000'000};

/// One byte far behind the end of any file: it keeps clear of locks that others may take on real bytes.
struct flock queued_writes_mark() noexcept
{
    struct flock mark{};
    mark.l_type = F_WRLCK;
    mark.l_whence = SEEK_SET;
    mark.l_start = off_t{1} << 62;
    mark.l_len = 1;
    return mark;
}

}  // namespace

int mark_queued_writes(int fd) noexcept
{
    struct flock mark = queued_writes_mark();
    return fcntl(fd, F_OFD_SETLK, &mark) == 0 ? 0 : errno;
}

int await_queued_writes(int fd) noexcept
{
    for (int attempt = 0; attempt < attempts_for_dead; ++attempt) {
        struct flock mark = queued_writes_mark();
        if (fcntl(fd, F_OFD_GETLK, &mark) != 0 || mark.l_type == F_UNLCK) {
            return 0;
        }
        nanosleep(&pause_between_tries, nullptr);
    }
    return ETIMEDOUT;
}

int lock_file(int fd, LockKind kind, const std::string& path, int& holder) noexcept
{
    int error = 0;
    for (int attempt = 0; attempt < (holder != 0 ? attempts_for_dead : attempts_for_unknown); ++attempt) {
        error = try_lock_file(fd, kind);
        if (error != EWOULDBLOCK) {
            return error;
        }
        holder = exclusive_lock_holder(path);
        if (holder != 0 && !has_ended(holder)) {
            return error;
        }
        nanosleep(&pause_between_tries, nullptr);
    }
    return error;
}

int exclusive_lock_holder(const std::string& path) noexcept
{
    struct stat file{};
    if (stat(path.c_str(), &file) != 0) {
        return 0;
    }
    const Descriptor locks{open("/proc/locks", O_RDONLY | O_CLOEXEC)};
    if (!locks.valid()) {
        return 0;
    }
    for (int attempt = 0; attempt < readings_of_a_changing_list; ++attempt) {
        bool changed = false;
        const int holder = holder_in_list(locks.get(), file, changed);
        if (holder != 0 || !changed) {
            return holder;
        }
    }
    return 0;
}

}  // namespace stillpoint::os
