/* Preloaded: makes the n-th allocation of the runtime fail with ENOMEM, or that and all later ones. Allocations are malloc and its
 * relatives, also by way of operator new, and mmap, where libstillpoint.so or the C++ library calls them.
 *   FAULTS_MEMORY=n or n:always; FAULTS_MEMORY_MET names a file that is made when it happens. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static long calls;

static int must_fail(const void* caller, size_t size)
{
    const size_t for_exceptions = 64 << 10; /* The memory that the C++ library sets aside at its start, to throw when there is no more. */
    const char* wish = getenv("FAULTS_MEMORY");
    Dl_info from;
    if (wish == NULL || dladdr(caller, &from) == 0 || from.dli_fname == NULL ||
        (strstr(from.dli_fname, "libstillpoint") == NULL && strstr(from.dli_fname, "libstdc++") == NULL)) {
        return 0;
    }
    if (size > for_exceptions && strstr(from.dli_fname, "libstdc++") != NULL) {
        return 0;
    }
    const long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    const long wanted = atol(wish);
    if (call != wanted && !(call > wanted && strstr(wish, ":always") != NULL)) {
        return 0;
    }
    const char* met = getenv("FAULTS_MEMORY_MET");
    if (met != NULL) {
        const long file = syscall(SYS_openat, AT_FDCWD, met, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        syscall(SYS_close, file);
    }
    errno = ENOMEM;
    return 1;
}

void* malloc(size_t size) { return must_fail(__builtin_return_address(0), size) ? NULL : __libc_malloc(size); }

void* calloc(size_t count, size_t size) { return must_fail(__builtin_return_address(0), size) ? NULL : __libc_calloc(count, size); }

void* realloc(void* block, size_t size) { return must_fail(__builtin_return_address(0), size) ? NULL : __libc_realloc(block, size); }

void* aligned_alloc(size_t alignment, size_t size)
{
    return must_fail(__builtin_return_address(0), size) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size)
{
    void* found = must_fail(__builtin_return_address(0), size) ? NULL : __libc_memalign(alignment, size);
    if (found == NULL) {
        return ENOMEM;
    }
    *block = found;
    return 0;
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (must_fail(__builtin_return_address(0), size)) {
        return MAP_FAILED;
    }
    return (void*)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}
