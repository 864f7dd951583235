// The C API of the engine respct (stillpoint/respct.h). Without a pool each call works on ordinary memory.

#include <cerrno>

#include "core/logged_words.hpp"
#include "runtime/api_export.hpp"
#include "stillpoint/respct.h"

STILLPOINT_API void* sp_respct_allocate(sp_respct_layout* layout, size_t count)
{
    return sp_aligned_alloc(layout->alignment_bytes, layout->size_bytes * count);
}
STILLPOINT_API void* sp_respct_allocate_zeroed(sp_respct_layout* layout, size_t count)
{
    return sp_calloc(count, layout->size_bytes);
}
STILLPOINT_API void* sp_respct_root(const char* handle, sp_respct_layout* layout, size_t count)
{
    return sp_root(handle, layout->size_bytes * count);
}
STILLPOINT_API uint64_t sp_respct_first_update(void*) { return sp_respct_running; }
STILLPOINT_API void sp_respct_add_modified(const void*, size_t) {}
STILLPOINT_API void sp_respct_restart_point(int, const char*, unsigned) {}
STILLPOINT_API void sp_respct_bind_frame(void*) {}
STILLPOINT_API void sp_respct_checkpoint_allow(void) {}
STILLPOINT_API void sp_respct_checkpoint_prevent(pthread_mutex_t*) {}
STILLPOINT_API void sp_respct_check_update(const void*, unsigned, const char*, unsigned) {}
STILLPOINT_API void sp_respct_check_init(const void*, unsigned, const char*, unsigned) {}
STILLPOINT_API void sp_respct_check_modified(const void*, size_t, const char*, unsigned) {}
STILLPOINT_API void sp_respct_check_wait(const char*, unsigned) {}
