// The C API of the engine respct (stillpoint/respct.h). Without a pool each call works on ordinary memory.

#include <cerrno>

#include "core/logged_words.hpp"
#include "runtime/api_export.hpp"
#include "runtime/respct_checks.hpp"
#include "stillpoint/respct.h"

STILLPOINT_API void* sp_respct_allocate(sp_respct_layout* layout, size_t count)
{
    void* const block = sp_aligned_alloc(layout->alignment_bytes, layout->size_bytes * count);
    stillpoint::respct_checks_note_allocated(block, layout->size_bytes * count);
    return block;
}
STILLPOINT_API void* sp_respct_allocate_zeroed(sp_respct_layout* layout, size_t count)
{
    void* const block = sp_calloc(count, layout->size_bytes);
    stillpoint::respct_checks_note_allocated(block, layout->size_bytes * count);
    return block;
}
STILLPOINT_API void* sp_respct_root(const char* handle, sp_respct_layout* layout, size_t count)
{
    return sp_root(handle, layout->size_bytes * count);
}
STILLPOINT_API uint64_t sp_respct_first_update(void*) { return sp_respct_running; }
STILLPOINT_API void sp_respct_add_modified(const void* address, size_t size_bytes)
{
    stillpoint::respct_checks_note_modified(address, size_bytes);
}
STILLPOINT_API void sp_respct_restart_point(int, const char*, unsigned)
{
    stillpoint::respct_checks_note_restart_point();
}
STILLPOINT_API void sp_respct_bind_frame(void*) {}
STILLPOINT_API void sp_respct_checkpoint_allow(void) { stillpoint::respct_checks_note_allow(); }
STILLPOINT_API void sp_respct_checkpoint_prevent(pthread_mutex_t*) { stillpoint::respct_checks_note_prevent(); }
