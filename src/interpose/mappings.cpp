// Calls that change mappings. Those that would take durable memory away, or hide stores from the tracker, are refused
// (runtime/mapping_calls.hpp); all others go on: to the function that comes next once the loader has been asked for it, before that by
// system call. Allocators and sanitizers call these in their first steps, where dlsym would call the allocator.
//
// posix_madvise is none of them: glibc's does nothing for POSIX_MADV_DONTNEED, and the rest is harmless.

#include "core/sanitizers.hpp"

// The sanitizers' runtimes make mappings before instrumented code can run: a library that is built with one refuses nothing.
#if !STILLPOINT_ADDRESS_SANITIZER && !STILLPOINT_THREAD_SANITIZER

#include <cstdarg>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "interpose/real.hpp"
#include "os/direct_call.hpp"
#include "os/own_mappings.hpp"
#include "runtime/mapping_calls.hpp"
#include "runtime/session_process.hpp"

namespace {

template <class Result, class... Arguments>
[[gnu::cold, gnu::noinline]] Result ask_kernel(long number, Arguments... arguments) noexcept
{
    return (Result)stillpoint::os::direct_call(number, arguments...);
}

/// The C library's, or that of an interposer between it and this one; `number` where it is not known yet.
template <class Function, class... Arguments>
[[gnu::always_inline]] inline auto go_on(const std::atomic<void*>& next, long number, Function*, Arguments... arguments)
{
    using Result = decltype(static_cast<Function*>(nullptr)(arguments...));
    if (void* const known = next.load(std::memory_order_relaxed); known != nullptr) [[likely]] {
        return reinterpret_cast<Function*>(known)(arguments...);
    }
    return ask_kernel<Result>(number, arguments...);
}

/// Private memory that threads would share is shared where they are processes; a stack is its thread's own.
[[gnu::always_inline]] inline int flags_for_threads(int flags) noexcept
{
    constexpr int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!stillpoint::session_process::is_elsewhere() || (flags & anonymous) != anonymous || (flags & (MAP_STACK | MAP_GROWSDOWN)) != 0 ||
        stillpoint::os::OwnMappingCall::is_under_way()) [[likely]] {
        return flags;
    }
    return (flags & ~MAP_PRIVATE) | MAP_SHARED;
}

#define GO_ON(name, ...) go_on(::stillpoint::real::addresses.name, SYS_##name, &::name, __VA_ARGS__)

}  // namespace

SHIM void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) noexcept
{
    return stillpoint::refuses_mapping(address, size, flags)
               ? MAP_FAILED
               : GO_ON(mmap, address, size, protection, flags_for_threads(flags), file, offset);
}

SHIM void* mmap64(void* address, size_t size, int protection, int flags, int file, off64_t offset) noexcept
{
    return stillpoint::refuses_mapping(address, size, flags)
               ? MAP_FAILED
               : GO_ON(mmap, address, size, protection, flags_for_threads(flags), file, offset);
}

SHIM int munmap(void* address, size_t size) noexcept
{
    return stillpoint::refuses_unmapping(address, size) ? -1 : GO_ON(munmap, address, size);
}

SHIM void* mremap(void* from, size_t from_size, size_t to_size, int flags, ...) noexcept
{
    va_list passed;
    va_start(passed, flags);
    void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(passed, void*) : nullptr;
    va_end(passed);
    return stillpoint::refuses_remapping(from, from_size, to_size, flags, to) ? MAP_FAILED
                                                                              : GO_ON(mremap, from, from_size, to_size, flags, to);
}

SHIM int remap_file_pages(void* address, size_t size, int protection, size_t page, int flags) noexcept
{
    return stillpoint::refuses_remapping_of_file_pages(address, size) ? -1
                                                                      : GO_ON(remap_file_pages, address, size, protection, page, flags);
}

SHIM int mprotect(void* address, size_t size, int protection) noexcept
{
    return stillpoint::refuses_protection(address, size) ? -1 : GO_ON(mprotect, address, size, protection);
}

SHIM int pkey_mprotect(void* address, size_t size, int protection, int key) noexcept
{
    return stillpoint::refuses_protection(address, size) ? -1 : GO_ON(pkey_mprotect, address, size, protection, key);
}

SHIM int madvise(void* address, size_t size, int advice) noexcept
{
    return stillpoint::refuses_advice(address, size, advice) ? -1 : GO_ON(madvise, address, size, advice);
}

SHIM ssize_t process_madvise(int process, const iovec* parts, size_t count, int advice, unsigned flags) noexcept
{
    return stillpoint::refuses_advice(parts, count, advice) ? -1 : GO_ON(process_madvise, process, parts, count, advice, flags);
}

SHIM void* shmat(int segment, const void* address, int flags) noexcept
{
    return stillpoint::refuses_attaching(segment, address, flags) ? MAP_FAILED : GO_ON(shmat, segment, address, flags);
}

#endif
