#pragma once
#include <vector>
#include "stillpoint/pronto.hpp"
namespace pronto = stillpoint::pronto;
template <class T>
class wrapped_vector : public pronto::object<wrapped_vector<T>> {
    std::vector<T, pronto::allocator<T>> values_;

public:
    static constexpr auto methods()
    {
        using pronto::method;
        return pronto::methods(method<&wrapped_vector::push_back>("push_back"), method<&wrapped_vector::pop_back>("pop_back"),
                               method<&wrapped_vector::set>("set"), method<&wrapped_vector::clear>("clear"));
    }
    // clang-format off
    void push_back(const T& value) { this->template run<&wrapped_vector::push_back>(value, [&] { values_.push_back(value); }); }
    void pop_back() { this->template run<&wrapped_vector::pop_back>([&] { values_.pop_back(); }); }
    void set(std::size_t at, const T& value) { this->template run<&wrapped_vector::set>(at, value, [&] { values_.at(at) = value; }); }
    void clear() { this->template run<&wrapped_vector::clear>([&] { values_.clear(); }); }
    // clang-format on
    const T& operator[](std::size_t place) const { return values_[place]; }
    std::size_t size() const { return values_.size(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
};
