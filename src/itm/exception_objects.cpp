#include "itm/exception_objects.hpp"

#include <algorithm>
#include <cstdint>
#include <cxxabi.h>
#include <exception>
#include <new>
#include <unwind.h>
#include <utility>

/// libsupc++ has it: forgets `catches` handlers of the thread, without destructors.
extern "C" void __cxa_tm_cleanup(void* unthrown_object, void* exception, unsigned catches) noexcept;

namespace stillpoint::itm {

namespace {

/// The beginning of what __cxa_get_globals() returns [Itanium C++ ABI, Exception Handling §2.2.2].
struct ThreadExceptions {
    void* caught;
    unsigned uncaught;
};

ThreadExceptions& of_thread() { return *reinterpret_cast<ThreadExceptions*>(abi::__cxa_get_globals()); }

/// An exception's object follows its header.
void* object_of(void* exception) { return static_cast<_Unwind_Exception*>(exception) + 1; }

}  // namespace

void ExceptionObjects::note_uncaught() noexcept
{
    if (!was_used_) {
        was_used_ = true;
        uncaught_ = of_thread().uncaught;
    }
}

void* ExceptionObjects::allocate(std::size_t bytes)
{
    note_uncaught();
    void* const object = abi::__cxa_allocate_exception(bytes);
    objects_.push_back({static_cast<std::byte*>(object), bytes, false});
    return object;
}

ExceptionObjects::Object* ExceptionObjects::find(const void* object) noexcept
{
    const auto found = std::find_if(objects_.begin(), objects_.end(), [&](const Object& one) { return one.first == object; });
    return found != objects_.end() ? &*found : nullptr;
}

bool ExceptionObjects::contains(const void* place) const noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    return std::any_of(objects_.begin(), objects_.end(),
                       [&](const Object& one) { return address - reinterpret_cast<std::uintptr_t>(one.first) < one.bytes; });
}

void ExceptionObjects::free(void* object) noexcept
{
    std::erase_if(objects_, [&](const Object& one) { return one.first == object; });
    abi::__cxa_free_exception(object);
}

void* ExceptionObjects::begin_catch(void* exception) noexcept
{
    note_uncaught();
    Object* const object = find(object_of(exception));
    ++catches_;
    void* const caught = abi::__cxa_begin_catch(exception);
    if (object != nullptr && !object->is_kept) {
        // The destructor is not instrumented, and would free at once what a rollback frees too: it is called after the commit.
        alignas(std::exception_ptr) std::byte reference[sizeof(std::exception_ptr)];
        ::new (reference) std::exception_ptr(std::current_exception());
        object->is_kept = true;
    }
    return caught;
}

void ExceptionObjects::end_catch()
{
    if (catches_ != 0) {
        --catches_;
    }
    abi::__cxa_end_catch();
}

void ExceptionObjects::forget_all() noexcept
{
    was_used_ = false;
    catches_ = 0;
    for (Object& object : std::exchange(objects_, {})) {
        if (object.is_kept) {
            static_assert(sizeof object.first == sizeof(std::exception_ptr), "a reference to an exception is a pointer to its object");
            reinterpret_cast<std::exception_ptr*>(&object.first)->~exception_ptr();
        }
    }
}

void ExceptionObjects::delete_all(void* exception) noexcept
{
    if (catches_ != 0) {
        __cxa_tm_cleanup(nullptr, nullptr, catches_);
    }
    if (exception != nullptr && find(object_of(exception)) == nullptr) {
        // Code without instrumentation has thrown it: operator new.
        if (!was_used_) {
            uncaught_ = of_thread().uncaught - 1;
            was_used_ = true;
        }
        _Unwind_DeleteException(static_cast<_Unwind_Exception*>(exception));
    }
    // Without their destructors: what those would free is freed as the transaction's blocks. Those that are kept have outlived the
    // clean-up of their handlers.
    for (const Object& object : objects_) {
        abi::__cxa_free_exception(object.first);
    }
    objects_.clear();
    of_thread().uncaught = uncaught_;
    forget_all();
}

}  // namespace stillpoint::itm
