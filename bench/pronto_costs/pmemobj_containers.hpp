#pragma once
// Two maps in a libpmemobj pool, as the sides of containers_worker.cpp.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../harness/commands.hpp"
#include "crit_bit_tree.hpp"
#include "pmemobj_hash_map.hpp"

namespace bench {

class Side {
public:
    static constexpr const char* name = "pmemobj";

    explicit Side(const Settings& settings) : pool(settings.text("folder") + "/maps.pool", settings.number("pool_mib", 2048), sizeof(Root))
    {
    }
    void begin() noexcept {}
    void settle() noexcept {}
    void add_counters(Answer&) const {}

    struct Root {
        CritBitTree::Root tree;
        PmemobjHashMap::Root hash_map;
    };
    [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(pool.root()); }

    MapPool pool;
};

class OrderedMap {
public:
    OrderedMap(Side& side, std::uint64_t) : tree_(side.pool, side.root().tree) {}
    void insert(std::string_view key, std::string_view value) { tree_.put(key, value); }
    [[nodiscard]] std::string_view find(std::string_view key) const { return tree_.get(key); }
    void clear() { tree_.clear(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return tree_.size(); }

private:
    CritBitTree tree_;
};

class UnorderedMap {
public:
    UnorderedMap(Side& side, std::uint64_t elements) : map_(side.pool, side.root().hash_map, elements) {}
    void insert(std::string_view key, std::string_view value) { map_.put(key, value); }
    [[nodiscard]] std::string_view find(std::string_view key) const { return map_.get(key); }
    void clear() { map_.clear(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return map_.size(); }

private:
    PmemobjHashMap map_;
};

}  // namespace bench
