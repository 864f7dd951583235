#pragma once
// ResPCT for C++: logged variables, restart points, frames. respct.h has the words, the rules and the costs.
//
//   struct Node { respct::logged<Node*> next; std::uint64_t key; };
//   Node* node = respct::make<Node>();           // durable
//   node->key = 1; respct::add_modified(node->key);
//   node->next = first;                          // logged: a crash rolls it back
//   respct::RP(1);                               // a checkpoint may be taken here
//
// Checked form: in a build without optimisation, or with STILLPOINT_RESPCT_CHECKED=1, wrong use ends the program with the line.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstddef>
#include <cstdint>
#include <new>
#include <source_location>
#include <typeinfo>
#include <type_traits>
#include <utility>

#include "stillpoint/respct.h"
#include "stillpoint/respct_logged.hpp"

namespace stillpoint::respct {
inline namespace STILLPOINT_RESPCT_FORM {

/// sp_respct_mutex. Usable as std::mutex is.
class mutex {
public:
    mutex() noexcept { static_cast<void>(detail::Discovery::note(this, SP_RESPCT_MUTEX, sizeof *this)); }
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex() = default;

    void lock() noexcept { sp_respct_lock(&native_); }
    [[nodiscard]] bool try_lock() noexcept { return sp_respct_try_lock(&native_); }
    void unlock() noexcept { sp_respct_unlock(&native_); }
    [[nodiscard]] sp_respct_mutex* native_handle() noexcept { return &native_; }

private:
    sp_respct_mutex native_{};
};

/// sp_respct_condition. Waits: critical_section.
class condition {
public:
    condition() noexcept { static_cast<void>(detail::Discovery::note(this, SP_RESPCT_CONDITION, sizeof *this)); }
    condition(const condition&) = delete;
    condition& operator=(const condition&) = delete;
    ~condition() = default;

    void notify_one() noexcept { sp_respct_notify_one(&native_); }
    void notify_all() noexcept { sp_respct_notify_all(&native_); }
    [[nodiscard]] sp_respct_condition* native_handle() noexcept { return &native_; }

private:
    sp_respct_condition native_{};
};

// ---- Durable objects --------------------------------------------------------------------------

/// The exception of make(), make_zeroed_array() and root(); what() is sp_last_error() of the thread that catches it.
class allocation_failure : public std::bad_alloc {
public:
    [[nodiscard]] const char* what() const noexcept override { return sp_last_error(); }
};

/// The layout of T, found once by default-constructing one in ordinary memory: constructors of logged, mutex and condition members
/// tell where they lie. Specialise it for a T without a default constructor, or with one that has effects; `construct` makes any T
/// at `place`, `destroy` unmakes it.
template <class T>
struct example {
    static_assert(std::is_default_constructible_v<T>,
                  "the members of a durable type are found by default-constructing one; give it a default constructor, or specialise "
                  "stillpoint::respct::example<T>");
    static void construct(void* place) { ::new (place) T(); }
    static void destroy(T& made) { made.~T(); }
};

template <class T>
[[nodiscard]] sp_respct_layout& layout_of()
{
    static_assert(alignof(T) <= 4096, "a durable type's alignment is at most 4096 bytes");
    static detail::Discovery* const found = [] {
        void* const place = ::operator new(sizeof(T), std::align_val_t{alignof(T)});
        auto* const discovery = new detail::Discovery(place, sizeof(T));
        example<T>::construct(place);
        example<T>::destroy(*std::launder(static_cast<T*>(place)));
        ::operator delete(place, std::align_val_t{alignof(T)});
        discovery->finish();
        return discovery;
    }();
    static sp_respct_layout layout{typeid(T).name(), sizeof(T), alignof(T), found->members, found->count, 0, 0};
    return layout;
}

/// After writes to durable memory that is not logged [§3.2.2]: see sp_respct_add_modified.
inline void add_modified(const void* address, std::size_t size_bytes,
                         [[maybe_unused]] std::source_location where = std::source_location::current()) noexcept
{
    if constexpr (detail::is_checked) {
        sp_respct_check_modified(address, size_bytes, where.file_name(), where.line());
    }
    sp_respct_add_modified(address, size_bytes);
}
template <class T>
    requires(!std::is_pointer_v<T>)
void add_modified(const T& written, std::source_location where = std::source_location::current()) noexcept
{
    add_modified(&written, sizeof written, where);
}

/// A new durable object. Throws allocation_failure, and what T's constructor throws. What the constructor writes
/// becomes durable with the epoch; what is written later and not logged needs add_modified.
template <class T, class... Arguments>
[[nodiscard]] T* make(Arguments&&... arguments)
{
    void* const place = sp_respct_allocate(&layout_of<T>(), 1);
    if (place == nullptr) {
        throw allocation_failure();
    }
    T* made = nullptr;
    try {
        made = ::new (place) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
        sp_free(place);
        throw;
    }
    sp_respct_add_modified(made, sizeof(T));
    return made;
}

/// `count` objects of zeroes, without a constructor: right for types whose zeroes are a value, as those of logged numbers and pointers
/// and of locks are. Throws allocation_failure.
template <class T>
[[nodiscard]] T* make_zeroed_array(std::size_t count)
{
    void* const place = sp_respct_allocate_zeroed(&layout_of<T>(), count);
    if (place == nullptr) {
        throw allocation_failure();
    }
    return std::launder(static_cast<T*>(place));
}

/// Destroys and frees what make() made. nullptr is allowed. The memory is not given out again before that is durable.
template <class T>
void destroy(T* object) noexcept
{
    if (object != nullptr) {
        object->~T();
        sp_free(object);
    }
}

/// The object of that name (1 to 79 bytes), of zeroes at the first call. Throws allocation_failure: see sp_respct_root.
template <class T>
[[nodiscard]] T* root(const char* handle, std::size_t count = 1)
{
    void* const found = sp_respct_root(handle, &layout_of<T>(), count);
    if (found == nullptr) {
        throw allocation_failure();
    }
    return std::launder(static_cast<T*>(found));
}

// ---- Restart points ----------------------------------------------------------------------------

/// sp_respct_restart_point.
inline void RP(int id, std::source_location where = std::source_location::current()) noexcept
{
    sp_respct_restart_point(id, where.file_name(), where.line());
}

/// Lasts around a call that may block, outside critical sections [§3.3.3].
class blocking_call {
public:
    blocking_call() noexcept { sp_respct_checkpoint_allow(); }
    blocking_call(const blocking_call&) = delete;
    blocking_call& operator=(const blocking_call&) = delete;
    ~blocking_call() { sp_respct_checkpoint_prevent(nullptr); }
};

/// A critical section that may wait for a condition, after Figure 7: a restart point, then the lock. A wait stands in a loop, lets
/// checkpoints happen, and comes before the section's first write, since after a crash the thread comes in again from its start.
class critical_section {
public:
    critical_section(int id, mutex& guard, std::source_location where = std::source_location::current()) noexcept : guard_(guard)
    {
        RP(id, where);
        guard_.lock();
    }
    critical_section(const critical_section&) = delete;
    critical_section& operator=(const critical_section&) = delete;
    ~critical_section() { guard_.unlock(); }

    /// Returns when `ready()` is true.
    template <class Ready>
    void wait(condition& changed, Ready ready, std::source_location where = std::source_location::current())
    {
        while (!ready()) {
            if constexpr (detail::is_checked) {
                sp_respct_check_wait(where.file_name(), where.line());
            }
            sp_respct_wait(changed.native_handle(), guard_.native_handle());
        }
    }

private:
    mutex& guard_;
};

/// A thread's place in its code and its durable locals, under a name: RP() of the thread that made it stores its id here. After a
/// crash the thread that makes it again reads where to go on. One thread at a time has a name's frame.
template <class Locals>
class thread_frame {
    struct Memory {
        logged<int> restart_point;
        Locals locals;
    };

public:
    /// Throws allocation_failure: see root().
    explicit thread_frame(const char* handle) : memory_(root<Memory>(handle)), resumed_at_(memory_->restart_point)
    {
        sp_respct_bind_frame(&memory_->restart_point);
    }
    thread_frame(const thread_frame&) = delete;
    thread_frame& operator=(const thread_frame&) = delete;
    ~thread_frame() { sp_respct_bind_frame(nullptr); }

    /// The restart point at which this thread was when the recovered epoch ended; 0: at the beginning.
    [[nodiscard]] int resumes_at() const noexcept { return resumed_at_; }
    /// The work is done: unless another restart point follows, the next run of this thread starts at the beginning.
    void finish() noexcept { memory_->restart_point = 0; }
    /// The locals of a frame, whichever thread has it: for a thread that reads another's. Throws allocation_failure.
    [[nodiscard]] static Locals& of(const char* handle) { return root<Memory>(handle)->locals; }
    Locals* operator->() const noexcept { return &memory_->locals; }
    Locals& operator*() const noexcept { return memory_->locals; }

private:
    Memory* memory_;
    int resumed_at_;
};

}  // namespace STILLPOINT_RESPCT_FORM
}  // namespace stillpoint::respct

#endif
