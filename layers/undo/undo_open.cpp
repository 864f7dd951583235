// Opening a pool: making it, checking it, mapping it at its address, and undoing what a crash left.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "undo_machine.hpp"
#include "undo_runtime.hpp"

namespace stillpoint::undo {

constinit Runtime runtime;

namespace {

thread_local char message[4096 + 512];
int pool_file = -1;

constexpr std::uint64_t size_min = 1u << 20;
constexpr std::uint64_t size_max = std::uint64_t{1} << UNDO_WINDOW_SHIFT;

int fail_system(const char* what, const char* path) noexcept
{
    const int code = errno;
    std::snprintf(message, sizeof message, "%s: %s: %s", path, what, std::strerror(code));
    errno = code;
    return code;
}

/// Gives the file its space, and 0 or an errno. Beyond the limit of file sizes (ulimit -f) that is EFBIG, and not the end of the program.
int allocate(int file, std::uint64_t size_bytes) noexcept
{
    sigset_t size_signal;
    sigset_t mask_before;
    sigemptyset(&size_signal);
    sigaddset(&size_signal, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size_signal, &mask_before);
    const int error = posix_fallocate(file, 0, static_cast<off_t>(size_bytes));
    if (error == EFBIG) {
        const timespec at_once{};
        sigtimedwait(&size_signal, nullptr, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
    return error;
}

/// Writes a whole new pool beside `path` and gives it that name when it is on the disk: a crash leaves a pool, or none.
int make_pool(const char* path, std::uint64_t size_bytes) noexcept
{
    if (size_bytes < size_min || size_bytes > size_max) {
        return fail(EINVAL, "a pool has 1 MiB to 1 TiB", path);
    }
    char unnamed[4096];
    if (std::snprintf(unnamed, sizeof unnamed, "%s.%ld.new", path, static_cast<long>(getpid())) >= static_cast<int>(sizeof unnamed)) {
        return fail(ENAMETOOLONG, "the path is too long", path);
    }
    const int file = ::open(unnamed, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        return fail_system("the new pool cannot be made", unnamed);
    }
    Header header{};
    header.geometry = Pool::plan(size_bytes);
    header.variables.run = 2;
    // Allocated now: a store into a hole of a full file system would be a SIGBUS.
    errno = allocate(file, header.geometry.size_bytes);
    const bool made = errno == 0 && pwrite(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) && fsync(file) == 0 &&
                      link(unnamed, path) == 0;
    const int code = made ? 0 : fail_system("the new pool cannot be written", path);
    unlink(unnamed);
    ::close(file);
    return code;
}

int map_pool(const char* path, std::uint64_t size_bytes) noexcept
{
    const auto wanted = reinterpret_cast<void*>(UNDO_WINDOW_BASE);
    constexpr int protection = PROT_READ | PROT_WRITE;
    void* found = mmap(wanted, size_bytes, protection, MAP_SHARED_VALIDATE | MAP_SYNC | MAP_FIXED_NOREPLACE, pool_file, 0);
    runtime.direct = found != MAP_FAILED;
    if (!runtime.direct && (errno == EOPNOTSUPP || errno == EINVAL)) {
        found = mmap(wanted, size_bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, pool_file, 0);
    }
    if (found == MAP_FAILED) {
        return errno == EEXIST ? fail(EEXIST, "the window of durable addresses is taken by another mapping of this process", path)
                               : fail_system("the pool cannot be mapped", path);
    }
    if (found != wanted) {  // a kernel without MAP_FIXED_NOREPLACE
        munmap(found, size_bytes);
        return fail(EEXIST, "the window of durable addresses is taken by another mapping of this process", path);
    }
    // A child that went on with its parent's log would destroy it.
    (void)madvise(wanted, size_bytes, MADV_DONTFORK);
    runtime.pool = Pool(static_cast<std::byte*>(wanted));
    return 0;
}

/// The size of the file if it is a pool; 0 and a failure if not.
std::uint64_t check_file(const char* path, int& code) noexcept
{
    struct stat facts;
    Header header;
    if (fstat(pool_file, &facts) != 0) {
        code = fail_system("the file's size cannot be read", path);
        return 0;
    }
    const ssize_t got = pread(pool_file, &header, sizeof header, 0);
    const char* wrong = got != static_cast<ssize_t>(sizeof header) ? "not a pool of the layer undo"
                                                                   : Pool::check(header, static_cast<std::uint64_t>(facts.st_size));
    code = wrong != nullptr ? fail(EINVAL, wrong, path) : 0;
    return wrong != nullptr ? 0 : static_cast<std::uint64_t>(facts.st_size);
}

int recover_pool(const char* path) noexcept
{
    const char* wrong = runtime.pool.recover();
    wrong = wrong != nullptr ? wrong : runtime.pool.check_contents();
    if (wrong != nullptr) {
        return fail(EINVAL, wrong, path);
    }
    if (!runtime.chunks.open(runtime.pool)) {
        return fail(ENOMEM, "no memory for the table of chunks", path);
    }
    std::uint64_t& run = runtime.pool.variables().run;
    run += 2;
    machine.write_back(&run);
    machine.fence();
    return 0;
}

int open_existing(const char* path) noexcept
{
    pool_file = ::open(path, O_RDWR | O_CLOEXEC);
    if (pool_file < 0) {
        return fail_system("the pool cannot be opened", path);
    }
    int code = 0;
    if (flock(pool_file, LOCK_EX | LOCK_NB) != 0) {
        code = errno == EWOULDBLOCK ? fail(EBUSY, "another process has the pool open", path)
                                    : fail_system("the pool cannot be locked", path);
    }
    const std::uint64_t size_bytes = code == 0 ? check_file(path, code) : 0;
    code = code == 0 ? map_pool(path, size_bytes) : code;
    if (code == 0) {
        code = recover_pool(path);
        if (code != 0) {
            munmap(runtime.pool.at(0), size_bytes);
        }
    }
    if (code != 0) {
        ::close(pool_file);
        pool_file = -1;
    }
    return code;
}

}  // namespace

int fail(int code, const char* what, const char* path) noexcept
{
    std::snprintf(message, sizeof message, "%s%s%s", path != nullptr ? path : "", path != nullptr ? ": " : "", what);
    errno = code;
    return code;
}

}  // namespace stillpoint::undo

using namespace stillpoint::undo;

extern "C" {

int undo_open(const char* path, std::size_t size_bytes)
{
    if (runtime.open) {
        return fail(EBUSY, "this process has a pool open already", path);
    }
    if (access(path, F_OK) != 0) {
        const int code = make_pool(path, size_bytes);
        if (code != 0 && code != EEXIST) {
            return code;
        }
    }
    const int code = open_existing(path);
    if (code == 0) {
        runtime.opening += 1;
        runtime.open = true;
    }
    return code;
}

void undo_close(void)
{
    if (!runtime.open) {
        return;
    }
    runtime.open = false;
    runtime.opening += 1;
    runtime.chunks.close();
    munmap(runtime.pool.at(0), runtime.pool.geometry().size_bytes);
    ::close(pool_file);
    pool_file = -1;
}

const char* undo_durability(void) { return !runtime.open ? "none" : runtime.direct ? "power" : "process"; }

const char* undo_error(void) { return message; }

}  // extern "C"
