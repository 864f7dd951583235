#pragma once
// Guards for shims round calls in which the kernel, or libc, stores into memory of the program. Whatever the tracker, durable buffers
// are in flight during the call (kernel_writes.hpp), and what was stored is noted after it. A shift and a compare for every other buffer.

#include <cstddef>
#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/kernel_writes.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

/// One buffer. Destroyed after the call, also where a cancelled thread leaves it by unwinding.
class KernelCall {
public:
    [[gnu::always_inline]] KernelCall(void* buffer, std::size_t size) noexcept : buffer_(buffer)
    {
        if (stillpoint_is_persistent(buffer)) [[unlikely]] {
            begin(size);
        }
    }
    [[gnu::always_inline]] ~KernelCall()
    {
        if (size_ != 0) [[unlikely]] {
            end();
        }
    }
    KernelCall(const KernelCall&) = delete;
    KernelCall& operator=(const KernelCall&) = delete;

    /// The call's result: bytes, or -1 and errno. More than was asked for is the length of a datagram that was cut (MSG_TRUNC).
    [[gnu::always_inline]] ssize_t returned(ssize_t stored) noexcept
    {
        if (size_ != 0) [[unlikely]] {
            note_returned(stored);
        }
        return stored;
    }
    /// So many bytes from the beginning were stored to.
    [[gnu::always_inline]] void stored(std::size_t size) noexcept
    {
        if (size_ != 0) [[unlikely]] {
            note(size);
        }
    }

private:
    void begin(std::size_t size) noexcept;
    void end() noexcept;
    void note_returned(ssize_t stored) noexcept;
    void note(std::size_t size) noexcept;

    void* buffer_;
    std::size_t size_ = 0;  ///< 0: the buffer is not durable
    kernel_writes::Slot slot_ = kernel_writes::no_slot;
    bool told_ = false;  ///< the call has returned
};

/// The buffers of one scattering call.
class KernelCallParts {
public:
    [[gnu::always_inline]] KernelCallParts(const iovec* parts, std::size_t count) noexcept : parts_(parts)
    {
        if (parts != nullptr && count <= 1024) {  // IOV_MAX. Otherwise the system call will say so.
            for (std::size_t i = 0; i < count; ++i) {
                if (stillpoint_is_persistent(parts[i].iov_base)) [[unlikely]] {
                    begin(count);
                    break;
                }
            }
        }
    }
    [[gnu::always_inline]] ~KernelCallParts()
    {
        if (count_ != 0) [[unlikely]] {
            end();
        }
    }
    KernelCallParts(const KernelCallParts&) = delete;
    KernelCallParts& operator=(const KernelCallParts&) = delete;

    [[gnu::always_inline]] ssize_t returned(ssize_t stored) noexcept
    {
        if (count_ != 0) [[unlikely]] {
            note_returned(stored);
        }
        return stored;
    }

private:
    void begin(std::size_t count) noexcept;
    void end() noexcept;
    void note_returned(ssize_t stored) noexcept;
    void note(std::size_t size) noexcept;

    const iovec* parts_;
    std::size_t count_ = 0;  ///< 0: no buffer is durable
    std::size_t without_slot_ = 0;
    bool told_ = false;
};

/// A request that libc's own threads carry out: from its beginning until the program has asked for its result.
void kernel_request_begins(void* buffer, std::size_t size, const void* request) noexcept;
void kernel_request_ended(const void* request) noexcept;

/// A thread of the program ends.
void kernel_calls_end_thread() noexcept;

}  // namespace stillpoint
