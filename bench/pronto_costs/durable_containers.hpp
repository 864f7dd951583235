#pragma once
// The containers of stillpoint/durable. An emptied container is a new object: nothing of the old one, its capacity neither, is left.

#include <cstdint>
#include <string>
#include <string_view>

#include "durable_side.hpp"
#include "stillpoint/durable/map.hpp"
#include "stillpoint/durable/priority_queue.hpp"
#include "stillpoint/durable/unordered_map.hpp"
#include "stillpoint/durable/vector.hpp"

namespace bench {

template <class Object>
class DurableContainer {
public:
    DurableContainer(Side&, std::uint64_t) : object_(&stillpoint::pronto::get_object<Object>(name)) {}
    void clear()
    {
        stillpoint::pronto::delete_object(name);
        object_ = &stillpoint::pronto::get_object<Object>(name);
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return object_->size(); }

protected:
    static constexpr const char* name = "bench.container";

    Object* object_;
};

template <class Map>
class DurableMap : public DurableContainer<Map> {
public:
    using DurableContainer<Map>::DurableContainer;
    void insert(std::string_view key, std::string_view value) { this->object_->insert(key, value); }
};
using OrderedMap = DurableMap<stillpoint::durable::map<std::string, std::string>>;
using UnorderedMap = DurableMap<stillpoint::durable::unordered_map<std::string, std::string>>;

class Vector : public DurableContainer<stillpoint::durable::vector<std::string>> {
public:
    using DurableContainer::DurableContainer;
    void insert(std::string_view, std::string_view value) { object_->push_back(value); }
};

class PriorityQueue : public DurableContainer<stillpoint::durable::priority_queue<std::string>> {
public:
    using DurableContainer::DurableContainer;
    void insert(std::string_view, std::string_view value) { object_->push(value); }
};

}  // namespace bench
