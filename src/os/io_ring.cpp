#include "os/io_ring.hpp"

#include <cerrno>

#include "os/own_descriptors.hpp"

namespace stillpoint::os {

std::unique_ptr<IoRing> IoRing::open(unsigned entries, int& error)
{
    std::unique_ptr<IoRing> ring{new IoRing};
    // Completions wait for us to ask instead of interrupting the thread (Linux 5.19).
    int result = io_uring_queue_init(entries, &ring->ring_, IORING_SETUP_COOP_TASKRUN);
    if (result == -EINVAL) {
        result = io_uring_queue_init(entries, &ring->ring_, 0);
    }
    if (result != 0) {
        error = -result;
        ring->abandoned_ = true;
        return nullptr;
    }
    error = 0;
    ring->ring_.ring_fd = claim_descriptor(ring->ring_.ring_fd);
    ring->ring_.enter_ring_fd = ring->ring_.ring_fd;
    return ring;
}

IoRing::~IoRing()
{
    if (!abandoned_) {
        disown_descriptor(ring_.ring_fd);  // liburing closes it.
        io_uring_queue_exit(&ring_);
    }
}

void IoRing::queue_write(int fd, const iovec* vectors, int count, std::uint64_t offset, std::uint64_t tag) noexcept
{
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);  // Never full: `entries` bounds the caller.
    io_uring_prep_writev(entry, fd, vectors, static_cast<unsigned>(count), offset);
    io_uring_sqe_set_data64(entry, tag);
}

int IoRing::submit_and_wait() noexcept
{
    for (;;) {
        const int result = io_uring_submit_and_wait(&ring_, 1);
        if (result >= 0) {
            return 0;
        }
        if (result != -EINTR) {
            return -result;
        }
    }
}

bool IoRing::take_completion(std::uint64_t& tag, int& result) noexcept
{
    io_uring_cqe* completion = nullptr;
    if (io_uring_peek_cqe(&ring_, &completion) != 0) {
        return false;
    }
    tag = io_uring_cqe_get_data64(completion);
    result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    return true;
}

unsigned IoRing::unsubmitted() const noexcept { return io_uring_sq_ready(&ring_); }

void IoRing::abandon_after_fork() noexcept
{
    if (!abandoned_) {
        // liburing marks the ring's pages as not inherited; whatever lies at their address in the
        // child is not ours to unmap.
        close_descriptor(ring_.ring_fd);
        abandoned_ = true;
    }
}

}  // namespace stillpoint::os
