#pragma once
// Coroutines of the model: a simulated thread is one, and so is each part of a protocol that takes time.
//
// GCC 12 miscompiles some expressions in which a co_await is only a part: keep each co_await a statement, an initializer or a whole
// condition, and compute its arguments before where they are calls. Builds of GCC and Clang must print the same figures.

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace bench::model {

template <class T>
class Task;

namespace detail {

/// Shared by all promises: the coroutine that waits for this one, resumed at its end without growing the stack.
class PromiseBase {
public:
    struct Final {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept
        {
            const std::coroutine_handle<> waiting = ended.promise().waiting_;
            return waiting ? waiting : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };

    std::suspend_always initial_suspend() const noexcept { return {}; }
    Final final_suspend() const noexcept { return {}; }
    /// Nothing in the model throws while it runs.
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    void set_waiting(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }

private:
    std::coroutine_handle<> waiting_;
};

template <class T>
class Promise : public PromiseBase {
public:
    Task<T> get_return_object();
    void return_value(T value) { value_ = std::move(value); }
    T result() { return std::move(*value_); }

private:
    std::optional<T> value_;
};

template <>
class Promise<void> : public PromiseBase {
public:
    Task<void> get_return_object();
    void return_void() const noexcept {}
    void result() const noexcept {}
};

}  // namespace detail

/// A coroutine that starts when it is awaited, or by resume(). The object owns the frame.
template <class T = void>
class [[nodiscard]] Task {
public:
    using promise_type = detail::Promise<T>;
    using Handle = std::coroutine_handle<promise_type>;

    explicit Task(Handle handle) noexcept : handle_(handle) {}
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task& operator=(Task&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Task()
    {
        if (handle_) {
            handle_.destroy();
        }
    }

    [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return handle_; }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) noexcept
    {
        handle_.promise().set_waiting(waiting);
        return handle_;
    }
    T await_resume() { return handle_.promise().result(); }

private:
    Handle handle_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object()
{
    return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}

inline Task<void> Promise<void>::get_return_object() { return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this)); }

}  // namespace detail

}  // namespace bench::model
