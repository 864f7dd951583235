#pragma once
// A sorted skip list with a mutex in each node, locked hand over hand.
//
// A thread walks along each level with the locks of two neighbours. A reader releases what lies before; an update keeps the node before its
// place locked on each level that it changes, so up to one for each level, and one of the place. Locks are taken from the head on, in the
// order of the keys, so no two threads wait for each other.
// An update also counts itself in the thread's own share, in the same operation, as in CoupledList.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "../engines/engine.hpp"
#include "counted_length.hpp"

namespace bench {

template <MemoryEngine E>
class SkipList {
public:
    static constexpr unsigned levels = 8;

    /// Finds the list by its name, or makes an empty one.
    explicit SkipList(const std::string& name) : head_(E::template named<Node>(name.c_str())), length_(name) {}

    /// The key's value; nothing: there is no such key.
    [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t key)
    {
        typename E::template Reading<2> reading;
        Node* before = head_;
        reading.lock(before->mutex);
        for (unsigned level = levels; level-- > 0;) {
            for (Node* node = before->next[level]; node != nullptr && node->key <= key; node = before->next[level]) {
                reading.lock(node->mutex);
                reading.unlock_unwritten(before->mutex);
                if (node->key == key) {
                    return node->value;
                }
                before = node;
            }
        }
        return std::nullopt;
    }
    /// False: the key was there already, and keeps its value.
    bool insert(unsigned thread, std::uint64_t key, std::uint64_t value)
    {
        Update update;
        const unsigned height = height_of(key);
        if (walk(update, key, height) != nullptr) {
            return false;
        }
        Node* const node = E::template make<Node>();
        std::memset(static_cast<void*>(&node->mutex), 0, sizeof node->mutex);
        node->key = key;
        node->value = value;
        for (unsigned level = 0; level < levels; ++level) {
            E::init(node->next[level], level < height ? static_cast<Node*>(update.before[level]->next[level]) : nullptr);
        }
        for (unsigned level = 0; level < height; ++level) {
            update.before[level]->next[level] = node;
        }
        length_.add(update.operation, thread, 1);
        return true;
    }
    /// False: there was no such key.
    bool remove(unsigned thread, std::uint64_t key)
    {
        Update update;
        const unsigned height = height_of(key);
        Node* const node = walk(update, key, height);
        if (node == nullptr) {
            return false;
        }
        // A thread may be at the node still, on its way; to come to it, one would need the lock of a node before it.
        update.operation.lock(node->mutex);
        for (unsigned level = 0; level < height; ++level) {
            update.before[level]->next[level] = static_cast<Node*>(node->next[level]);
        }
        update.operation.unlock_unwritten(node->mutex);
        E::deallocate(node);
        length_.add(update.operation, thread, -1);
        return true;
    }

    /// Calls visit(key, value) for each element, in the list's order. No other thread may be running, as for length() and is_whole().
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (const Node* node = head_->next[0]; node != nullptr; node = node->next[0]) {
            visit(node->key, node->value);
        }
    }
    /// As the updates have counted.
    [[nodiscard]] std::int64_t length() const { return length_.sum(); }
    /// On each level are, in order, the elements that are so high, and no others.
    [[nodiscard]] bool is_whole() const
    {
        std::array<const Node*, levels> next;
        std::copy_n(head_->next, levels, next.begin());
        for (const Node* node = head_->next[0]; node != nullptr; node = node->next[0]) {
            const unsigned height = height_of(node->key);
            for (unsigned level = 0; level < levels; ++level) {
                if ((next[level] == node) != (level < height)) {
                    return false;
                }
                next[level] = level < height ? static_cast<Node*>(node->next[level]) : next[level];
            }
        }
        return std::all_of(next.begin(), next.end(), [](const Node* node) { return node == nullptr; });
    }

private:
    struct Node {
        typename E::Mutex mutex;
        std::uint64_t key;
        std::uint64_t value;
        typename E::template Durable<Node*> next[levels];
    };
    /// An update, and on each level that it changes the node before the place, locked.
    struct Update {
        typename E::template Operation<levels + 3> operation;
        std::array<Node*, levels> before{};
    };

    /// By the bits of the key, one in four on each level above; at least 1.
    static unsigned height_of(std::uint64_t key) noexcept
    {
        const std::uint64_t spread = (key ^ key >> 31) * 0x9e3779b97f4a7c15u >> 24;
        return std::min(levels, 1 + static_cast<unsigned>(std::countr_zero(spread | std::uint64_t{1} << 39)) / 2);
    }

    /// Locks the nodes before `key` on the levels below `height`. The key's node, which is not locked; nullptr: there is none.
    Node* walk(Update& update, std::uint64_t key, unsigned height)
    {
        Node* before = head_;
        update.operation.lock(before->mutex);
        for (unsigned level = levels; level-- > 0;) {
            bool is_kept = level + 1 < height;  // By the level above.
            for (Node* node = before->next[level]; node != nullptr && node->key < key; node = before->next[level]) {
                update.operation.lock(node->mutex);
                if (!is_kept) {
                    update.operation.unlock_unwritten(before->mutex);
                }
                is_kept = false;
                before = node;
            }
            if (level < height) {
                update.before[level] = before;
            }
        }
        Node* const node = before->next[0];
        return node != nullptr && node->key == key ? node : nullptr;
    }
    Node* head_;  ///< before the first element; its key and value mean nothing. Zeroed memory is an empty list with free locks
    CountedLength<E> length_;
};

}  // namespace bench
