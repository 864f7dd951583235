#include "media/pool_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/canary.hpp"
#include "core/units.hpp"
#include "media/errno_text.hpp"
#include "media/shared_folder.hpp"
#include "media/observer.hpp"
#include "os/file_lock.hpp"
#include "os/file_size_limit.hpp"

namespace stillpoint {

namespace {

constexpr unsigned retries_max = 1000;  ///< after EAGAIN: a file that stays busy is an error.

Result<FaultPlan> plan_of(const MediumOptions& options)
{
    return options.faults.empty() ? FaultPlan::from_environment() : FaultPlan::parse(options.faults);
}

bool cannot_allocate(int error) noexcept { return error == EOPNOTSUPP || error == ENOSYS; }

}  // namespace

Result<PoolFile> PoolFile::create(const MediumOptions& options, std::uint64_t size)
{
    if (size == 0 || size % page_bytes != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a pool file of {} bytes: must be whole pages of {}", size, page_bytes);
    }
    auto plan = plan_of(options);
    if (!plan) {
        return pass_on(plan.error());
    }
    PoolFile file;
    file.path_ = options.path;
    file.durability_ = options.durability;
    file.faults_ = *plan;
    file.open_directory();
    if (const int error = file.open_new(options.publish_later); error != 0) {
        if (error == EEXIST) {
            return fail(SP_E_POOL_EXISTS, error, "cannot create {}: the file exists already; open it, or remove it first", options.path);
        }
        const sp_error code = code_of_errno(error);
        return fail(code, error, "cannot create {}: {}; {}", options.path, describe_errno(error), advice_for_errno(error));
    }
    auto ready = file.lock_and_inspect();
    if (ready) {
        ready = file.allocate_new(size, file.room() == Room::in_memory ? options.without_room_in_memory : options.without_room);
    }
    if (!ready) {
        if (!file.unnamed_) {
            unlink(options.path.c_str());
        }
        return pass_on(ready.error());
    }
    file.size_bytes_ = size;
    observe(MediumEvent::resize, 0, nullptr, 0, size);
    if (!file.unnamed_) {
        observe(MediumEvent::name);
    }
    return file;
}

/// errno, or 0.
int PoolFile::open_new(bool unnamed) noexcept
{
    struct stat facts{};
    if (unnamed && lstat(path_.c_str(), &facts) == 0) {
        return EEXIST;  // publish() would refuse; this is sooner.
    }
    if (unnamed && directory_.valid()) {
        file_ = os::Descriptor{openat(directory_.get(), ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)};
        unnamed_ = file_.valid();
    }
    if (!unnamed_) {
        // O_EXCL also refuses a symbolic link, dangling or not: the creation cannot be redirected.
        file_ = os::Descriptor{::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    }
    return file_.valid() ? 0 : errno;
}

Result<void> PoolFile::publish()
{
    if (!unnamed_) {
        return {};
    }
    char own_name[32];
    *fmt::format_to_n(own_name, sizeof own_name - 1, "/proc/self/fd/{}", fd()).out = '\0';
    faults_.persist();
    if (linkat(AT_FDCWD, own_name, AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        const int error = errno;
        if (error == EEXIST) {
            return fail(SP_E_POOL_EXISTS, error, "cannot create {}: another process has just made it; start the program again", path_);
        }
        const sp_error code = code_of_errno(error);
        return fail(code, error, "cannot name the new pool {}: {}; {}", path_, describe_errno(error), advice_for(code));
    }
    unnamed_ = false;
    observe(MediumEvent::name);
    return sync_metadata();
}

Result<PoolFile> PoolFile::open(const MediumOptions& options, Access access)
{
    auto plan = plan_of(options);
    if (!plan) {
        return pass_on(plan.error());
    }
    PoolFile file;
    file.path_ = options.path;
    file.durability_ = options.durability;
    file.faults_ = *plan;
    file.access_ = access;
    const bool shared = access == Access::write && lies_in_shared_folder(options.path);
    // Looked at before it is opened, since opening a device or a FIFO can do something.
    struct stat facts{};
    int error = stat(options.path.c_str(), &facts) == 0 ? 0 : errno;
    if (error == 0 && !S_ISREG(facts.st_mode)) {
        return fail(SP_E_NOT_A_POOL, 0, "{} is not a regular file; name a pool file", options.path);
    }
    if (error == 0) {
        const int mode = (access == Access::write ? O_RDWR : O_RDONLY) | (shared ? O_NOFOLLOW : 0);
        file.file_ = os::Descriptor{::open(options.path.c_str(), mode | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
        error = file.file_.valid() ? 0 : errno;
        if (error == ELOOP && shared) {
            return fail(SP_E_POOL_READ_ONLY, error,
                        "{} is a symbolic link in a folder where every user may create files; name the pool file itself", options.path);
        }
    }
    if (error != 0) {
        const sp_error code = code_of_errno(error);
        return fail(code, error, "cannot open {}: {}; {}", options.path, describe_errno(error), advice_for(code));
    }
    if (auto ready = file.lock_and_inspect(); !ready) {
        return pass_on(ready.error());
    }
    if (shared) {
        if (fstat(file.fd(), &facts) != 0) {
            return fail(SP_E_IO, errno, "cannot inspect {}: {}", options.path, describe_errno(errno));
        }
        if (auto trusted = check_shared_file(options.path, facts); !trusted) {
            return pass_on(trusted.error());
        }
    }
    if (access == Access::write) {
        file.open_directory();
    }
    return file;
}

Result<void> PoolFile::lock_and_inspect()
{
    file_.claim();
    if (access_ != Access::read_unlocked) {
        const auto kind = access_ == Access::write ? os::LockKind::exclusive : os::LockKind::shared;
        int holder = 0;
        if (const int error = os::lock_file(fd(), kind, path_, holder); error == EWOULDBLOCK) {
            if (holder != 0) {
                return fail(SP_E_POOL_LOCKED, error, "{} is open in process {}; stop that process, or use another pool", path_, holder);
            }
            return fail(SP_E_POOL_LOCKED, error, "{} is open in another process; stop it, or use another pool", path_);
        } else if (error != 0) {
            return fail(SP_E_IO, error, "cannot lock {}: {}; use a file system that has locks", path_, describe_errno(error));
        }
        if (os::await_queued_writes(fd()) != 0) {
            return fail(SP_E_POOL_LOCKED, 0,
                        "{}: writes of a process that was killed are still on their way to the disk; try "
                        "again later, or see the kernel's log (dmesg) for the device",
                        path_);
        }
    }
    struct stat facts{};
    if (fstat(fd(), &facts) != 0) {
        return fail(SP_E_IO, errno, "cannot inspect {}: {}", path_, describe_errno(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        return fail(SP_E_NOT_A_POOL, 0, "{} is not a regular file; name a pool file", path_);
    }
    if (facts.st_nlink == 0 && !unnamed_) {  // Removed between open and lock.
        return fail(SP_E_POOL_MISSING, 0, "{} was removed while it was being opened; try again", path_);
    }
    size_bytes_ = static_cast<std::uint64_t>(facts.st_size);
    identity_ = {facts.st_dev, facts.st_ino};
    struct statfs system{};
    lives_in_memory_ = fstatfs(fd(), &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
    return {};
}

Result<void> PoolFile::grow(std::uint64_t size, std::uint64_t room_end)
{
    if (auto allowed = check_writable(); !allowed) {
        return allowed;
    }
    if (size < size_bytes_ || size % page_bytes != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} cannot be resized from {} to {} bytes", path_, size_bytes_, size);
    }
    if (size == size_bytes_) {
        return {};
    }
    if (auto intact = check_intact(); !intact) {
        return intact;
    }
    const std::uint64_t old_size = size_bytes_;
    if (auto allocated = allocate_tail({old_size, size}, std::clamp(room_end, old_size, size)); !allocated) {
        // Give back what a partial allocation took. If this fails too, the file is longer than
        // its owner says, which does no harm.
        const os::FileSizeSignalHeld held;
        [[maybe_unused]] const int ignored = ftruncate(fd(), static_cast<off_t>(old_size));
        return allocated;
    }
    size_bytes_ = size;
    observe(MediumEvent::resize, 0, nullptr, 0, size);
    if (is_removed(Canary::growth_sync)) {
        return {};
    }
    auto synced = sync();
    return synced ? Result<void>{} : Result<void>{pass_on(synced.error())};
}

int PoolFile::allocate_once(std::uint64_t begin, std::uint64_t size) noexcept
{
    faults_.persist();
    if (const Fault fault = faults_.next(FaultPoint::allocate)) {
        return fault.error;
    }
    const os::FileSizeSignalHeld held;
    return fallocate(fd(), 0, static_cast<off_t>(begin), static_cast<off_t>(size)) == 0 ? 0 : errno;
}

int PoolFile::reserve(FileRange range) noexcept
{
    int error = 0;
    unsigned tries = 0;
    do {
        error = allocate_once(range.begin, range.end - range.begin);
    } while (error == EINTR && ++tries < retries_max);
    return error;
}

Result<void> PoolFile::outcome_of_allocation(int error, FileRange range) const
{
    if (error == 0) {
        return {};
    }
    const sp_error code = code_of_errno(error);
    if (code == SP_E_NO_SPACE) {
        return fail(code, error, "no space for {} more bytes of {}: {}; {}, or choose a smaller pool", range.end - range.begin, path_,
                    describe_errno(error), advice_for_errno(error));
    }
    return fail(code, error, "cannot allocate bytes {} to {} of {}: {}; {}", range.begin, range.end, path_, describe_errno(error),
                advice_for(code));
}

/// Where the file system cannot allocate, nothing is left for later.
Result<void> PoolFile::allocate_new(std::uint64_t size, const TwoFileRanges& without_room)
{
    std::uint64_t begin = 0;
    for (const FileRange& left_out : without_room) {
        if (left_out.begin == left_out.end) {
            continue;
        }
        const FileRange range{begin, left_out.begin};
        const int error = range.begin == range.end ? 0 : reserve(range);
        if (cannot_allocate(error)) {
            return allocate_fresh({0, size});
        }
        if (error != 0) {
            return outcome_of_allocation(error, range);
        }
        begin = left_out.end;
    }
    return allocate_tail({begin, size}, size);  // The last bytes come last: they give the file its size.
}

Result<void> PoolFile::allocate_tail(FileRange range, std::uint64_t room_end)
{
    const FileRange with_room{range.begin, room_end};
    const int error = with_room.begin == with_room.end ? 0 : reserve(with_room);
    if (cannot_allocate(error)) {
        return outcome_of_allocation(fill_with_zeroes(range.begin, range.end), range);
    }
    const bool has_its_size = room_end == range.end && with_room.begin != with_room.end;
    if (error != 0 || has_its_size) {
        return outcome_of_allocation(error, with_room);
    }
    const os::FileSizeSignalHeld held;
    return outcome_of_allocation(ftruncate(fd(), static_cast<off_t>(range.end)) == 0 ? 0 : errno, range);
}

Result<void> PoolFile::allocate_fresh(FileRange range)
{
    int error = reserve(range);
    if (cannot_allocate(error)) {
        error = fill_with_zeroes(range.begin, range.end);
    }
    return outcome_of_allocation(error, range);
}

Result<void> PoolFile::allocate(FileRange range)
{
    const int error = reserve(range);
    return outcome_of_allocation(cannot_allocate(error) ? 0 : error, range);
}

void PoolFile::release(FileRange range) noexcept
{
    constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    static_cast<void>(fallocate(fd(), mode, static_cast<off_t>(range.begin), static_cast<off_t>(range.end - range.begin)));
}

int PoolFile::fill_with_zeroes(std::uint64_t begin, std::uint64_t end) noexcept
{
    static constexpr std::array<std::byte, 64 * kib> zeroes{};
    unsigned tries = 0;
    while (begin < end) {
        const iovec vector{const_cast<std::byte*>(zeroes.data()), std::min<std::uint64_t>(zeroes.size(), end - begin)};
        const ssize_t written = write_once(fd(), &vector, 1, begin);
        if (written < 0) {
            if ((errno == EINTR || errno == EAGAIN) && ++tries < retries_max) {
                continue;
            }
            return errno;
        }
        begin += static_cast<std::uint64_t>(written);
    }
    return 0;
}

Result<void> PoolFile::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    // The kernel's own read-ahead is too small for a table of megabytes on a fast disk.
    constexpr std::size_t large = mib;
    if (destination.size() >= large) {
        posix_fadvise(fd(), static_cast<off_t>(offset), static_cast<off_t>(destination.size()), POSIX_FADV_WILLNEED);
    }
    std::size_t done = 0;
    unsigned tries = 0;
    while (done < destination.size()) {
        const std::uint64_t at = offset + done;
        std::size_t wanted = destination.size() - done;
        const Fault fault = faults_.next(FaultPoint::read);
        if (fault.cut_short) {
            wanted = std::max<std::size_t>(wanted / 2, 1);
        }
        errno = fault.error;
        const ssize_t got = fault.error != 0 ? -1 : pread(fd(), destination.data() + done, wanted, static_cast<off_t>(at));
        if (got < 0) {
            const int error = errno;
            if ((error == EINTR || error == EAGAIN) && ++tries < retries_max) {
                continue;
            }
            return fail(SP_E_IO, error, "reading {} bytes at offset {} of {} failed: {}; {}", wanted, at, path_, describe_errno(error),
                        advice_for(SP_E_IO));
        }
        if (got == 0) {
            return fail(SP_E_POOL_TRUNCATED, 0,
                        "{} ends before offset {}: it was truncated, or copied incompletely; restore it "
                        "from a copy",
                        path_, at + wanted);
        }
        done += static_cast<std::size_t>(got);
    }
    return {};
}

ssize_t PoolFile::write_once(int descriptor, const iovec* vectors, int count, std::uint64_t offset) noexcept
{
    faults_.persist();
    const Fault fault = faults_.next(FaultPoint::write);
    if (fault.error != 0) {
        errno = fault.error;
        return -1;
    }
    const os::FileSizeSignalHeld held;
    if (fault.cut_short) {
        // Through the page cache, since half of a page suits no O_DIRECT descriptor.
        const iovec half{vectors->iov_base, std::max<std::size_t>(vectors->iov_len / 2, 1)};
        return pwritev(fd(), &half, 1, static_cast<off_t>(offset));
    }
    return pwritev(descriptor, vectors, count, static_cast<off_t>(offset));
}

Result<void> PoolFile::check_writable() const
{
    if (access_ != Access::write) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{} was opened for reading only", path_);
    }
    if (frozen_) {
        return fail(SP_E_POOL_READ_ONLY, 0,
                    "{} is read-only since an earlier write or sync failed; restart the program to "
                    "continue from its last durable state",
                    path_);
    }
    return {};
}

Result<void> PoolFile::check_range(std::uint64_t offset, std::uint64_t size) const
{
    if (offset % page_bytes != 0 || size % page_bytes != 0 || offset > size_bytes_ || size > size_bytes_ - offset) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a write of {} bytes at offset {} is not made of whole pages inside {} ({} bytes)", size,
                    offset, path_, size_bytes_);
    }
    return {};
}

tl::unexpected<Failure> PoolFile::fail_write(int error, std::uint64_t offset, std::uint64_t size) noexcept
{
    frozen_ = true;
    const sp_error code = code_of_errno(error) == SP_E_NO_SPACE ? SP_E_NO_SPACE : SP_E_IO;
    return fail(code, error,
                "writing {} bytes at offset {} of {} failed: {}; the pool is read-only from here on and "
                "its last durable state is intact; {}, then restart the program",
                size, offset, path_, describe_errno(error), code == SP_E_NO_SPACE ? advice_for_errno(error) : advice_for(code));
}

void PoolFile::detach_after_fork() noexcept
{
    turns_ = WriteTurns{};
    file_.reset();
    directory_.reset();
    access_ = Access::read_unlocked;
}

}  // namespace stillpoint
