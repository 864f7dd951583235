#pragma once
// A priority queue of words: the one with the least key comes first. A leftist heap: of each node's two subtrees the right one has the
// shorter way down to a missing child, so push() and pop() write as many nodes as the logarithm of their number.

#include <cstdint>
#include <optional>
#include <utility>

#include "transactions.hpp"

namespace bench::transactional {

template <Word Value>
class Heap {
public:
    template <Transaction Tx>
    void push(Tx& tx, std::uint64_t key, Value value)
    {
        Node* const node = make<Node>(tx);
        tx.write(node->key, key);
        tx.write(node->value, value);
        tx.write(node->distance, std::uint64_t{1});
        tx.write(node->left, static_cast<Node*>(nullptr));
        tx.write(node->right, static_cast<Node*>(nullptr));
        tx.write(root_, merge(tx, tx.read(root_), node));
    }
    /// Nothing: it is empty.
    template <Transaction Tx>
    std::optional<Value> pop(Tx& tx)
    {
        Node* const node = tx.read(root_);
        if (node == nullptr) {
            return std::nullopt;
        }
        const Value value = tx.read(node->value);
        tx.write(root_, merge(tx, tx.read(node->left), tx.read(node->right)));
        tx.free(node);
        return value;
    }
    /// visit(key, value), in no order; no thread is in a transaction.
    template <class Visit>
    void for_each(Visit visit) const
    {
        visit_below(root_, visit);
    }
    /// No key is less than its parent's, and every distance is right; no thread is in a transaction.
    [[nodiscard]] bool is_whole() const { return is_whole_below(root_); }

private:
    struct Node {
        std::uint64_t key;
        Value value;
        std::uint64_t distance;  ///< steps to the right, this node included, until there is no node
        Node* left;
        Node* right;
    };

    /// Goes down along the right sides, so it is called by itself no more often than twice the greater distance.
    template <Transaction Tx>
    static Node* merge(Tx& tx, Node* one, Node* other)
    {
        if (one == nullptr || other == nullptr) {
            return one != nullptr ? one : other;
        }
        if (tx.read(other->key) < tx.read(one->key)) {
            std::swap(one, other);
        }
        Node* const before = tx.read(one->right);
        Node* right = merge(tx, before, other);
        Node* left = tx.read(one->left);
        const std::uint64_t right_distance = tx.read(right->distance);
        const std::uint64_t left_distance = left != nullptr ? tx.read(left->distance) : 0;
        if (left_distance < right_distance) {
            tx.write(one->left, right);
            std::swap(left, right);
        }
        if (right != before) {
            tx.write(one->right, right);
        }
        write_changed(tx, one->distance, 1 + (left_distance < right_distance ? left_distance : right_distance));
        return one;
    }
    template <class Visit>
    static void visit_below(const Node* node, Visit& visit)
    {
        for (; node != nullptr; node = node->left) {  // only the right side is short
            visit(node->key, node->value);
            visit_below(node->right, visit);
        }
    }
    static std::uint64_t distance_of(const Node* node) noexcept { return node != nullptr ? node->distance : 0; }
    static bool is_whole_below(const Node* node)
    {
        for (; node != nullptr; node = node->left) {
            const Node* const left = node->left;
            const Node* const right = node->right;
            const bool is_ordered = (left == nullptr || left->key >= node->key) && (right == nullptr || right->key >= node->key);
            const bool is_leftist = distance_of(left) >= distance_of(right) && node->distance == distance_of(right) + 1;
            if (!is_ordered || !is_leftist || !is_whole_below(right)) {
                return false;
            }
        }
        return true;
    }

    Node* root_;
};

}  // namespace bench::transactional
