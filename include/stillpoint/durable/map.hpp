#pragma once
// A std::map that survives. Changes are durable on return; the caller synchronises as with std::map.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <functional>
#include <map>
#include <utility>

#include "stillpoint/durable/element.hpp"

namespace stillpoint::durable {

/// Get one with pronto::get_object<durable::map<Key, Value>>(name). Elements are read as with std::map, and changed by these methods only.
template <class Key, class Value>
class map : public pronto::object<map<Key, Value>> {
    using Values = std::map<stored<Key>, stored<Value>, std::less<>, pronto::allocator<std::pair<const stored<Key>, stored<Value>>>>;

public:
    using value_type = typename Values::value_type;
    using const_iterator = typename Values::const_iterator;

    static constexpr auto type_name = pronto::text("durable::map<") + element_name<Key> + pronto::text(",") + element_name<Value> +
                                      pronto::text(">");
    static constexpr auto methods()
    {
        using pronto::method;
        constexpr auto unchanged = pronto::promise::unchanged_by_exception;
        return pronto::methods(method<&map::insert>("insert", unchanged), method<&map::insert_or_assign>("insert_or_assign"),
                               method<&map::erase>("erase", unchanged), method<&map::clear>("clear"));
    }

    /// False: the key is there, and keeps its value.
    bool insert(parameter<Key> key, parameter<Value> value)
    {
        return this->template run<&map::insert>(key, value, [&] { return values_.try_emplace(kept<Key>(key), kept<Value>(value)).second; });
    }
    /// True: the key is new.
    bool insert_or_assign(parameter<Key> key, parameter<Value> value)
    {
        return this->template run<&map::insert_or_assign>(
            key, value, [&] { return values_.insert_or_assign(kept<Key>(key), kept<Value>(value)).second; });
    }
    /// False: there is no such key. Nothing is logged then.
    bool erase(parameter<Key> key)
    {
        const const_iterator found = values_.find(key);
        if (found == values_.end()) {
            return false;
        }
        this->template run<&map::erase>(key, [&] { values_.erase(found); });
        return true;
    }
    void clear()
    {
        this->template run<&map::clear>([&] { values_.clear(); });
    }

    [[nodiscard]] const_iterator find(parameter<Key> key) const { return values_.find(key); }
    [[nodiscard]] const_iterator lower_bound(parameter<Key> key) const { return values_.lower_bound(key); }
    [[nodiscard]] const_iterator upper_bound(parameter<Key> key) const { return values_.upper_bound(key); }
    [[nodiscard]] bool contains(parameter<Key> key) const { return values_.contains(key); }
    /// Throws std::out_of_range.
    [[nodiscard]] const stored<Value>& at(parameter<Key> key) const
    {
        const const_iterator found = values_.find(key);
        if (found == values_.end()) {
            throw std::out_of_range("durable::map has no such key");
        }
        return found->second;
    }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] const_iterator begin() const noexcept { return values_.begin(); }
    [[nodiscard]] const_iterator end() const noexcept { return values_.end(); }
    bool operator==(const map&) const = default;

private:
    Values values_;
};

}  // namespace stillpoint::durable

#endif
