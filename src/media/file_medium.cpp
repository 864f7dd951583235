#include "media/file_medium.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "media/observer.hpp"
#include "os/file_lock.hpp"
#include "os/file_size_limit.hpp"

namespace stillpoint {

namespace {

constexpr unsigned tries_max = 1000;

}  // namespace

FileMedium::FileMedium(PoolFile file, const MediumOptions& options)
    : file_(std::move(file)), slots_(std::make_unique<std::array<Slot, queue_depth>>())
{
    if (file_.writable()) {
        file_.honour_holds();
    }
    // On tmpfs the page cache is the medium: O_DIRECT is accepted there and means nothing.
    if (!file_.writable() || file_.lives_in_memory()) {
        return;
    }
    if (!options.disable_io_uring) {
        open_ring();
    }
    // One direct write at a time is slower than the page cache with fdatasync: only a queue pays.
    if (ring_is_usable_ && !options.disable_direct_io) {
        open_direct();
    }
}

void FileMedium::open_direct()
{
    // By way of the descriptor, so that it is the very file that was locked.
    char name[32];
    *fmt::format_to_n(name, sizeof name - 1, "/proc/self/fd/{}", file_.fd()).out = '\0';
    os::Descriptor direct{open(name, O_RDWR | O_DIRECT | O_CLOEXEC)};
    // Writes that are queued outlive a killed process. They must not reach a pool that is open again by then.
    // And some file systems number each opening again: then it could not be told from another file.
    if (!direct.valid() || !file_.is_same_file(direct.get()) || os::mark_queued_writes(direct.get()) != 0) {
        return;
    }
    // Some file systems accept the flag and refuse the I/O, or want more alignment than a page.
    alignas(page_bytes) std::byte probe[page_bytes];
    if (pread(direct.get(), probe, sizeof probe, 0) >= 0) {
        direct_ = std::move(direct);
        direct_.claim();
    }
}

void FileMedium::open_ring()
{
    int error = 0;
    ring_ = os::IoRing::open(queue_depth, error);
    ring_is_usable_ = ring_ != nullptr;
}

bool FileMedium::writes_direct() const noexcept { return direct_.valid() && ring_is_usable_ && file_.durability() == Durability::power; }

int FileMedium::write_fd() const noexcept { return writes_direct() ? direct_.get() : file_.fd(); }

std::string_view FileMedium::mechanism() const noexcept
{
    if (file_.durability() == Durability::process) {
        return "pwritev, page cache";
    }
    if (ring_is_usable_) {
        return writes_direct() ? "io_uring, O_DIRECT" : "io_uring, fdatasync";
    }
    return "pwritev, fdatasync";
}

MediumCounters FileMedium::counters() const noexcept
{
    return {.bytes_written = bytes_written_.get(),
            .write_calls = write_calls_.get(),
            .syncs = syncs_.get(),
            .persist_points = file_.faults().persist_points()};
}

Result<void> FileMedium::resize_with_room(std::uint64_t size, std::uint64_t room_end)
{
    const WriteTurn turn(file_.turns());
    return file_.grow(size, room_end);
}

Result<void> FileMedium::read(std::uint64_t offset, std::span<std::byte> destination) const { return file_.read(offset, destination); }

Result<void> FileMedium::write(std::span<const BlockWrite> batch)
{
    if (auto allowed = file_.check_writable(); !allowed) {
        return allowed;
    }
    const WriteTurn turn(file_.turns());
    if (auto intact = check_intact(); !intact) {
        return intact;
    }
    for (const BlockWrite& write : batch) {
        if (auto inside = file_.check_range(write.offset, write.size); !inside) {
            return inside;
        }
    }
    for (const BlockWrite& write : batch) {
        observe(MediumEvent::block_write, write.offset, write.data, write.size);
    }
    // Into the page cache one thread writes as fast as memory goes; a queue pays where there is a disk
    // to wait for, and more than one write.
    if (ring_is_usable_ && file_.durability() == Durability::power && batch.size() > 1) {
        return write_queued(batch);
    }
    return write_one_by_one(batch);
}

Result<void> FileMedium::write_one_by_one(std::span<const BlockWrite> batch)
{
    BatchRuns runs(batch);
    Slot& slot = slots_->front();
    while (runs.next(slot.vectors, slot.run)) {
        if (auto written = finish_run(write_fd(), slot.run); !written) {
            return written;
        }
    }
    return {};
}

Result<void> FileMedium::finish_run(int fd, Run& run)
{
    unsigned tries = 0;
    while (run.size > 0) {
        const bool whole_pages = run.offset % page_bytes == 0;
        const int descriptor = whole_pages ? fd : file_.fd();  // O_DIRECT takes no broken pages.
        const ssize_t written = file_.write_once(descriptor, run.vectors, run.vector_count, run.offset);
        write_calls_.add(1);
        if (written > 0) {
            bytes_written_.add(static_cast<std::uint64_t>(written));
            run.advance(static_cast<std::size_t>(written));
            continue;
        }
        const int error = written == 0 ? EIO : errno;  // No progress on a file is a failure.
        if (error == EINVAL && fd != file_.fd()) {
            fd = file_.fd();  // The file system has no O_DIRECT for this write after all.
            continue;
        }
        if ((error == EINTR || error == EAGAIN) && ++tries < tries_max) {
            sched_yield();
            continue;
        }
        return file_.fail_write(error, run.offset, run.size);
    }
    return {};
}

/// Which slots are free and how many are with the kernel, during one write_queued().
struct FileMedium::InFlight {
    std::array<unsigned, queue_depth> free_slots{};
    unsigned free_count = 0;
    unsigned pending = 0;
};

Result<void> FileMedium::write_queued(std::span<const BlockWrite> batch)
{
    const os::FileSizeSignalHeld held;  // The kernel does what it can of a queued write in this thread.
    InFlight flight;
    while (flight.free_count < queue_depth) {
        flight.free_slots[flight.free_count] = flight.free_count;
        ++flight.free_count;
    }
    BatchRuns runs(batch);
    Result<void> outcome;
    bool more = true;
    while (more || flight.pending > 0) {
        while (more && flight.free_count > 0) {
            const unsigned slot = flight.free_slots[flight.free_count - 1];
            more = runs.next((*slots_)[slot].vectors, (*slots_)[slot].run);
            if (more) {
                outcome = start_run(flight, slot);
                more = outcome.has_value();
            }
        }
        if (flight.pending == 0) {
            break;
        }
        if (const int error = ring_->submit_and_wait(); error != 0 && error != EAGAIN && error != EBUSY) {
            // A sandbox that closed after the ring was made. The ring is not used again.
            ring_is_usable_ = false;
            return ring_->unsubmitted() == flight.pending ? write_one_by_one(batch)
                                                          : Result<void>{file_.fail_write(error, batch.front().offset, 0)};
        }
        std::uint64_t slot = 0;
        int result = 0;
        while (ring_->take_completion(slot, result)) {
            --flight.pending;
            flight.free_slots[flight.free_count++] = static_cast<unsigned>(slot);
            auto ended = end_run((*slots_)[slot], result);
            if (!ended && outcome) {
                outcome = ended;
            }
            more = more && outcome.has_value();
        }
    }
    return outcome;
}

Result<void> FileMedium::start_run(InFlight& flight, unsigned slot_index)
{
    Slot& slot = (*slots_)[slot_index];
    Run& run = slot.run;
    file_.faults().persist();
    const Fault fault = file_.faults().next(FaultPoint::write);
    if (fault.error != 0) {
        return end_run(slot, -fault.error);
    }
    if (fault.cut_short) {
        const iovec half{run.vectors->iov_base, run.vectors->iov_len / 2};
        const ssize_t written = pwritev(file_.fd(), &half, 1, static_cast<off_t>(run.offset));
        return end_run(slot, written < 0 ? -errno : static_cast<int>(written));
    }
    ring_->queue_write(write_fd(), run.vectors, run.vector_count, run.offset, slot_index);
    ++flight.pending;
    --flight.free_count;
    return {};
}

Result<void> FileMedium::end_run(Slot& slot, int result)
{
    file_.faults().persist();  // This write has ended; others may be in flight.
    write_calls_.add(1);
    if (result > 0) {
        bytes_written_.add(static_cast<std::uint64_t>(result));
        slot.run.advance(static_cast<std::size_t>(result));
    }
    if (slot.run.size == 0) {
        return {};
    }
    // Short writes, interruptions and refusals of O_DIRECT are rare: their rest is written here
    // and now, by the path that knows how to treat them.
    const bool try_again = result > 0 || result == -EINTR || result == -EAGAIN || (result == -EINVAL && writes_direct());
    if (try_again) {
        return finish_run(write_fd(), slot.run);
    }
    return file_.fail_write(result == 0 ? EIO : -result, slot.run.offset, slot.run.size);
}

Result<void> FileMedium::sync()
{
    auto synced = file_.sync();
    if (!synced) {
        return pass_on(synced.error());
    }
    syncs_.add(*synced ? 1 : 0);
    return {};
}

Result<void> FileMedium::check_intact() { return file_.check_intact(direct_.get()); }

void FileMedium::detach_after_fork() noexcept
{
    file_.detach_after_fork();
    direct_.reset();
    if (ring_ != nullptr) {
        ring_->abandon_after_fork();
    }
}

}  // namespace stillpoint
