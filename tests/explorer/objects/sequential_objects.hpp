#pragma once
// Durable classes whose callers take turns: a map, a queue, a list of numbers.

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "objects/noted_object.hpp"

namespace stillpoint::explorer {

class ExploredMap final : public NotedObject<ExploredMap> {
public:
    static constexpr char type_name[] = "explored map";
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;

    ExploredMap(std::uint64_t part, std::uint64_t life) : NotedObject(part, life) { changed(); }

    void insert(std::uint64_t key, const std::string& value)
    {
        auto operation = op_begin<&ExploredMap::insert>(key, value);
        values_.insert_or_assign(key, Text(value.begin(), value.end()));
        changed();
        operation.commit();
    }
    /// Erases a key. Where the key does not exist, nothing is changed or logged.
    void erase(std::uint64_t key)
    {
        auto operation = op_begin<&ExploredMap::erase>(key);
        if (values_.erase(key) == 0) {
            return;
        }
        changed();
        operation.commit();
    }
    void add_to(Digest& sum) const
    {
        for (const auto& [key, value] : values_) {
            sum.add(key);
            for (const char byte : value) {
                sum.add(static_cast<unsigned char>(byte));
            }
        }
    }

    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&ExploredMap::insert>("insert"), pronto::method<&ExploredMap::erase>("erase"));
    }

private:
    using Text = std::basic_string<char, std::char_traits<char>, pronto::allocator<char>>;
    std::map<std::uint64_t, Text, std::less<>, pronto::allocator<std::pair<const std::uint64_t, Text>>> values_;
};

class ExploredQueue final : public NotedObject<ExploredQueue> {
public:
    static constexpr char type_name[] = "explored queue";
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;

    ExploredQueue(std::uint64_t part, std::uint64_t life) : NotedObject(part, life) { changed(); }

    void push(std::uint64_t value)
    {
        auto operation = op_begin<&ExploredQueue::push>(value);
        values_.push_back(value);
        changed();
        operation.commit();
    }
    /// Throws when it is empty, and has changed nothing then.
    void pop()
    {
        auto operation = op_begin<&ExploredQueue::pop>();
        if (values_.empty()) {
            throw std::out_of_range("the queue is empty");
        }
        values_.pop_front();
        changed();
        operation.commit();
    }
    [[nodiscard]] bool is_empty() const noexcept { return values_.empty(); }
    void add_to(Digest& sum) const
    {
        for (const std::uint64_t value : values_) {
            sum.add(value);
        }
    }

    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&ExploredQueue::push>("push"),
                               pronto::method<&ExploredQueue::pop>("pop", pronto::promise::unchanged_by_exception));
    }

private:
    std::deque<std::uint64_t, pronto::allocator<std::uint64_t>> values_;
};

class ExploredList final : public NotedObject<ExploredList> {
public:
    static constexpr char type_name[] = "explored list";
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;

    ExploredList(std::uint64_t part, std::uint64_t life) : NotedObject(part, life) { changed(); }

    void append(std::span<const std::uint64_t> values)
    {
        auto operation = op_begin<&ExploredList::append>(values);
        values_.insert(values_.end(), values.begin(), values.end());
        changed();
        operation.commit();
    }
    void keep_last(std::uint64_t count)
    {
        auto operation = op_begin<&ExploredList::keep_last>(count);
        if (count < values_.size()) {
            values_.erase(values_.begin(), values_.end() - static_cast<std::ptrdiff_t>(count));
        }
        changed();
        operation.commit();
    }
    /// An operation that calls one of its own: that one is not logged.
    void append_twice(std::uint64_t value)
    {
        auto operation = op_begin<&ExploredList::append_twice>(value);
        push(value);
        push(~value);
        changed();
        operation.commit();
    }
    void push(std::uint64_t value)
    {
        auto operation = op_begin<&ExploredList::push>(value);
        values_.push_back(value);
        operation.commit();
    }
    /// Begins, is told to do nothing, and ends without a commit.
    void refrain(std::uint64_t value)
    {
        auto operation = op_begin<&ExploredList::refrain>(value);
        if (!ObjectNotes::are_begun()) {
            values_.push_back(value);  // A replay shows that it was logged.
            operation.commit();
        }
    }
    void add_to(Digest& sum) const
    {
        for (const std::uint64_t value : values_) {
            sum.add(value);
        }
    }

    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&ExploredList::append>("append"), pronto::method<&ExploredList::keep_last>("keep_last"),
                               pronto::method<&ExploredList::append_twice>("append_twice"), pronto::method<&ExploredList::push>("push"),
                               pronto::method<&ExploredList::refrain>("refrain"));
    }

private:
    std::vector<std::uint64_t, pronto::allocator<std::uint64_t>> values_;
};

}  // namespace stillpoint::explorer
