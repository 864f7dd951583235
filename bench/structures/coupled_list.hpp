#pragma once
// A sorted, singly linked list with a mutex in each node, locked hand over hand [PMThreads §6].
//
// A thread locks a node while it holds the lock of the node before; so no thread overtakes another, and one that holds
// two neighbours' locks may link or unlink between them. Only the node before the place is written: the locks passed on the
// way are released on the way. An update also counts itself in the thread's own share, in the same operation: the shares add
// up to the length, after a crash too.
// Order: nodes from the head on, then the thread's share.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "../engines/engine.hpp"
#include "counted_length.hpp"

namespace bench {

template <MemoryEngine E>
class CoupledList {
public:
    /// Finds the list by its name, or makes an empty one.
    explicit CoupledList(const std::string& name) : head_(E::template named<Node>(name.c_str())), length_(name) {}

    /// The key's value; nothing: there is no such key.
    [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t key)
    {
        typename E::template Reading<2> reading;
        const Node* node = walk(reading, key).node;
        return node != nullptr && node->key == key ? std::optional(node->value) : std::nullopt;
    }
    /// False: the key was there already, and keeps its value.
    bool insert(unsigned thread, std::uint64_t key, std::uint64_t value)
    {
        typename E::template Operation<3> operation;
        const Place place = walk(operation, key);
        if (place.node != nullptr && place.node->key == key) {
            return false;
        }
        Node* const node = E::template make<Node>();
        std::memset(static_cast<void*>(&node->mutex), 0, sizeof node->mutex);
        node->key = key;
        node->value = value;
        E::init(node->next, place.node);
        place.before->next = node;
        length_.add(operation, thread, 1);
        return true;
    }
    /// False: there was no such key.
    bool remove(unsigned thread, std::uint64_t key)
    {
        typename E::template Operation<3> operation;
        const Place place = walk(operation, key);
        if (place.node == nullptr || place.node->key != key) {
            return false;
        }
        place.before->next = static_cast<Node*>(place.node->next);
        // No thread waits for the removed node's lock: to wait it would need the lock of the node before, which is ours.
        operation.unlock_unwritten(place.node->mutex);
        E::deallocate(place.node);
        length_.add(operation, thread, -1);
        return true;
    }

    /// Calls visit(key, value) for each element, in the list's order. No other thread may be running, as for length().
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (const Node* node = head_->next; node != nullptr; node = node->next) {
            visit(node->key, node->value);
        }
    }
    /// As the updates have counted.
    [[nodiscard]] std::int64_t length() const { return length_.sum(); }
    /// A single chain has nothing but its order.
    [[nodiscard]] static bool is_whole() noexcept { return true; }

private:
    struct Node {
        typename E::Mutex mutex;
        std::uint64_t key;
        std::uint64_t value;
        typename E::template Durable<Node*> next;
    };
    /// The first node whose key is not below the one looked for, or nullptr, and the node before: both locked.
    struct Place {
        Node* before;
        Node* node;
    };

    template <class Section>
    Place walk(Section& section, std::uint64_t key)
    {
        Node* before = head_;
        section.lock(before->mutex);
        Node* node = before->next;
        while (node != nullptr) {
            section.lock(node->mutex);
            if (node->key >= key) {
                break;
            }
            section.unlock_unwritten(before->mutex);
            before = node;
            node = before->next;
        }
        return {before, node};
    }
    Node* head_;  ///< before the first element; its key and value mean nothing. Zeroed memory is an empty list with free locks
    CountedLength<E> length_;
};

}  // namespace bench
