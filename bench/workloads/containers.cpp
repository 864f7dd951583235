// Four containers of the standard library, each under one lock [Pronto, Figure 5.6]. Their code is libstdc++'s own; what is durable
// about them is their allocator, and where the container object lies.
//
// Values are strings of the standard library over the same allocator: of 15 bytes and less they lie inside the element.

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../engines/engine_allocator.hpp"
#include "../structures/locked_container.hpp"
#include "makers.hpp"
#include "memory_workload.hpp"
#include "records.hpp"
#include "values.hpp"

namespace bench {
namespace {

using E = CurrentEngine;
using Value = std::basic_string<char, std::char_traits<char>, EngineAllocator<char, E>>;

/// The bytes of one value, outside of every container.
class Bytes {
public:
    explicit Bytes(std::size_t count) noexcept : count_(count) {}
    Bytes(const Shape& shape, std::uint64_t key, std::uint64_t version) noexcept : count_(shape.value_bytes)
    {
        make_value(std::as_writable_bytes(std::span(data_).first(count_)), key, version);
    }

    [[nodiscard]] const char* data() const noexcept { return data_.data(); }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    /// A value of another length is none of any key.
    void copy_of(const Value& value) noexcept
    {
        count_ = value.size() == count_ ? count_ : 0;
        std::memcpy(data_.data(), value.data(), count_);
    }
    [[nodiscard]] bool belongs_to(std::uint64_t key) const noexcept
    {
        return count_ != 0 && is_value_of(std::as_bytes(std::span(data_).first(count_)), key);
    }

private:
    static constexpr std::size_t value_bytes_max = 8192;

    std::size_t count_;
    std::array<char, value_bytes_max> data_;
};

bool belongs_to(const Value& value, std::size_t value_bytes, std::uint64_t key)
{
    return value.size() == value_bytes && is_value_of(std::as_bytes(std::span(value)), key);
}

/// std::map and std::unordered_map. Half of the key range is there; an update inserts or erases, so the size stays.
template <class Map>
class MapWorkload final : public MemoryWorkload {
public:
    MapWorkload(const Shape& shape, const char* name) : MemoryWorkload(shape), keys_(2 * records_of(shape)), map_(name) {}

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t key = key_number(context.random.below(keys_));
            if (context.random.below(100) < shape_.read_percent) {
                read(key);
            } else if (context.random.below(2) == 0) {
                insert(key, context.random.next());
                context.changed_bytes += sizeof key + shape_.value_bytes;
            } else if (map_.update([key](Map& map) { return map.erase(key); }) != 0) {
                context.changed_bytes += sizeof key;
            }
        }
    }

private:
    void fill() override
    {
        for (std::uint64_t i = 0; i < keys_; i += 2) {
            insert(key_number(i), 0);
        }
    }
    void insert(std::uint64_t key, std::uint64_t version)
    {
        const Bytes value(shape_, key, version);
        map_.update([&](Map& map) { map[key].assign(value.data(), value.size()); });
    }
    void read(std::uint64_t key)
    {
        Bytes value(shape_.value_bytes);
        const bool is_there = map_.read([&](const Map& map) {
            const auto found = map.find(key);
            if (found == map.end()) {
                return false;
            }
            value.copy_of(found->second);
            return true;
        });
        if (is_there && !value.belongs_to(key)) {
            found_wrong();
        }
    }
    std::string fault_of_structure() override
    {
        return map_.read([this](const Map& map) -> std::string {
            std::size_t count = 0;
            for (auto element = map.begin(); element != map.end(); ++element, ++count) {
                if (!belongs_to(element->second, shape_.value_bytes, element->first)) {
                    found_wrong();
                }
                if (map.find(element->first) != element) {
                    return "a key of the map is not where it is looked for";
                }
            }
            return count == map.size() ? "" : "the map has " + std::to_string(count) + " elements, and says " + std::to_string(map.size());
        });
    }

    std::uint64_t keys_;
    LockedContainer<Map, E> map_;
};

/// Pushes and pops at the end, as often: the size is never far from the number of records.
class VectorWorkload final : public MemoryWorkload {
public:
    explicit VectorWorkload(const Shape& shape) : MemoryWorkload(shape), elements_(records_of(shape)), vector_("bench.stl_vector") {}

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            if (context.random.below(100) < shape_.read_percent) {
                read(context.random.next());
            } else if (context.random.below(2) == 0) {
                push(context.random.next());
                context.changed_bytes += shape_.value_bytes;
            } else {
                pop();
                context.changed_bytes += sizeof(std::uint64_t);
            }
        }
    }

private:
    using Vector = std::vector<Value, EngineAllocator<Value, E>>;

    void fill() override
    {
        while (vector_.read([](const Vector& vector) { return vector.size(); }) < elements_) {
            push(0);
        }
    }
    /// An element's key is its index. Half as many elements more than usual are never exceeded.
    void push(std::uint64_t version)
    {
        vector_.update([&](Vector& vector) {
            if (vector.size() > elements_ + elements_ / 2) {
                vector.pop_back();
            }
            const Bytes value(shape_, key_number(vector.size()), version);
            vector.emplace_back(value.data(), value.size());
        });
    }
    void pop()
    {
        vector_.update([this](Vector& vector) {
            if (vector.size() > elements_ - elements_ / 2) {
                vector.pop_back();
            }
        });
    }
    void read(std::uint64_t random)
    {
        Bytes value(shape_.value_bytes);
        const std::uint64_t index = vector_.read([&](const Vector& vector) {
            const std::uint64_t chosen = (random >> 32) * vector.size() >> 32;
            value.copy_of(vector[chosen]);
            return chosen;
        });
        if (!value.belongs_to(key_number(index))) {
            found_wrong();
        }
    }
    std::string fault_of_structure() override
    {
        return vector_.read([this](const Vector& vector) -> std::string {
            for (std::size_t i = 0; i < vector.size(); ++i) {
                if (!belongs_to(vector[i], shape_.value_bytes, key_number(i))) {
                    found_wrong();
                }
            }
            return vector.size() <= vector.capacity() && vector.size() >= elements_ / 2 ? "" : "the vector's size is wrong";
        });
    }

    std::uint64_t elements_;
    LockedContainer<Vector, E> vector_;
};

/// Pushes of random priorities, and pops of the greatest.
class PriorityQueueWorkload final : public MemoryWorkload {
public:
    explicit PriorityQueueWorkload(const Shape& shape)
        : MemoryWorkload(shape), elements_(records_of(shape)), queue_("bench.stl_priority_queue")
    {
    }

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            if (context.random.below(2) == 0) {
                push(context.random.next());
                context.changed_bytes += sizeof(std::uint64_t) + shape_.value_bytes;
            } else {
                pop();
                context.changed_bytes += sizeof(std::uint64_t);
            }
        }
    }

private:
    struct Element {
        std::uint64_t priority;
        Value value;

        bool operator<(const Element& other) const noexcept { return priority < other.priority; }
    };
    struct Queue : std::priority_queue<Element, std::vector<Element, EngineAllocator<Element, E>>> {
        [[nodiscard]] const auto& heap() const noexcept { return this->c; }
    };

    void fill() override
    {
        Random random;
        while (queue_.read([](const Queue& queue) { return queue.size(); }) < elements_) {
            push(random.next());
        }
    }
    /// Half as many elements more than usual are never exceeded.
    void push(std::uint64_t priority)
    {
        const Bytes value(shape_, priority, 0);
        queue_.update([&](Queue& queue) {
            if (queue.size() > elements_ + elements_ / 2) {
                queue.pop();
            }
            queue.push(Element{priority, Value(value.data(), value.size())});
        });
    }
    void pop()
    {
        Bytes value(shape_.value_bytes);
        std::uint64_t priority = 0;
        const bool is_greatest = queue_.update([&](Queue& queue) {
            priority = queue.top().priority;
            value.copy_of(queue.top().value);
            if (queue.size() > elements_ - elements_ / 2) {
                queue.pop();
            }
            return queue.top().priority <= priority;
        });
        if (!is_greatest || !value.belongs_to(priority)) {
            found_wrong();
        }
    }
    std::string fault_of_structure() override
    {
        return queue_.read([this](const Queue& queue) -> std::string {
            for (const Element& element : queue.heap()) {
                if (!belongs_to(element.value, shape_.value_bytes, element.priority)) {
                    found_wrong();
                }
            }
            return std::is_heap(queue.heap().begin(), queue.heap().end()) ? "" : "the priority queue is not a heap";
        });
    }

    std::uint64_t elements_;
    LockedContainer<Queue, E> queue_;
};

using Pair = std::pair<const std::uint64_t, Value>;
using OrderedMap = std::map<std::uint64_t, Value, std::less<>, EngineAllocator<Pair, E>>;
using UnorderedMap = std::unordered_map<std::uint64_t, Value, std::hash<std::uint64_t>, std::equal_to<>, EngineAllocator<Pair, E>>;

}  // namespace

Work make_stl_map(const Shape& shape) { return {std::make_unique<MapWorkload<OrderedMap>>(shape, "bench.stl_map"), nullptr}; }
Work make_stl_unordered_map(const Shape& shape)
{
    return {std::make_unique<MapWorkload<UnorderedMap>>(shape, "bench.stl_unordered_map"), nullptr};
}
Work make_stl_vector(const Shape& shape) { return {std::make_unique<VectorWorkload>(shape), nullptr}; }
Work make_stl_priority_queue(const Shape& shape) { return {std::make_unique<PriorityQueueWorkload>(shape), nullptr}; }

}  // namespace bench
