#pragma once
// A std::unordered_map that survives. Changes are durable on return; the caller synchronises as with std::unordered_map.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <functional>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "stillpoint/durable/element.hpp"

namespace stillpoint::durable {

/// The hashes of a pool's keys stay as they were computed: a hash of yours gives the same in each build and process.
template <class Key>
struct hash : std::hash<Key> {};
template <>
struct hash<std::string> {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>()(key); }
};

/// Get one with pronto::get_object<durable::unordered_map<Key, Value>>(name). Elements are read as with std::unordered_map, and changed by
/// these methods only.
template <class Key, class Value, class Hash = hash<Key>>
class unordered_map : public pronto::object<unordered_map<Key, Value, Hash>> {
    using Values = std::unordered_map<stored<Key>, stored<Value>, Hash, std::equal_to<>,
                                      pronto::allocator<std::pair<const stored<Key>, stored<Value>>>>;

public:
    using value_type = typename Values::value_type;
    using const_iterator = typename Values::const_iterator;

    static constexpr auto type_name = [] {
        constexpr auto start = pronto::text("durable::unordered_map<") + element_name<Key> + pronto::text(",") + element_name<Value>;
        if constexpr (std::is_same_v<Hash, hash<Key>>) {
            return start + pronto::text(">");
        } else {
            return start + pronto::text(",") + pronto::class_name<Hash>() + pronto::text(">");
        }
    }();
    static constexpr auto methods()
    {
        using pronto::method;
        constexpr auto unchanged = pronto::promise::unchanged_by_exception;
        return pronto::methods(method<&unordered_map::insert>("insert", unchanged),
                               method<&unordered_map::insert_or_assign>("insert_or_assign"),
                               method<&unordered_map::erase>("erase", unchanged), method<&unordered_map::reserve>("reserve", unchanged),
                               method<&unordered_map::clear>("clear"));
    }

    /// False: the key is there, and keeps its value.
    bool insert(parameter<Key> key, parameter<Value> value)
    {
        return this->template run<&unordered_map::insert>(key, value,
                                                          [&] { return values_.try_emplace(kept<Key>(key), kept<Value>(value)).second; });
    }
    /// True: the key is new.
    bool insert_or_assign(parameter<Key> key, parameter<Value> value)
    {
        return this->template run<&unordered_map::insert_or_assign>(
            key, value, [&] { return values_.insert_or_assign(kept<Key>(key), kept<Value>(value)).second; });
    }
    /// False: there is no such key. Nothing is logged then.
    bool erase(parameter<Key> key)
    {
        const const_iterator found = values_.find(key);
        if (found == values_.end()) {
            return false;
        }
        this->template run<&unordered_map::erase>(key, [&] { values_.erase(found); });
        return true;
    }
    /// Room for `count` elements.
    void reserve(std::size_t count)
    {
        this->template run<&unordered_map::reserve>(count, [&] { values_.reserve(count); });
    }
    void clear()
    {
        this->template run<&unordered_map::clear>([&] { values_.clear(); });
    }

    [[nodiscard]] const_iterator find(parameter<Key> key) const { return values_.find(key); }
    [[nodiscard]] bool contains(parameter<Key> key) const { return values_.contains(key); }
    /// Throws std::out_of_range.
    [[nodiscard]] const stored<Value>& at(parameter<Key> key) const
    {
        const const_iterator found = values_.find(key);
        if (found == values_.end()) {
            throw std::out_of_range("durable::unordered_map has no such key");
        }
        return found->second;
    }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] const_iterator begin() const noexcept { return values_.begin(); }
    [[nodiscard]] const_iterator end() const noexcept { return values_.end(); }
    bool operator==(const unordered_map&) const = default;

private:
    Values values_;
};

}  // namespace stillpoint::durable

#endif
