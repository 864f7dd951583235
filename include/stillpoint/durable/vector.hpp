#pragma once
// A std::vector that survives. Changes are durable on return; the caller synchronises as with std::vector.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <stdexcept>
#include <vector>

#include "stillpoint/durable/element.hpp"

namespace stillpoint::durable {

/// Get one with pronto::get_object<durable::vector<T>>(name). Elements are read as with std::vector, and changed by these methods only.
template <class T>
class vector : public pronto::object<vector<T>> {
public:
    using value_type = stored<T>;
    using const_iterator = typename pronto::vector<value_type>::const_iterator;

    static constexpr auto type_name = pronto::text("durable::vector<") + element_name<T> + pronto::text(">");
    static constexpr auto methods()
    {
        using pronto::method, pronto::promise;
        return pronto::methods(method<&vector::push_back>("push_back", promise::unchanged_by_exception),
                               method<&vector::pop_back>("pop_back"), method<&vector::set>("set"), method<&vector::insert>("insert"),
                               method<&vector::erase>("erase"), method<&vector::resize>("resize"), method<&vector::clear>("clear"));
    }

    void push_back(parameter<T> value)
    {
        this->template run<&vector::push_back>(value, [&] { values_.push_back(kept<T>(value)); });
    }
    /// Throws std::out_of_range where it is empty; so do all that take a place beyond the end.
    void pop_back()
    {
        require(!values_.empty());
        this->template run<&vector::pop_back>([&] { values_.pop_back(); });
    }
    void set(std::size_t place, parameter<T> value)
    {
        require(place < values_.size());
        this->template run<&vector::set>(place, value, [&] { values_[place] = kept<T>(value); });
    }
    void insert(std::size_t place, parameter<T> value)
    {
        require(place <= values_.size());
        this->template run<&vector::insert>(place, value, [&] { values_.insert(iterator_at(place), kept<T>(value)); });
    }
    void erase(std::size_t place)
    {
        require(place < values_.size());
        this->template run<&vector::erase>(place, [&] { values_.erase(iterator_at(place)); });
    }
    void resize(std::size_t count)
    {
        this->template run<&vector::resize>(count, [&] { values_.resize(count); });
    }
    void clear()
    {
        this->template run<&vector::clear>([&] { values_.clear(); });
    }

    [[nodiscard]] const value_type& operator[](std::size_t place) const { return values_[place]; }
    [[nodiscard]] const value_type& at(std::size_t place) const { return values_.at(place); }
    [[nodiscard]] const value_type& front() const { return values_.front(); }
    [[nodiscard]] const value_type& back() const { return values_.back(); }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] const_iterator begin() const noexcept { return values_.begin(); }
    [[nodiscard]] const_iterator end() const noexcept { return values_.end(); }
    bool operator==(const vector&) const = default;

private:
    static void require(bool is_there)
    {
        if (!is_there) {
            throw std::out_of_range("durable::vector has no element there");
        }
    }
    [[nodiscard]] const_iterator iterator_at(std::size_t place) const { return values_.begin() + static_cast<std::ptrdiff_t>(place); }

    pronto::vector<value_type> values_;
};

}  // namespace stillpoint::durable

#endif
