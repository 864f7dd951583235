#pragma once
// A map of strings to strings that survives, for many threads. Changes are durable on return; threads that change at the same time wait for
// the medium together (group commit).

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "stillpoint/durable/unordered_map.hpp"

namespace stillpoint::durable {

/// The functions that string_map and a shard of sharded_string_map share: keys are divided among 2 to the power of `part_bits` parts, each
/// with a lock of its own. `Self` is the durable class, and lists put, erase and clear as its operations.
/// Threads: all functions, from any. What they return is durable: a change that a crash could roll back is never returned.
/// Errors of all: pronto::not_durable, pronto::refused; see pronto::object::op_begin.
template <class Self, unsigned part_bits>
class strings_in_parts : public pronto::object<Self> {
public:
    /// True: the key is new.
    bool put(std::string_view key, std::string_view value)
    {
        pronto::operation running = this->template op_begin<&Self::put>(key, value);
        Part& part = part_of(key);
        const auto hold = this->hold(part.lock.word);
        const bool is_new = part.store(key, value);
        running.commit_early();
        return is_new;
    }

    /// False: there is no such key.
    bool erase(std::string_view key)
    {
        const pronto::read_guard reading = this->read();
        pronto::operation running = this->template op_begin<&Self::erase>(key);
        Part& part = part_of(key);
        const auto hold = this->hold(part.lock.word);
        if (!part.remove(key)) {
            return false;
        }
        running.commit_early();
        return true;
    }

    void clear()
    {
        pronto::operation running = this->template op_begin<&Self::clear>();
        std::array<std::optional<pronto::lock_hold>, part_count> holds;
        for (std::size_t place = 0; place < part_count; ++place) {
            holds[place].emplace(shards_[place].lock.word, this->run_number());
            shards_[place].values.clear();
        }
        running.commit_early();
    }

    /// Reads without a copy: calls visit(std::string_view value), under the lock of the key's part: it calls nothing of the map, and keeps
    /// no reference. What it has seen is durable when this returns. False: there is no such key.
    template <class Visit>
    bool visit(std::string_view key, Visit visit) const
    {
        const pronto::read_guard reading = this->read();
        const Part& part = part_of(key);
        const auto hold = this->hold_shared(part.lock.word);
        return part.visit(key, visit);
    }

    /// Calls visit(std::string_view key, std::string_view value) for each, in no order, one part after the other under its lock: `visit`
    /// calls nothing of the map. Other threads may change parts that are not being visited.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for_each_part([&](const Part& part) {
            for (const auto& [key, value] : part.values) {
                visit(std::string_view(key), std::string_view(value));
            }
        });
    }
    [[nodiscard]] std::size_t size() const
    {
        std::size_t count = 0;
        for_each_part([&](const Part& part) { count += part.values.size(); });
        return count;
    }

    /// False: the key has not the value `before`, and nothing was done. In the log it is the put or the erase that it comes to.
    bool replace(std::string_view key, const std::optional<std::string>& before, const std::optional<std::string>& after)
    {
        pronto::operation running = after ? this->template op_begin<&Self::put>(key, *after) : this->template op_begin<&Self::erase>(key);
        Part& part = part_of(key);
        const auto hold = this->hold(part.lock.word);
        if (!part.has(key, before)) {
            return false;
        }
        if (after) {
            part.store(key, *after);
        } else {
            part.remove(key);
        }
        running.commit_early();
        return true;
    }

    /// The caller keeps other threads from changing either.
    bool operator==(const strings_in_parts& other) const { return shards_ == other.shards_; }

protected:
    static constexpr std::size_t part_count = std::size_t{1} << part_bits;

    /// A part has cache lines of its own, so that threads in different parts do not meet.
    struct alignas(64) Part {
        /// As large as the std::shared_mutex that older pools have in its place; what that leaves there counts as free.
        struct Lock {
            pronto::object_lock word;
            std::uint64_t unused[6]{};
        };
        mutable Lock lock;
        std::unordered_map<pronto::string, pronto::string, hash<std::string>, std::equal_to<>,
                           pronto::allocator<std::pair<const pronto::string, pronto::string>>>
            values;

        bool store(std::string_view key, std::string_view value)
        {
            const auto found = values.find(key);
            if (found != values.end()) {
                found->second = value;
                return false;
            }
            values.emplace(key, value);
            return true;
        }
        bool remove(std::string_view key)
        {
            const auto found = values.find(key);
            if (found == values.end()) {
                return false;
            }
            values.erase(found);
            return true;
        }
        template <class Visit>
        bool visit(std::string_view key, Visit& visit) const
        {
            const auto found = values.find(key);
            if (found == values.end()) {
                return false;
            }
            visit(std::string_view(found->second));
            return true;
        }
        [[nodiscard]] bool has(std::string_view key, const std::optional<std::string>& value) const
        {
            const auto found = values.find(key);
            return found == values.end() ? !value.has_value() : value.has_value() && std::string_view(found->second) == *value;
        }
        bool operator==(const Part& other) const { return values == other.values; }
    };

    [[nodiscard]] Part& part_of(std::string_view key) noexcept { return shards_[place_of(key)]; }
    [[nodiscard]] const Part& part_of(std::string_view key) const noexcept { return shards_[place_of(key)]; }

    /// Debuggers know the name (tools/gdb, tools/stillpoint/known_types.cpp).
    std::array<Part, part_count> shards_;

private:
    static std::size_t place_of(std::string_view key) noexcept { return hash<std::string>()(key) >> (sizeof(std::size_t) * 8 - part_bits); }

    template <class Visit>
    void for_each_part(Visit visit) const
    {
        const pronto::read_guard reading = this->read();
        for (const Part& part : shards_) {
            const auto hold = this->hold_shared(part.lock.word);
            visit(part);
        }
    }
};

/// clear() holds the locks of all parts, and ThreadSanitizer knows of at most 64 that a thread holds.
inline constexpr unsigned string_map_part_bits = 5;

/// Get one with pronto::get_object<durable::string_map>(name). Keys are divided among parts, each with a lock of its own: what can be done
/// with them is here and in strings_in_parts.
class string_map : public strings_in_parts<string_map, string_map_part_bits> {
public:
    static constexpr char type_name[] = "durable::string_map";
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&string_map::put>("put"), pronto::method<&string_map::erase>("erase"),
                               pronto::method<&string_map::clear>("clear"));
    }

    [[nodiscard]] std::optional<std::string> get(std::string_view key) const
    {
        std::optional<std::string> found;
        visit(key, [&](std::string_view value) { found.emplace(value); });
        return found;
    }
    [[nodiscard]] bool contains(std::string_view key) const
    {
        return visit(key, [](std::string_view) {});
    }
    /// Reads, asks `change` for what is to be there instead, and puts that, as one step: where another thread came in between, it asks
    /// again. change(const std::optional<std::string>&) returns std::optional<std::string>; without a value the key is not there. It holds
    /// no lock when it runs, and need not be deterministic: its result is logged. Returns that.
    template <class Change>
    std::optional<std::string> update(std::string_view key, Change change)
    {
        for (;;) {
            const std::optional<std::string> before = get(key);
            std::optional<std::string> after = change(before);
            if (before == after || replace(key, before, after)) {
                return after;
            }
        }
    }

    [[nodiscard]] bool empty() const { return size() == 0; }
};

}  // namespace stillpoint::durable

#endif
