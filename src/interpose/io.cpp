// Calls in which the kernel stores into memory of the program. Where the tracker protects pages, the kernel
// would answer EFAULT instead of faulting: durable buffers are made writable first. A shift and a compare for
// every other buffer.

#include <algorithm>
#include <climits>

#include "interpose/real.hpp"
#include "runtime/session.hpp"
#include "stillpoint/stillpoint.h"

namespace {

[[gnu::always_inline]] inline void prepare(void* buffer, std::size_t size) noexcept
{
    if (stillpoint_is_persistent(buffer)) [[unlikely]] {
        stillpoint::session_prepare_kernel_write(buffer, size);
    }
}

void prepare(const iovec* parts, int count) noexcept
{
    if (parts == nullptr || count < 0 || count > IOV_MAX) {
        return;  // The system call will say so.
    }
    for (int i = 0; i < count; ++i) {
        prepare(parts[i].iov_base, parts[i].iov_len);
    }
}

/// size * count, or as much as can be addressed.
std::size_t product(std::size_t size, std::size_t count) noexcept
{
    std::size_t bytes = 0;
    return __builtin_mul_overflow(size, count, &bytes) ? SIZE_MAX / 2 : bytes;
}

}  // namespace

SHIM ssize_t read(int file, void* buffer, size_t size)
{
    prepare(buffer, size);
    return REAL(read)(file, buffer, size);
}

SHIM ssize_t pread(int file, void* buffer, size_t size, off_t offset)
{
    prepare(buffer, size);
    return REAL(pread)(file, buffer, size, offset);
}

SHIM ssize_t pread64(int file, void* buffer, size_t size, off64_t offset)
{
    prepare(buffer, size);
    return REAL(pread64)(file, buffer, size, offset);
}

SHIM ssize_t readv(int file, const iovec* parts, int count)
{
    prepare(parts, count);
    return REAL(readv)(file, parts, count);
}

SHIM ssize_t preadv(int file, const iovec* parts, int count, off_t offset)
{
    prepare(parts, count);
    return REAL(preadv)(file, parts, count, offset);
}

SHIM ssize_t preadv64(int file, const iovec* parts, int count, off64_t offset)
{
    prepare(parts, count);
    return REAL(preadv64)(file, parts, count, offset);
}

SHIM ssize_t preadv2(int file, const iovec* parts, int count, off_t offset, int flags)
{
    prepare(parts, count);
    return REAL(preadv2)(file, parts, count, offset, flags);
}

SHIM ssize_t preadv64v2(int file, const iovec* parts, int count, off64_t offset, int flags)
{
    prepare(parts, count);
    return REAL(preadv64v2)(file, parts, count, offset, flags);
}

SHIM ssize_t recv(int file, void* buffer, size_t size, int flags)
{
    prepare(buffer, size);
    return REAL(recv)(file, buffer, size, flags);
}

SHIM ssize_t recvfrom(int file, void* buffer, size_t size, int flags, sockaddr* address,
                      socklen_t* address_bytes)
{
    prepare(buffer, size);
    return REAL(recvfrom)(file, buffer, size, flags, address, address_bytes);
}

SHIM ssize_t recvmsg(int file, msghdr* message, int flags)
{
    if (message != nullptr && message->msg_iovlen <= IOV_MAX) {
        prepare(message->msg_iov, static_cast<int>(message->msg_iovlen));
    }
    return REAL(recvmsg)(file, message, flags);
}

SHIM ssize_t getrandom(void* buffer, size_t size, unsigned flags)
{
    prepare(buffer, size);
    return REAL(getrandom)(buffer, size, flags);
}

SHIM size_t fread(void* buffer, size_t size, size_t count, FILE* stream)
{
    prepare(buffer, product(size, count));
    return REAL(fread)(buffer, size, count, stream);
}

SHIM size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream)
{
    prepare(buffer, product(size, count));
    return REAL(fread_unlocked)(buffer, size, count, stream);
}

SHIM ssize_t __read_chk(int file, void* buffer, size_t size, size_t buffer_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return REAL(__read_chk)(file, buffer, size, buffer_bytes);
}

SHIM ssize_t __pread_chk(int file, void* buffer, size_t size, off_t offset, size_t buffer_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return REAL(__pread_chk)(file, buffer, size, offset, buffer_bytes);
}

SHIM ssize_t __pread64_chk(int file, void* buffer, size_t size, off64_t offset,
                           size_t buffer_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return REAL(__pread64_chk)(file, buffer, size, offset, buffer_bytes);
}

SHIM ssize_t __recv_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return REAL(__recv_chk)(file, buffer, size, buffer_bytes, flags);
}

SHIM ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags,
                            sockaddr* address, socklen_t* address_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return REAL(__recvfrom_chk)(file, buffer, size, buffer_bytes, flags, address, address_bytes);
}

SHIM size_t __fread_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count, FILE* stream)
{
    prepare(buffer, std::min(product(size, count), buffer_bytes));
    return REAL(__fread_chk)(buffer, buffer_bytes, size, count, stream);
}

SHIM size_t __fread_unlocked_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count,
                                 FILE* stream)
{
    prepare(buffer, std::min(product(size, count), buffer_bytes));
    return REAL(__fread_unlocked_chk)(buffer, buffer_bytes, size, count, stream);
}
