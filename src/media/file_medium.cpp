#include "media/file_medium.hpp"

#include <cerrno>
#include <cstdlib>
#include <sched.h>

#include "os/log.hpp"

namespace stillpoint {

namespace {

constexpr unsigned retries_max = 1000;

/// Counters have one writer (the medium's user) and any number of readers.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept
{
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

[[noreturn]] void refuse_bytes() noexcept
{
    os::log(os::Severity::error,
            "internal error: a file medium was used as byte-addressable memory");
    std::abort();
}

}  // namespace

FileMedium::FileMedium(PoolFile file, const MediumOptions&)
    : file_(std::move(file)), vectors_(std::make_unique<Vectors>())
{
}

std::string_view FileMedium::mechanism() const noexcept { return "pwritev"; }

MediumCounters FileMedium::counters() const noexcept
{
    return {.bytes_written = bytes_written_.load(std::memory_order_relaxed),
            .write_calls = write_calls_.load(std::memory_order_relaxed),
            .syncs = syncs_.load(std::memory_order_relaxed)};
}

Result<void> FileMedium::resize(std::uint64_t size) { return file_.grow(size); }

Result<void> FileMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    return file_.read(offset, destination);
}

Result<void> FileMedium::write(std::span<const BlockWrite> batch)
{
    if (auto allowed = file_.check_writable(); !allowed) {
        return allowed;
    }
    for (const BlockWrite& write : batch) {
        if (auto inside = file_.check_range(write.offset, write.size); !inside) {
            return inside;
        }
    }
    return write_one_by_one(batch);
}

Result<void> FileMedium::write_one_by_one(std::span<const BlockWrite> batch)
{
    BatchRuns runs(batch);
    Run run;
    while (runs.next(*vectors_, run)) {
        if (auto written = finish_run(file_.fd(), run); !written) {
            return written;
        }
    }
    return {};
}

Result<void> FileMedium::finish_run(int fd, Run run)
{
    unsigned tries = 0;
    while (run.size > 0) {
        const ssize_t written = file_.write_once(fd, run.vectors, run.vector_count, run.offset);
        add(write_calls_, 1);
        if (written > 0) {
            add(bytes_written_, static_cast<std::uint64_t>(written));
            run.advance(static_cast<std::size_t>(written));
            continue;
        }
        const int error = written == 0 ? EIO : errno;  // No progress on a regular file is no success.
        if ((error == EINTR || error == EAGAIN) && ++tries < retries_max) {
            sched_yield();
            continue;
        }
        return file_.fail_write(error, run.offset, run.size);
    }
    return {};
}

Result<void> FileMedium::sync()
{
    auto synced = file_.sync();
    if (!synced) {
        return pass_on(synced.error());
    }
    add(syncs_, *synced ? 1 : 0);
    return {};
}

void FileMedium::detach_after_fork() noexcept { file_.detach_after_fork(); }

void FileMedium::store(std::uint64_t, const void*, std::size_t) noexcept { refuse_bytes(); }
void FileMedium::store_nontemporal(std::uint64_t, const void*, std::size_t) noexcept
{
    refuse_bytes();
}
void FileMedium::write_back(std::uint64_t, std::size_t) noexcept { refuse_bytes(); }
void FileMedium::fence() noexcept { refuse_bytes(); }

}  // namespace stillpoint
