#pragma once
// io_uring: writes handed to the kernel in batches, one system call for many.

#include <cstdint>
#include <liburing.h>
#include <memory>
#include <sys/uio.h>

namespace stillpoint::os {

/// One ring, used by one thread at a time. Only the ring of the process that made it may be
/// destroyed: a child made by fork abandons its copy.
class IoRing {
public:
    /// nullptr with the errno in `error` where the kernel or a sandbox refuses (ENOSYS, EPERM,
    /// ENOMEM under a small RLIMIT_MEMLOCK on old kernels).
    [[nodiscard]] static std::unique_ptr<IoRing> open(unsigned entries, int& error);
    IoRing(const IoRing&) = delete;
    IoRing& operator=(const IoRing&) = delete;
    ~IoRing();

    /// Queues one write. `vectors` must stay until its completion. At most `entries` at once.
    void queue_write(int fd, const iovec* vectors, int count, std::uint64_t offset, std::uint64_t tag) noexcept;

    /// Hands over everything queued and waits for at least one completion; retries EINTR. 0 or
    /// the errno of the refusal. No malloc.
    [[nodiscard]] int submit_and_wait() noexcept;

    /// Takes one completion; false where there is none. `result`: bytes written, or -errno.
    [[nodiscard]] bool take_completion(std::uint64_t& tag, int& result) noexcept;

    /// How many queued writes the kernel has not been given: after a refused submission.
    [[nodiscard]] unsigned unsubmitted() const noexcept;

    /// In a child after fork: the ring's memory is not there any more, only its descriptor.
    void abandon_after_fork() noexcept;

private:
    IoRing() = default;
    io_uring ring_{};
    bool abandoned_ = false;
};

}  // namespace stillpoint::os
