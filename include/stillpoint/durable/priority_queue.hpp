#pragma once
// A std::priority_queue that survives. Changes are durable on return; the caller synchronises as with std::priority_queue.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "stillpoint/durable/element.hpp"

namespace stillpoint::durable {

/// Get one with pronto::get_object<durable::priority_queue<T>>(name). `Compare` is part of the pool: it stays what it was.
template <class T, class Compare = std::less<>>
class priority_queue : public pronto::object<priority_queue<T, Compare>> {
public:
    using value_type = stored<T>;

    static constexpr auto type_name = [] {
        constexpr auto start = pronto::text("durable::priority_queue<") + element_name<T>;
        if constexpr (std::is_same_v<Compare, std::less<>>) {
            return start + pronto::text(">");
        } else if constexpr (std::is_same_v<Compare, std::greater<>>) {
            return start + pronto::text(",greater>");
        } else {
            return start + pronto::text(",") + pronto::class_name<Compare>() + pronto::text(">");
        }
    }();
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&priority_queue::push>("push"), pronto::method<&priority_queue::pop>("pop"),
                               pronto::method<&priority_queue::clear>("clear"));
    }

    void push(parameter<T> value)
    {
        this->template run<&priority_queue::push>(value, [&] {
            heap_.push_back(kept<T>(value));
            std::push_heap(heap_.begin(), heap_.end(), Compare());
        });
    }
    /// The greatest element, taken out. Throws std::out_of_range where there is none; so does top().
    T pop()
    {
        require_one();
        return this->template run<&priority_queue::pop>([&] {
            std::pop_heap(heap_.begin(), heap_.end(), Compare());
            T greatest = taken<T>(std::move(heap_.back()));
            heap_.pop_back();
            return greatest;
        });
    }
    void clear()
    {
        this->template run<&priority_queue::clear>([&] { heap_.clear(); });
    }

    [[nodiscard]] const value_type& top() const
    {
        require_one();
        return heap_.front();
    }
    [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    bool operator==(const priority_queue&) const = default;

private:
    void require_one() const
    {
        if (heap_.empty()) {
            throw std::out_of_range("durable::priority_queue is empty");
        }
    }

    pronto::vector<value_type> heap_;
};

}  // namespace stillpoint::durable

#endif
