#include "engines/respct/updated_variables.hpp"

#include <cstring>
#include <mutex>
#include <sys/mman.h>

#include "core/units.hpp"
#include "engines/respct/lock_sets.hpp"
#include "os/futex.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/held_locks.hpp"

namespace stillpoint::updated_variables {

namespace {

/// Logged variables have at least this size and alignment.
constexpr std::size_t granule_bytes = 16;
constexpr std::uint64_t window_bytes = std::uint64_t{1} << SP_WINDOW_SHIFT;

enum Fact : std::uint16_t {
    initialised = 1,
    updated = 2,  ///< since its memory is new
    shared = 4,   ///< by more than one thread; `locks` counts
};

struct Variable {
    const char* file;  ///< with `line`: of the last update or init
    const ThreadRecord* thread;  ///< that made it; nullptr: none has
    int thread_id;     ///< of the kernel: records are used again
    std::uint32_t locks;  ///< a number of `lock_sets`: common to all updates so far
    std::uint32_t line;
    std::uint16_t facts;
};
static_assert(sizeof(Variable) == 32);

constinit os::FutexLock guard;
// Guarded:
constinit LockSets lock_sets;
constinit Variable* table = nullptr;

Variable& state_of(const void* variable) noexcept
{
    return table[(reinterpret_cast<std::uintptr_t>(variable) & (window_bytes - 1)) / granule_bytes];
}

bool is_alive(const ThreadRecord* thread, int thread_id) noexcept
{
    return thread != nullptr && thread->state.load(std::memory_order_relaxed) == ThreadRecord::live &&
           thread->thread_id.load(std::memory_order_relaxed) == thread_id;
}

bool has_other_threads(const ThreadRecord* own) noexcept
{
    for (ThreadWalk walk; walk.current() != nullptr; walk.advance()) {
        if (walk.current() != own && walk.current()->state.load(std::memory_order_relaxed) == ThreadRecord::live) {
            return true;
        }
    }
    return false;
}

void take(Variable& state, const ThreadRecord& own, Line line) noexcept
{
    state.file = line.file;
    state.line = line.number;
    state.thread = &own;
    state.thread_id = own.thread_id.load(std::memory_order_relaxed);
    state.facts |= updated;
}

/// Under `guard`. True: the locks are enough.
bool note_locks(Variable& state, const ThreadRecord& own) noexcept
{
    const bool is_own = state.thread == &own && state.thread_id == own.thread_id.load(std::memory_order_relaxed);
    if ((state.facts & shared) == 0 && (is_own || !is_alive(state.thread, state.thread_id))) {
        return true;
    }
    const held_locks::Locks held = held_locks::of_this_thread();
    if (!held.is_complete) {
        return true;
    }
    const LockSets::Locks locks(held.lock.data(), held.count);
    state.locks = (state.facts & shared) == 0 ? lock_sets.number_of(locks) : lock_sets.common(state.locks, locks);
    state.facts |= shared;
    if (state.locks == LockSets::empty && !has_other_threads(&own)) {
        state.facts &= static_cast<std::uint16_t>(~shared);  // The threads that shared it have ended.
        return true;
    }
    return state.locks != LockSets::empty;
}

}  // namespace

bool begin() noexcept
{
    const std::lock_guard lock(guard);
    if (table == nullptr) {
        void* const memory = mmap(nullptr, window_bytes / granule_bytes * sizeof(Variable), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            return false;
        }
        table = static_cast<Variable*>(memory);
        held_locks::begin();
    }
    return true;
}

Conflict update(const void* variable, Line line) noexcept
{
    const ThreadRecord* const own = fase::own_record != nullptr ? fase::own_record : attach_thread();
    const std::lock_guard lock(guard);
    if (own == nullptr || table == nullptr) {
        return {};
    }
    Variable& state = state_of(variable);
    const Conflict other{state.file, state.line};
    if (!note_locks(state, *own)) {
        return other;
    }
    take(state, *own, line);
    return {};
}

Conflict init(const void* variable, Line line) noexcept
{
    const ThreadRecord* const own = fase::own_record != nullptr ? fase::own_record : attach_thread();
    const std::lock_guard lock(guard);
    if (own == nullptr || table == nullptr) {
        return {};
    }
    Variable& state = state_of(variable);
    if ((state.facts & initialised) != 0) {
        return {state.file, state.line};
    }
    state.facts = initialised;
    take(state, *own, line);
    return {};
}

void forget(const void* begin, std::size_t size_bytes) noexcept
{
    const std::lock_guard lock(guard);
    if (table == nullptr || size_bytes == 0) {
        return;
    }
    auto* const first = reinterpret_cast<std::byte*>(&state_of(begin));
    std::byte* const end = first + (size_bytes + granule_bytes - 1) / granule_bytes * sizeof(Variable);
    const auto pages_begin = round_up(reinterpret_cast<std::uintptr_t>(first), page_bytes);
    const auto pages_end = reinterpret_cast<std::uintptr_t>(end) & ~(page_bytes - 1);
    if (pages_begin >= pages_end) {
        std::memset(first, 0, static_cast<std::size_t>(end - first));
        return;
    }
    madvise(reinterpret_cast<void*>(pages_begin), pages_end - pages_begin, MADV_DONTNEED);
    std::memset(first, 0, pages_begin - reinterpret_cast<std::uintptr_t>(first));
    std::memset(reinterpret_cast<void*>(pages_end), 0, reinterpret_cast<std::uintptr_t>(end) - pages_end);
}

}  // namespace stillpoint::updated_variables
