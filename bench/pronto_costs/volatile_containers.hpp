#pragma once
// The containers of the standard library as a program without Stillpoint has them; memory that was freed stays with malloc, as a
// pool's stays with the pool.

#include <cstdint>
#include <map>
#include <malloc.h>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../harness/commands.hpp"

namespace bench {

/// One side of the comparison: what a process opens before its containers, and what it waits for after its work.
class Side {
public:
    static constexpr const char* name = "volatile";

    explicit Side(const Settings&)
    {
        constexpr int never = 1 << 30;
        mallopt(M_TRIM_THRESHOLD, never);
        mallopt(M_MMAP_THRESHOLD, never);
        mallopt(M_TOP_PAD, 64 << 20);
    }
    void begin() noexcept {}
    void settle() noexcept {}
    void add_counters(Answer&) const {}
};

template <class Map>
class VolatileMap {
public:
    VolatileMap(Side&, std::uint64_t) {}
    void insert(std::string_view key, std::string_view value) { map_.try_emplace(std::string(key), value); }
    void clear() { map_.clear(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return map_.size(); }

private:
    Map map_;
};
using OrderedMap = VolatileMap<std::map<std::string, std::string>>;
using UnorderedMap = VolatileMap<std::unordered_map<std::string, std::string>>;

class Vector {
public:
    Vector(Side&, std::uint64_t) {}
    void insert(std::string_view, std::string_view value) { vector_.emplace_back(value); }
    void clear() { vector_ = {}; }
    [[nodiscard]] std::uint64_t size() const noexcept { return vector_.size(); }

private:
    std::vector<std::string> vector_;
};

class PriorityQueue {
public:
    PriorityQueue(Side&, std::uint64_t) {}
    void insert(std::string_view, std::string_view value) { queue_.emplace(value); }
    void clear() { queue_ = {}; }
    [[nodiscard]] std::uint64_t size() const noexcept { return queue_.size(); }

private:
    std::priority_queue<std::string> queue_;
};

}  // namespace bench
