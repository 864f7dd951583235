#pragma once
// 32 unordered maps with a lock each, inside a durable object; Figure 5.4 of the paper in C++20.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "durable_side.hpp"
#include "stillpoint/pronto.hpp"

namespace bench {

class ShardedMap : public stillpoint::pronto::object<ShardedMap> {
public:
    static constexpr char type_name[] = "bench.sharded_map";
    static constexpr auto methods()
    {
        using stillpoint::pronto::method;
        return stillpoint::pronto::methods(method<&ShardedMap::insert>("insert"), method<&ShardedMap::clear>("clear"));
    }

    void insert(std::string_view key, std::string_view value)
    {
        auto operation = op_begin<&ShardedMap::insert>(key, value);
        Shard& shard = shards_[std::hash<std::string_view>()(key) % shard_count];
        const std::lock_guard locked(shard.lock);
        shard.map.insert_or_assign(String(key), value);
        operation.commit();
    }
    void clear()
    {
        run<&ShardedMap::clear>([this] {
            for (Shard& shard : shards_) {
                shard.map.clear();
            }
        });
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
    template <class T>
    using Allocator = stillpoint::pronto::allocator<T>;
    using String = std::basic_string<char, std::char_traits<char>, Allocator<char>>;
    struct Hash {
        std::size_t operator()(const String& key) const noexcept { return std::hash<std::string_view>()(key); }
    };

    static constexpr std::size_t shard_count = 32;
    struct alignas(64) Shard {
        std::mutex lock;
        std::unordered_map<String, String, Hash, std::equal_to<>, Allocator<std::pair<const String, String>>> map;
    };

    Shard shards_[shard_count];
};

inline ShardedMap& sharded_map(Side&) { return stillpoint::pronto::get_object<ShardedMap>("bench.sharded_map"); }

}  // namespace bench
