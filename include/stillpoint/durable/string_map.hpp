#pragma once
// A map of strings to strings that survives, for many threads. Changes are durable on return; threads that change at the same time wait for
// the medium together (group commit).

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "stillpoint/durable/unordered_map.hpp"

namespace stillpoint::durable {

/// Get one with pronto::get_object<durable::string_map>(name). Keys are divided among shards, each with a lock of its own.
/// Threads: all functions, from any. What they return is durable: a change that a crash could roll back is never returned.
/// Errors of all: pronto::not_durable, pronto::refused; see pronto::object::op_begin.
class string_map : public pronto::object<string_map> {
public:
    static constexpr char type_name[] = "durable::string_map";
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&string_map::put>("put"), pronto::method<&string_map::erase>("erase"),
                               pronto::method<&string_map::clear>("clear"));
    }

    /// True: the key is new.
    bool put(std::string_view key, std::string_view value)
    {
        pronto::operation running = op_begin<&string_map::put>(key, value);
        Shard& shard = shard_of(key);
        const std::lock_guard hold(shard.lock);
        const bool is_new = shard.store(key, value);
        running.commit_early();
        return is_new;
    }

    /// False: there is no such key.
    bool erase(std::string_view key)
    {
        const pronto::read_guard reading = read();
        pronto::operation running = op_begin<&string_map::erase>(key);
        Shard& shard = shard_of(key);
        const std::lock_guard hold(shard.lock);
        if (!shard.remove(key)) {
            return false;
        }
        running.commit_early();
        return true;
    }

    void clear()
    {
        pronto::operation running = op_begin<&string_map::clear>();
        std::array<std::unique_lock<std::shared_mutex>, shard_count> holds;
        for (std::size_t place = 0; place < shard_count; ++place) {
            holds[place] = std::unique_lock(shards_[place].lock);
            shards_[place].values.clear();
        }
        running.commit_early();
    }

    [[nodiscard]] std::optional<std::string> get(std::string_view key) const
    {
        const pronto::read_guard reading = read();
        return copy(key);
    }
    [[nodiscard]] bool contains(std::string_view key) const
    {
        return visit(key, [](std::string_view) {});
    }
    /// Reads without a copy: calls visit(std::string_view value), under the lock of the key's shard: it calls nothing of the map, and keeps
    /// no reference. What it has seen is durable when this returns. False: there is no such key.
    template <class Visit>
    bool visit(std::string_view key, Visit visit) const
    {
        const pronto::read_guard reading = read();
        const Shard& shard = shards_[place_of(key)];
        const std::shared_lock hold(shard.lock);
        return shard.visit(key, visit);
    }

    /// Reads, asks `change` for what is to be there instead, and puts that, as one step: where another thread came in between, it asks
    /// again. change(const std::optional<std::string>&) returns std::optional<std::string>; without a value the key is not there. It holds
    /// no lock when it runs, and need not be deterministic: its result is logged. Returns that.
    template <class Change>
    std::optional<std::string> update(std::string_view key, Change change)
    {
        const pronto::read_guard reading = read();
        for (;;) {
            const std::optional<std::string> before = copy(key);
            std::optional<std::string> after = change(before);
            if (before == after || replace(key, before, after)) {
                return after;
            }
        }
    }

    /// Calls visit(std::string_view key, std::string_view value) for each, in no order, one shard after the other under its lock: `visit`
    /// calls nothing of the map. Other threads may change shards that are not being visited.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for_each_shard([&](const Shard& shard) {
            for (const auto& [key, value] : shard.values) {
                visit(std::string_view(key), std::string_view(value));
            }
        });
    }
    [[nodiscard]] std::size_t size() const
    {
        std::size_t count = 0;
        for_each_shard([&](const Shard& shard) { count += shard.values.size(); });
        return count;
    }
    [[nodiscard]] bool empty() const { return size() == 0; }

    /// The caller keeps other threads from changing either map.
    bool operator==(const string_map& other) const { return shards_ == other.shards_; }

private:
    friend class string_map_shard;

    /// clear() holds the locks of all shards, and ThreadSanitizer knows of at most 64 that a thread holds.
    static constexpr unsigned shard_bits = 5;
    static constexpr std::size_t shard_count = std::size_t{1} << shard_bits;

    /// A shard has cache lines of its own, so that threads in different shards do not meet.
    struct alignas(64) Shard {
        mutable std::shared_mutex lock;
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
        bool operator==(const Shard& other) const { return values == other.values; }
    };

    static std::size_t place_of(std::string_view key) noexcept
    {
        return hash<std::string>()(key) >> (sizeof(std::size_t) * 8 - shard_bits);
    }
    [[nodiscard]] Shard& shard_of(std::string_view key) noexcept { return shards_[place_of(key)]; }

    template <class Visit>
    void for_each_shard(Visit visit) const
    {
        const pronto::read_guard reading = read();
        for (const Shard& shard : shards_) {
            const std::shared_lock hold(shard.lock);
            visit(shard);
        }
    }

    [[nodiscard]] std::optional<std::string> copy(std::string_view key) const
    {
        const Shard& shard = shards_[place_of(key)];
        const std::shared_lock hold(shard.lock);
        const auto found = shard.values.find(key);
        return found == shard.values.end() ? std::nullopt : std::optional<std::string>(std::string_view(found->second));
    }

    /// False: the key has not the value `before`, and nothing was done. In the log it is the put or the erase that it comes to.
    bool replace(std::string_view key, const std::optional<std::string>& before, const std::optional<std::string>& after)
    {
        pronto::operation running = after ? op_begin<&string_map::put>(key, *after) : op_begin<&string_map::erase>(key);
        Shard& shard = shard_of(key);
        const std::lock_guard hold(shard.lock);
        if (!shard.has(key, before)) {
            return false;
        }
        if (after) {
            shard.store(key, *after);
        } else {
            shard.remove(key);
        }
        running.commit_early();
        return true;
    }

    std::array<Shard, shard_count> shards_;
};

}  // namespace stillpoint::durable

#endif
