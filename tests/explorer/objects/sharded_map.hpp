#pragma once
// ShardedMap: a durable map of shards, each with a lock and a part of its own. Operations commit early, inside their locks, and are
// durable when they have ended, outside of them.

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "objects/object_workload.hpp"
#include "objects/told_mutex.hpp"
#include "stillpoint/pronto.hpp"

namespace stillpoint::explorer {

namespace pronto = stillpoint::pronto;

class ShardedMap final : public pronto::object<ShardedMap> {
public:
    static constexpr char type_name[] = "explored sharded map";
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;
    static constexpr std::uint64_t shard_count = 4;

    ShardedMap(std::uint64_t first_part, std::uint64_t life) : first_part_(first_part), life_(life)
    {
        for (std::uint64_t shard = 0; shard < shard_count; ++shard) {
            ObjectNotes::state(first_part_ + shard, digest(shard));
        }
    }

    /// The digest of the key's shard after it. Some of these take long, so that others overtake them.
    std::uint64_t put(std::uint64_t key, std::string_view text)
    {
        auto operation = op_begin<&ShardedMap::put>(key, text);
        const std::uint64_t number = key % shard_count;
        Shard& shard = shards_[number];
        const std::lock_guard hold(shard.guard);
        shard.values.insert_or_assign(key, std::hash<std::string_view>()(text));
        if (ObjectNotes::are_begun() && text.size() % 4 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(150));
        }
        return commit(operation, number);
    }
    std::uint64_t erase(std::uint64_t key)
    {
        auto operation = op_begin<&ShardedMap::erase>(key);
        const std::uint64_t number = key % shard_count;
        Shard& shard = shards_[number];
        const std::lock_guard hold(shard.guard);
        shard.values.erase(key);
        return commit(operation, number);
    }
    /// A value that it returns is durable, also what another thread has just committed.
    [[nodiscard]] std::uint64_t read(std::uint64_t number) const
    {
        const pronto::read_guard guard(this);
        const Shard& shard = shards_[number];
        const std::lock_guard hold(shard.guard);
        return digest(number);
    }

    /// No other thread uses it.
    [[nodiscard]] std::uint64_t digest(std::uint64_t number) const
    {
        Digest sum;
        sum.add(life_);
        sum.add(shards_[number].operations);
        for (const auto& [key, value] : shards_[number].values) {
            sum.add(key);
            sum.add(value);
        }
        return sum.value();
    }
    [[nodiscard]] std::uint64_t part_of(std::uint64_t key) const noexcept { return first_part_ + key % shard_count; }

    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&ShardedMap::put>("put"), pronto::method<&ShardedMap::erase>("erase"));
    }

private:
    struct alignas(64) Shard {
        mutable ToldMutex guard;
        std::map<std::uint64_t, std::uint64_t, std::less<>, pronto::allocator<std::pair<const std::uint64_t, std::uint64_t>>> values;
        std::uint64_t operations = 0;
    };

    template <class Operation>
    std::uint64_t commit(Operation& operation, std::uint64_t number)
    {
        ++shards_[number].operations;
        const std::uint64_t sum = digest(number);
        ObjectNotes::state(first_part_ + number, sum);
        operation.commit_early();
        return sum;
    }

    std::uint64_t first_part_;
    std::uint64_t life_;
    std::array<Shard, shard_count> shards_;
};

}  // namespace stillpoint::explorer
