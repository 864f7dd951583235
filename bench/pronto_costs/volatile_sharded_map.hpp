#pragma once
// 32 unordered maps with a lock each, in ordinary memory.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "volatile_containers.hpp"

namespace bench {

class ShardedMap {
public:
    void insert(std::string_view key, std::string_view value)
    {
        Shard& shard = shards_[std::hash<std::string_view>()(key) % shard_count];
        const std::lock_guard locked(shard.lock);
        shard.map.insert_or_assign(std::string(key), value);
    }
    void clear()
    {
        for (Shard& shard : shards_) {
            shard.map.clear();
        }
    }
    /// No thread may be inserting.
    [[nodiscard]] std::uint64_t size() const noexcept
    {
        std::uint64_t elements = 0;
        for (const Shard& shard : shards_) {
            elements += shard.map.size();
        }
        return elements;
    }

private:
    static constexpr std::size_t shard_count = 32;
    struct alignas(64) Shard {
        std::mutex lock;
        std::unordered_map<std::string, std::string> map;
    };

    Shard shards_[shard_count];
};

inline ShardedMap& sharded_map(Side&)
{
    static auto& map = *new ShardedMap;  // never destroyed: at the end everything is reachable
    return map;
}

}  // namespace bench
