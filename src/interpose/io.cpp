// Calls in which the kernel, or libc, stores into memory of the program: durable buffers are in flight during the call, and what was
// stored is noted afterwards (runtime/kernel_call.hpp), whichever code made the call. A shift and a compare for every
// other buffer.

#include <algorithm>
#include <fcntl.h>

#include "interpose/message_call.hpp"
#include "interpose/real.hpp"
#include "runtime/kernel_call.hpp"

namespace {

using stillpoint::KernelCall;
using stillpoint::KernelCallParts;

/// size * count, or as much as can be addressed.
std::size_t product(std::size_t size, std::size_t count) noexcept
{
    std::size_t bytes = 0;
    return __builtin_mul_overflow(size, count, &bytes) ? SIZE_MAX / 2 : bytes;
}

/// Bytes of the items that fread returned. After the last whole one fread may have stored a part of another.
[[gnu::always_inline]] inline std::size_t returned_items(KernelCall& call, std::size_t items, std::size_t size, std::size_t count) noexcept
{
    call.stored(product(size, items == count ? items : items + 1));
    return items;
}

[[nodiscard]] std::size_t part_count(int count) noexcept { return count < 0 ? 0 : static_cast<std::size_t>(count); }

}  // namespace

SHIM ssize_t read(int file, void* buffer, size_t size)
{
    KernelCall call(buffer, size);
    return call.returned(REAL(read)(file, buffer, size));
}

SHIM ssize_t pread(int file, void* buffer, size_t size, off_t offset)
{
    KernelCall call(buffer, size);
    return call.returned(REAL(pread)(file, buffer, size, offset));
}

SHIM ssize_t pread64(int file, void* buffer, size_t size, off64_t offset)
{
    KernelCall call(buffer, size);
    return call.returned(REAL(pread64)(file, buffer, size, offset));
}

SHIM ssize_t readv(int file, const iovec* parts, int count)
{
    KernelCallParts call(parts, part_count(count));
    return call.returned(REAL(readv)(file, parts, count));
}

SHIM ssize_t preadv(int file, const iovec* parts, int count, off_t offset)
{
    KernelCallParts call(parts, part_count(count));
    return call.returned(REAL(preadv)(file, parts, count, offset));
}

SHIM ssize_t preadv64(int file, const iovec* parts, int count, off64_t offset)
{
    KernelCallParts call(parts, part_count(count));
    return call.returned(REAL(preadv64)(file, parts, count, offset));
}

SHIM ssize_t preadv2(int file, const iovec* parts, int count, off_t offset, int flags)
{
    KernelCallParts call(parts, part_count(count));
    return call.returned(REAL(preadv2)(file, parts, count, offset, flags));
}

SHIM ssize_t preadv64v2(int file, const iovec* parts, int count, off64_t offset, int flags)
{
    KernelCallParts call(parts, part_count(count));
    return call.returned(REAL(preadv64v2)(file, parts, count, offset, flags));
}

/// Pages of another process; the kernel stores them here.
SHIM ssize_t process_vm_readv(pid_t process, const iovec* parts, unsigned long count, const iovec* remote, unsigned long remote_count,
                              unsigned long flags)
{
    KernelCallParts call(parts, count);
    return call.returned(REAL(process_vm_readv)(process, parts, count, remote, remote_count, flags));
}

/// Into another process; or, with the remote addresses, into this one.
SHIM ssize_t process_vm_writev(pid_t process, const iovec* parts, unsigned long count, const iovec* remote, unsigned long remote_count,
                               unsigned long flags)
{
    KernelCallParts call(process == getpid() ? remote : nullptr, remote_count);
    return call.returned(REAL(process_vm_writev)(process, parts, count, remote, remote_count, flags));
}

/// From a pipe, it stores into the parts; into a pipe, it reads them.
SHIM ssize_t vmsplice(int file, const iovec* parts, size_t count, unsigned flags)
{
    KernelCallParts call(parts, count);
    return call.returned(REAL(vmsplice)(file, parts, count, flags));
}

SHIM ssize_t recv(int file, void* buffer, size_t size, int flags)
{
    KernelCall call(buffer, size);
    return call.returned(REAL(recv)(file, buffer, size, flags));
}

SHIM ssize_t recvfrom(int file, void* buffer, size_t size, int flags, sockaddr* address, socklen_t* address_bytes)
{
    KernelCall call(buffer, size);
    const KernelCall sender(address, address_bytes != nullptr ? *address_bytes : 0);
    const KernelCall sender_bytes(address_bytes, sizeof *address_bytes);
    return call.returned(REAL(recvfrom)(file, buffer, size, flags, address, address_bytes));
}

SHIM int recvmmsg(int file, mmsghdr* messages, unsigned count, int flags, timespec* timeout)
{
    return stillpoint::receive_messages(messages, count,
                                        [=](unsigned asked) { return REAL(recvmmsg)(file, messages, asked, flags, timeout); });
}

SHIM ssize_t recvmsg(int file, msghdr* message, int flags)
{
    stillpoint::MessageCall call(message);
    return call.returned(REAL(recvmsg)(file, message, flags));
}

SHIM ssize_t getrandom(void* buffer, size_t size, unsigned flags)
{
    KernelCall call(buffer, size);
    return call.returned(REAL(getrandom)(buffer, size, flags));
}

SHIM size_t fread(void* buffer, size_t size, size_t count, FILE* stream)
{
    KernelCall call(buffer, product(size, count));
    return returned_items(call, REAL(fread)(buffer, size, count, stream), size, count);
}

SHIM size_t fread_unlocked(void* buffer, size_t size, size_t count, FILE* stream)
{
    KernelCall call(buffer, product(size, count));
    return returned_items(call, REAL(fread_unlocked)(buffer, size, count, stream), size, count);
}

SHIM ssize_t __read_chk(int file, void* buffer, size_t size, size_t buffer_bytes)
{
    KernelCall call(buffer, std::min(size, buffer_bytes));
    return call.returned(REAL(__read_chk)(file, buffer, size, buffer_bytes));
}

SHIM ssize_t __pread_chk(int file, void* buffer, size_t size, off_t offset, size_t buffer_bytes)
{
    KernelCall call(buffer, std::min(size, buffer_bytes));
    return call.returned(REAL(__pread_chk)(file, buffer, size, offset, buffer_bytes));
}

SHIM ssize_t __pread64_chk(int file, void* buffer, size_t size, off64_t offset, size_t buffer_bytes)
{
    KernelCall call(buffer, std::min(size, buffer_bytes));
    return call.returned(REAL(__pread64_chk)(file, buffer, size, offset, buffer_bytes));
}

SHIM ssize_t __recv_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags)
{
    KernelCall call(buffer, std::min(size, buffer_bytes));
    return call.returned(REAL(__recv_chk)(file, buffer, size, buffer_bytes, flags));
}

SHIM ssize_t __recvfrom_chk(int file, void* buffer, size_t size, size_t buffer_bytes, int flags, sockaddr* address,
                            socklen_t* address_bytes)
{
    KernelCall call(buffer, std::min(size, buffer_bytes));
    const KernelCall sender(address, address_bytes != nullptr ? *address_bytes : 0);
    const KernelCall sender_bytes(address_bytes, sizeof *address_bytes);
    return call.returned(REAL(__recvfrom_chk)(file, buffer, size, buffer_bytes, flags, address, address_bytes));
}

SHIM size_t __fread_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count, FILE* stream)
{
    KernelCall call(buffer, std::min(product(size, count), buffer_bytes));
    return returned_items(call, REAL(__fread_chk)(buffer, buffer_bytes, size, count, stream), size, count);
}

SHIM size_t __fread_unlocked_chk(void* buffer, size_t buffer_bytes, size_t size, size_t count, FILE* stream)
{
    KernelCall call(buffer, std::min(product(size, count), buffer_bytes));
    return returned_items(call, REAL(__fread_unlocked_chk)(buffer, buffer_bytes, size, count, stream), size, count);
}
