// The C API of the engine respct (stillpoint/respct.h). Without a pool each call works on ordinary memory.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/logged_words.hpp"
#include "core/store_marks.hpp"
#include "engines/respct/checks.hpp"
#include "engines/respct/layouts.hpp"
#include "engines/respct/thread.hpp"
#include "os/log.hpp"
#include "runtime/api_export.hpp"
#include "runtime/fase.hpp"
#include "runtime/named_objects.hpp"
#include "runtime/session_state.hpp"
#include "runtime/volatile_memory.hpp"
#include "stillpoint/respct.h"

using stillpoint::fail;
using stillpoint::Heap;
using stillpoint::Result;
using stillpoint::Session;
using stillpoint::used_session;

namespace respct = stillpoint::respct;

namespace {

/// The session that keeps memory by lines, or nullptr: then a call works on what malloc gives.
Session* lines_session() noexcept
{
    Session* const session = used_session();
    return session != nullptr && respct::is_active() ? session : nullptr;
}

Result<void> size_of(const sp_respct_layout* layout, size_t count, size_t& bytes)
{
    if (layout == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "an object with logged variables needs a layout");
    }
    if (__builtin_mul_overflow(size_t{layout->size_bytes}, count, &bytes)) {
        return fail(SP_E_NO_MEMORY, ENOMEM, "{} objects of {} bytes are more memory than is possible", count, layout->size_bytes);
    }
    return {};
}

/// The library's part of a layout: its number in the open pool, and after it the heap's key of one small object.
constexpr unsigned tag_shift = 16;

bool is_of(const Session& session, const sp_respct_layout& layout) noexcept
{
    return __atomic_load_n(&layout.session, __ATOMIC_ACQUIRE) == session.serial;
}

/// The layout's number in the open pool; found once in a session.
Result<std::uint16_t> number_of(Session& session, sp_respct_layout& layout)
{
    if (is_of(session, layout)) {
        return static_cast<std::uint16_t>(__atomic_load_n(&layout.type, __ATOMIC_RELAXED));
    }
    auto number = respct::find_layout(*session.heap, layout);
    if (number) {
        const std::uint32_t tag = session.heap->tag_of_typed(*number, layout.alignment_bytes, layout.size_bytes);
        __atomic_store_n(&layout.type, *number | tag << tag_shift, __ATOMIC_RELAXED);
        __atomic_store_n(&layout.session, session.serial, __ATOMIC_RELEASE);
    }
    return number;
}

/// Inside a FASE.
Result<void*> allocate_in(Session& session, sp_respct_layout& layout, size_t bytes)
{
    auto number = number_of(session, layout);
    if (!number) {
        return stillpoint::pass_on(number.error());
    }
    void* const block = session.heap->allocate_typed(*number, layout.alignment_bytes, bytes == 0 ? 1 : bytes);
    if (block == nullptr) {
        return stillpoint::pass_on(Heap::last_failure());
    }
    return block;
}

/// One object, as nearly all are. nullptr: allocate() goes its whole way, and says why.
void* allocate_one(sp_respct_layout& layout) noexcept
{
    Session* const session = lines_session();
    if (session == nullptr || !is_of(*session, layout) || respct::checks::watched()) {
        return nullptr;
    }
    const std::uint32_t tag = __atomic_load_n(&layout.type, __ATOMIC_RELAXED) >> tag_shift;
    respct::ensure_inside();
    return tag != 0 ? session->heap->allocate_tagged(static_cast<std::uint16_t>(tag)) : nullptr;
}

void* allocate(sp_respct_layout* layout, size_t count, bool zeroed)
{
    size_t bytes = 0;
    if (auto sized = size_of(layout, count, bytes); !sized) {
        stillpoint::report_as_errno(sized.error());
        return nullptr;
    }
    Session* const session = lines_session();
    if (session == nullptr) {
        void* const block = stillpoint::allocate_volatile(layout->alignment_bytes, bytes);
        if (block != nullptr && zeroed) {
            std::memset(block, 0, bytes);
            stillpoint::note_store(block, bytes);
        }
        respct::checks::note_allocated(block, bytes);
        return block;
    }
    respct::ensure_inside();
    auto block = allocate_in(*session, *layout, bytes);
    if (!block) {
        stillpoint::report_as_errno(block.error());
        return nullptr;
    }
    if (zeroed) {
        session->heap->clear_block(*block, bytes);
    }
    respct::checks::note_allocated(*block, bytes);
    return *block;
}

/// The thread is inside: the epoch does not change.
[[gnu::always_inline]] inline void note_line_of(respct::Thread& thread, std::uintptr_t address, std::uint64_t running) noexcept
{
    thread.has_written = true;
    respct::note_line(thread, address & ~std::uintptr_t{stillpoint::cache_line_bytes - 1}, running >> 1);
}

[[gnu::always_inline]] inline std::uint64_t note_update(respct::Thread& thread, void* variable) noexcept
{
    const std::uint64_t running = respct::running();
    if (stillpoint_is_persistent(variable)) [[likely]] {  // Ordinary memory is not written back.
        note_line_of(thread, reinterpret_cast<std::uintptr_t>(variable), running);
    }
    return running;
}

[[gnu::noinline]] std::uint64_t first_update_of_newcomer(void* variable) noexcept
{
    return respct::is_active() ? note_update(respct::ensure_inside(), variable) : respct::running();
}

[[gnu::noinline]] void add_modified_lines(const void* address, size_t size_bytes) noexcept
{
    respct::checks::note_modified(address, size_bytes);
    if (!respct::is_active() || !stillpoint_is_persistent(address)) {
        return;
    }
    respct::ensure_inside();
    // As far as there is memory: what lies after was not written.
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - stillpoint::window_base;
    const std::uint64_t end = respct::image_bytes.load(std::memory_order_relaxed);
    if (offset < end) {
        respct::note_lines(address, std::min<std::uint64_t>(size_bytes, end - offset));
    }
}

/// Called at every step of the program: a function that begins in the middle of a cache line takes a quarter longer.
#define HOT __attribute__((aligned(64)))

void unlock_mutex(void* mutex) noexcept { pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex)); }
void lock_mutex(void* mutex) noexcept { pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex)); }

}  // namespace

STILLPOINT_API void* sp_respct_allocate(sp_respct_layout* layout, size_t count)
{
    if (count == 1 && layout != nullptr) [[likely]] {
        if (void* const block = allocate_one(*layout); block != nullptr) [[likely]] {
            return block;
        }
    }
    return allocate(layout, count, false);
}

STILLPOINT_API void* sp_respct_allocate_zeroed(sp_respct_layout* layout, size_t count) { return allocate(layout, count, true); }

STILLPOINT_API void* sp_respct_root(const char* handle, sp_respct_layout* layout, size_t count)
{
    size_t bytes = 0;
    if (auto sized = size_of(layout, count, bytes); !sized) {
        stillpoint::report_as_errno(sized.error());
        return nullptr;
    }
    Session* const session = lines_session();
    if (session == nullptr) {
        return stillpoint::named_object(handle, bytes, layout->alignment_bytes);
    }
    respct::ensure_inside();
    struct Request {
        sp_respct_layout& layout;
        size_t bytes;
    } request{*layout, bytes};
    void* const object = stillpoint::named_object_of(
        handle, bytes,
        [](void* context, Session& here) -> Result<void*> {
            auto& wanted = *static_cast<Request*>(context);
            auto block = allocate_in(here, wanted.layout, wanted.bytes);
            if (block) {
                here.heap->clear_block(*block, wanted.bytes);
            }
            return block;
        },
        &request);
    if (object == nullptr) {
        return nullptr;
    }
    // Found again: recovery goes by the layout that it was made with.
    auto number = number_of(*session, *layout);
    if (number && *number != session->heap->layout_number_of(object)) {
        number = fail(SP_E_HANDLE_SIZE, 0,
                      "the durable object \"{}\" was made with other logged variables or locks than type {} has: was its type changed?",
                      handle, layout->type_name);
    }
    if (!number) {
        stillpoint::report_as_errno(number.error());
        return nullptr;
    }
    return object;
}

STILLPOINT_API HOT uint64_t sp_respct_first_update(void* variable)
{
    if (!respct::takes_part()) [[unlikely]] {
        return first_update_of_newcomer(variable);
    }
    return note_update(*respct::own_thread, variable);
}

STILLPOINT_API HOT void sp_respct_add_modified(const void* address, size_t size_bytes)
{
    constexpr std::size_t line_bytes = stillpoint::cache_line_bytes;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const bool is_in_one_line = size_bytes - 1 < line_bytes - begin % line_bytes;
    if (is_in_one_line && begin - stillpoint::window_base < respct::image_bytes.load(std::memory_order_relaxed) && respct::takes_part() &&
        !respct::checks::watched()) [[likely]] {
        note_line_of(*respct::own_thread, begin, respct::running());
        return;
    }
    add_modified_lines(address, size_bytes);
}

STILLPOINT_API HOT void sp_respct_restart_point(int id, const char* file, unsigned line)
{
    if (!respct::checks::watched() && respct::pass_restart_point()) [[likely]] {
        return;
    }
    respct::checks::note_restart_point();
    if (respct::is_active()) {
        respct::restart_point(id, file, line);
    }
}

STILLPOINT_API void sp_respct_bind_frame(void* restart_point)
{
    respct::bind_frame(respct::is_active() ? static_cast<std::byte*>(restart_point) : nullptr);
}

STILLPOINT_API void sp_respct_checkpoint_allow(void)
{
    respct::checks::note_allow();
    if (respct::is_active()) {
        respct::allow();
    }
}

STILLPOINT_API void sp_respct_checkpoint_prevent(pthread_mutex_t* mutex)
{
    if (respct::is_active()) {
        respct::prevent(mutex, &unlock_mutex, &lock_mutex);
    }
    respct::checks::note_prevent();
}
