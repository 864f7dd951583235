#include "media/pool_file_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "media/errno_text.hpp"
#include "media/open.hpp"
#include "media/write_turns.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/file_lock.hpp"
#include "os/paused_process.hpp"

namespace stillpoint {

namespace {

constexpr unsigned passes_before_last_max = 6;
constexpr std::uint64_t few_bytes = 8 * mib;
constexpr std::size_t late_bytes_max = 64 * mib;  ///< changed bytes of the last pass that are written after the hold
constexpr unsigned attempts_max = 5;              ///< at a last pass
constexpr unsigned attempts_of_starting_max = 20;
constexpr timespec pause_between_attempts{0, 100'000'000};

/// One copy: the state that its steps share.
class Copying {
public:
    Copying(const std::string& path, CopiedFile& copy, const PoolFileCopyOptions& options)
        : path_(path), copy_(copy), options_(options), limit_ns_(std::min(options.hold_limit_ns, hold_limit_ns_max))
    {
    }

    Result<PoolFileCopyFigures> run();

private:
    Result<void> open_source();
    /// True: no process has the pool open, nor can open it for writing from here on.
    Result<bool> try_lock();
    Result<void> copy_at_rest();
    Result<void> copy_in_use();
    Result<void> approach();
    Result<bool> take_last_pass();
    Result<bool> take_last_pass_in_hold();
    Result<bool> take_last_pass_in_pause();
    Result<bool> take_limited_pass();
    /// No other process has opened the pool meanwhile: that changes the superblocks.
    Result<bool> head_is_as_copied() const;
    Result<CopiedFile::Pass> take_pass(CopyPermission permission, std::size_t late);
    /// A program that is just starting honours holds a moment later; one that is ending lets the lock go: true.
    Result<bool> await_honour_or_end();
    Result<void> cannot_hold() const;
    [[nodiscard]] std::uint64_t now_held_ns() const noexcept { return os::monotonic_ns() - held_since_ns_; }

    const std::string& path_;
    CopiedFile& copy_;
    const PoolFileCopyOptions& options_;
    std::uint64_t limit_ns_;
    std::uint64_t held_since_ns_ = 0;
    os::Descriptor source_;
    PoolFileCopyFigures figures_;
};

Result<void> Copying::open_source()
{
    struct stat facts{};
    int error = stat(path_.c_str(), &facts) == 0 ? 0 : errno;
    if (error == 0 && !S_ISREG(facts.st_mode)) {
        return fail(SP_E_NOT_A_POOL, 0, "{} is not a regular file; name a pool file", path_);
    }
    if (error == 0) {
        source_ = os::Descriptor{open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
        error = source_.valid() ? 0 : errno;
        posix_fadvise(source_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    if (error != 0) {
        const sp_error code = code_of_errno(error);
        return fail(code, error, "cannot open {}: {}; {}", path_, describe_errno(error), advice_for(code));
    }
    return {};
}

Result<bool> Copying::try_lock()
{
    int holder = 0;  // A process that was killed holds the lock until its last writes have ended: lock_file() waits for that.
    const int error = os::lock_file(source_.get(), os::LockKind::shared, path_, holder);
    if (error == EWOULDBLOCK) {
        return false;
    }
    if (error != 0) {
        return fail(SP_E_IO, error, "cannot lock {}: {}; use a file system that has locks", path_, describe_errno(error));
    }
    if (os::await_queued_writes(source_.get()) != 0) {
        return fail(SP_E_POOL_LOCKED, 0,
                    "{}: writes of a process that was killed are still on their way to the disk; try again later, or see the kernel's "
                    "log (dmesg) for the device",
                    path_);
    }
    return true;
}

Result<PoolFileCopyFigures> Copying::run()
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    if (auto opened = open_source(); !opened) {
        return pass_on(opened.error());
    }
    const auto at_rest = try_lock();
    if (!at_rest) {
        return pass_on(at_rest.error());
    }
    const auto done = *at_rest ? copy_at_rest() : copy_in_use();
    if (!done) {
        return pass_on(done.error());
    }
    figures_.elapsed_ns = os::monotonic_ns() - begun_ns;
    return figures_;
}

Result<CopiedFile::Pass> Copying::take_pass(CopyPermission permission, std::size_t late)
{
    ++figures_.passes;
    auto pass = copy_.take_pass(source_.get(), path_, options_.progress, permission, late);
    if (pass) {
        figures_.bytes_read += pass->bytes_read;
        figures_.bytes_written += pass->bytes_changed;
        figures_.bytes_in_last_pass = pass->bytes_changed;
    }
    return pass;
}

Result<void> Copying::copy_at_rest()
{
    const auto pass = take_pass({}, 0);
    return pass ? Result<void>{} : Result<void>{pass_on(pass.error())};
}

Result<bool> Copying::await_honour_or_end()
{
    for (unsigned attempt = 0; !options_.may_pause && !WriteHold::is_honoured(source_.get()); ++attempt) {
        if (attempt == attempts_of_starting_max) {
            return pass_on(cannot_hold().error());
        }
        nanosleep(&pause_between_attempts, nullptr);
        auto at_rest = try_lock();
        if (!at_rest || *at_rest) {
            return at_rest;
        }
    }
    return false;
}

Result<void> Copying::cannot_hold() const
{
    return fail(SP_E_POOL_LOCKED, 0,
                "{} is open in process {}, which cannot hold its writes back for a copy (its engine stores into the file itself, or its "
                "library is an older one): stop it, or use --pause, which stops it by SIGSTOP for the last part of the copy",
                path_, figures_.process);
}

Result<void> Copying::copy_in_use()
{
    figures_.was_in_use = true;
    figures_.process = os::exclusive_lock_holder(path_);
    const auto ended = await_honour_or_end();
    if (!ended) {
        return pass_on(ended.error());
    }
    if (*ended) {
        return copy_at_rest();
    }
    if (auto near = approach(); !near) {
        return near;
    }
    for (unsigned attempt = 0; attempt < attempts_max; ++attempt) {
        const auto at_rest = try_lock();
        if (!at_rest) {
            return pass_on(at_rest.error());
        }
        if (*at_rest) {
            return copy_at_rest();  // The program has ended.
        }
        const auto done = take_last_pass();
        if (!done || *done) {
            return done ? Result<void>{} : Result<void>{pass_on(done.error())};
        }
        nanosleep(&pause_between_attempts, nullptr);
    }
    return fail(SP_E_TIMED_OUT, 0,
                "{}: {} attempts to copy it in one piece took longer than {} ms each, for which the program's writes may be held; allow "
                "more (--hold-max), or copy it when the program writes less, or has ended",
                path_, attempts_max, limit_ns_ / 1'000'000);
}

/// Passes while the program writes, until what it changes meanwhile is little or does not get less.
Result<void> Copying::approach()
{
    std::uint64_t changed_before = UINT64_MAX;
    for (unsigned count = 0; count < passes_before_last_max; ++count) {
        const auto pass = take_pass({}, 0);
        if (!pass) {
            return pass_on(pass.error());
        }
        if (auto synced = copy_.sync(); !synced) {  // So that the last pass finds room in the page cache.
            return synced;
        }
        if (pass->bytes_changed <= few_bytes || pass->bytes_changed > changed_before / 4 * 3) {
            break;
        }
        changed_before = pass->bytes_changed;
    }
    return {};
}

/// False: it did not succeed, and may be tried again.
Result<bool> Copying::take_last_pass()
{
    figures_.process = os::exclusive_lock_holder(path_);
    if (WriteHold::is_honoured(source_.get())) {
        return take_last_pass_in_hold();
    }
    if (options_.may_pause) {
        return take_last_pass_in_pause();
    }
    // A program that starts does not honour holds yet; one that has just ended does not either.
    return false;
}

Result<bool> Copying::take_last_pass_in_hold()
{
    WriteHold hold(source_.get());
    if (!hold.take(limit_ns_)) {
        return false;
    }
    held_since_ns_ = os::monotonic_ns();
    auto done = take_limited_pass();
    // Time is what tells whether the hold was honoured to the end: write_turns.hpp.
    const bool was_honoured = hold.held_ns() < hold_max_ns;
    hold.release();
    if (done && *done) {
        figures_.held_ns = now_held_ns();
        done = was_honoured;
    }
    return done;
}

Result<bool> Copying::take_last_pass_in_pause()
{
    if (figures_.process == 0) {
        return fail(SP_E_POOL_LOCKED, 0, "{} is open in a process that cannot be seen from here (another container?); stop it first",
                    path_);
    }
    os::PausedProcess paused;
    held_since_ns_ = os::monotonic_ns();
    const int error = paused.pause(figures_.process, limit_ns_ + 500'000'000);
    if (error == ESRCH) {
        return false;
    }
    if (error != 0) {
        return fail(error == EPERM ? SP_E_POOL_READ_ONLY : SP_E_POOL_LOCKED, error, "cannot pause process {}, which has {} open: {}",
                    figures_.process, path_,
                    error == EBUSY ? "it is stopped by another, or does not come to a stop" : describe_errno(error));
    }
    auto done = take_limited_pass();
    const bool stood_still = paused.stands();
    paused.go_on();
    if (done && *done) {
        figures_.held_ns = now_held_ns();
        figures_.was_paused = true;
        done = stood_still;
    }
    return done;
}

Result<bool> Copying::take_limited_pass()
{
    const CopyPermission permission{[](void* self) {
                                        auto& here = *static_cast<Copying*>(self);
                                        return here.now_held_ns() < here.limit_ns_;
                                    },
                                    this};
    const auto pass = take_pass(permission, late_bytes_max);
    if (!pass && pass.error().code == SP_E_TIMED_OUT) {
        return false;
    }
    if (!pass) {
        return pass_on(pass.error());
    }
    return head_is_as_copied();
}

Result<bool> Copying::head_is_as_copied() const
{
    std::vector<std::byte> now(copy_.head_bytes());
    const ssize_t got = pread(source_.get(), now.data(), now.size(), 0);
    if (got < 0) {
        return fail(SP_E_IO, errno, "cannot read {}: {}", path_, describe_errno(errno));
    }
    return static_cast<std::size_t>(got) == now.size() && std::memcmp(now.data(), copy_.head(), now.size()) == 0;
}

}  // namespace

std::string unfinished_name(const std::string& path) { return path + ".partial"; }

unsigned mode_of(const std::string& path)
{
    struct stat facts{};
    return stat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777U : 0600U;
}

Result<PoolFileCopyFigures> copy_pool_file(const std::string& path, CopiedFile& copy, const PoolFileCopyOptions& options)
{
    if (lies_in_no_file(path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: a pool in Ceph is copied by `stillpoint copy`, while no program has it open", path);
    }
    auto figures = Copying(path, copy, options).run();
    if (figures) {
        if (auto written = copy.write_late(); !written) {
            return pass_on(written.error());
        }
    }
    return figures;
}

}  // namespace stillpoint
