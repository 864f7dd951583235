#pragma once
// A queue, first in first out, that survives, for many threads. Changes are durable on return; threads that come at the same time share a
// fence.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstddef>
#include <deque>
#include <optional>
#include <type_traits>
#include <utility>

#include "stillpoint/durable/element.hpp"

namespace stillpoint::durable {

/// Get one with pronto::get_object<durable::queue<T>>(name).
/// Threads: all functions, from any; they take turns (pronto::object::combine). What they return is durable.
/// Errors of all: pronto::not_durable, pronto::refused; see pronto::object::op_begin.
template <class T>
class queue : public pronto::object<queue<T>> {
public:
    using value_type = stored<T>;

    static constexpr auto type_name = pronto::text("durable::queue<") + element_name<T> + pronto::text(">");
    static constexpr auto methods()
    {
        using pronto::method, pronto::promise;
        return pronto::methods(method<&queue::push>("push", promise::unchanged_by_exception), method<&queue::pop>("pop"),
                               method<&queue::clear>("clear"));
    }

    void push(parameter<T> value)
    {
        this->template combine<&queue::push>(value, [&] { values_.push_back(kept<T>(value)); });
    }
    /// The oldest element, taken out. Nothing is logged where the queue is empty.
    std::optional<T> pop()
    {
        return this->template combine_if<&queue::pop>([&]() -> std::optional<T> {
            if (values_.empty()) {
                return std::nullopt;
            }
            std::optional<T> oldest(taken<T>(std::move(values_.front())));
            values_.pop_front();
            return oldest;
        });
    }
    void clear()
    {
        this->template combine<&queue::clear>([&] { values_.clear(); });
    }

    /// A copy of the oldest element.
    [[nodiscard]] std::optional<T> front() const
    {
        return this->combine_read([&]() -> std::optional<T> {
            if (values_.empty()) {
                return std::nullopt;
            }
            return taken<T>(value_type(values_.front()));
        });
    }
    [[nodiscard]] std::size_t size() const
    {
        return this->combine_read([&] { return values_.size(); });
    }
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// Calls visit(element) for each, the oldest first, while other threads wait. It calls nothing of the queue.
    template <class Visit>
    void for_each(Visit visit) const
    {
        this->combine_read([&] {
            for (const value_type& value : values_) {
                visit(value);
            }
        });
    }
    /// The caller keeps other threads from changing either.
    bool operator==(const queue&) const = default;

private:
    std::deque<value_type, pronto::allocator<value_type>> values_;
};

}  // namespace stillpoint::durable

#endif
