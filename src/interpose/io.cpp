// Calls in which the kernel, or libc, stores into memory of the program. Where the tracker protects pages, the kernel
// would answer EFAULT instead of faulting: durable buffers are made writable first. Where the tracker goes by marks,
// what was stored is marked afterwards, so that it does not matter who calls. A shift and a compare for every other buffer.

#include <algorithm>
#include <climits>

#include "core/store_marks.hpp"
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

/// Marks what a call has stored; returns what the call returned.
/// It may be more than was stored: the length of a datagram that was cut (MSG_TRUNC).
[[gnu::always_inline]] inline ssize_t mark_stored(ssize_t stored, const void* buffer, std::size_t size) noexcept
{
    if (stored > 0) {
        stillpoint::note_store(buffer, std::min(static_cast<std::size_t>(stored), size));
    }
    return stored;
}

ssize_t mark_stored(ssize_t stored, const iovec* parts, int count) noexcept
{
    auto left = static_cast<std::size_t>(stored > 0 ? stored : 0);
    for (int i = 0; i < count && left != 0; ++i) {
        const std::size_t here = std::min(parts[i].iov_len, left);
        stillpoint::note_store(parts[i].iov_base, here);
        left -= here;
    }
    return stored;
}

/// size * count, or as much as can be addressed.
std::size_t product(std::size_t size, std::size_t count) noexcept
{
    std::size_t bytes = 0;
    return __builtin_mul_overflow(size, count, &bytes) ? SIZE_MAX / 2 : bytes;
}

/// Of the items that fread returned. Behind the last whole one it may have stored a part of another.
[[gnu::always_inline]] inline std::size_t mark_items(std::size_t items, const void* buffer, std::size_t size,
                                                    std::size_t count) noexcept
{
    stillpoint::note_store(buffer, product(size, items == count ? items : items + 1));
    return items;
}

}  // namespace

SHIM ssize_t read(int file, void* buffer, size_t size)
{
    prepare(buffer, size);
    return mark_stored(REAL(read)(file, buffer, size), buffer, size);
}

SHIM ssize_t pread(int file, void* buffer, size_t size, off_t offset)
{
    prepare(buffer, size);
    return mark_stored(REAL(pread)(file, buffer, size, offset), buffer, size);
}

SHIM ssize_t pread64(int file, void* buffer, size_t size, off64_t offset)
{
    prepare(buffer, size);
    return mark_stored(REAL(pread64)(file, buffer, size, offset), buffer, size);
}

SHIM ssize_t readv(int file, const iovec* parts, int count)
{
    prepare(parts, count);
    return mark_stored(REAL(readv)(file, parts, count), parts, count);
}

SHIM ssize_t preadv(int file, const iovec* parts, int count, off_t offset)
{
    prepare(parts, count);
    return mark_stored(REAL(preadv)(file, parts, count, offset), parts, count);
}

SHIM ssize_t preadv64(int file, const iovec* parts, int count, off64_t offset)
{
    prepare(parts, count);
    return mark_stored(REAL(preadv64)(file, parts, count, offset), parts, count);
}

SHIM ssize_t preadv2(int file, const iovec* parts, int count, off_t offset, int flags)
{
    prepare(parts, count);
    return mark_stored(REAL(preadv2)(file, parts, count, offset, flags), parts, count);
}

SHIM ssize_t preadv64v2(int file, const iovec* parts, int count, off64_t offset, int flags)
{
    prepare(parts, count);
    return mark_stored(REAL(preadv64v2)(file, parts, count, offset, flags), parts, count);
}

SHIM ssize_t recv(int file, void* buffer, size_t size, int flags)
{
    prepare(buffer, size);
    return mark_stored(REAL(recv)(file, buffer, size, flags), buffer, size);
}

SHIM ssize_t recvfrom(int file, void* buffer, size_t size, int flags, sockaddr* address,
                      socklen_t* address_bytes)
{
    prepare(buffer, size);
    return mark_stored(REAL(recvfrom)(file, buffer, size, flags, address, address_bytes), buffer, size);
}

SHIM ssize_t recvmsg(int file, msghdr* message, int flags)
{
    if (message != nullptr && message->msg_iovlen <= IOV_MAX) {
        prepare(message->msg_iov, static_cast<int>(message->msg_iovlen));
    }
    const ssize_t stored = REAL(recvmsg)(file, message, flags);
    return stored > 0 ? mark_stored(stored, message->msg_iov, static_cast<int>(message->msg_iovlen)) : stored;
}

SHIM ssize_t getrandom(void* buffer, size_t size, unsigned flags)
{
    prepare(buffer, size);
    return mark_stored(REAL(getrandom)(buffer, size, flags), buffer, size);
}

SHIM size_t fread(void* buffer, size_t size, size_t count, FILE* stream)
{
    prepare(buffer, product(size, count));
    return mark_items(REAL(fread)(buffer, size, count, stream), buffer, size, count);
}

SHIM size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream)
{
    prepare(buffer, product(size, count));
    return mark_items(REAL(fread_unlocked)(buffer, size, count, stream), buffer, size, count);
}

SHIM ssize_t __read_chk(int file, void* buffer, size_t size, size_t buffer_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return mark_stored(REAL(__read_chk)(file, buffer, size, buffer_bytes), buffer, size);
}

SHIM ssize_t __pread_chk(int file, void* buffer, size_t size, off_t offset, size_t buffer_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return mark_stored(REAL(__pread_chk)(file, buffer, size, offset, buffer_bytes), buffer, size);
}

SHIM ssize_t __pread64_chk(int file, void* buffer, size_t size, off64_t offset,
                           size_t buffer_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return mark_stored(REAL(__pread64_chk)(file, buffer, size, offset, buffer_bytes), buffer, size);
}

SHIM ssize_t __recv_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags)
{
    prepare(buffer, std::min(size, buffer_bytes));
    return mark_stored(REAL(__recv_chk)(file, buffer, size, buffer_bytes, flags), buffer, size);
}

SHIM ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags,
                            sockaddr* address, socklen_t* address_bytes)
{
    prepare(buffer, std::min(size, buffer_bytes));
    const ssize_t stored = REAL(__recvfrom_chk)(file, buffer, size, buffer_bytes, flags, address, address_bytes);
    return mark_stored(stored, buffer, size);
}

SHIM size_t __fread_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count, FILE* stream)
{
    prepare(buffer, std::min(product(size, count), buffer_bytes));
    return mark_items(REAL(__fread_chk)(buffer, buffer_bytes, size, count, stream), buffer, size, count);
}

SHIM size_t __fread_unlocked_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count,
                                 FILE* stream)
{
    prepare(buffer, std::min(product(size, count), buffer_bytes));
    return mark_items(REAL(__fread_unlocked_chk)(buffer, buffer_bytes, size, count, stream), buffer, size, count);
}
