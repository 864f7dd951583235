#pragma once
// An ordered map from 64-bit keys to words: a treap. Each key has a rank that its bits decide; a node's rank is above those of its
// children, so the same keys make the same tree, and its depth is that of a tree of random insertions. An insertion or a removal writes few
// nodes: most of the way down is only read.

#include <cstdint>
#include <optional>

#include "spread.hpp"
#include "transactions.hpp"

namespace bench::transactional {

template <Word Value>
class Tree {
public:
    /// For memory that must know the types of its blocks.
    struct Node {
        std::uint64_t key;
        Value value;
        Node* left;
        Node* right;
    };

    /// The value's place; nullptr: there is no such key.
    template <Transaction Tx>
    [[nodiscard]] Value* find(Tx& tx, std::uint64_t key)
    {
        for (Node* node = tx.read(root_); node != nullptr;) {
            const std::uint64_t here = tx.read(node->key);
            if (here == key) {
                return &node->value;
            }
            node = tx.read(key < here ? node->left : node->right);
        }
        return nullptr;
    }
    /// False: the key was there, and keeps its value.
    template <Transaction Tx>
    bool insert(Tx& tx, std::uint64_t key, Value value)
    {
        Node** link = &root_;
        Node* below = tx.read(*link);
        while (below != nullptr) {
            const std::uint64_t here = tx.read(below->key);
            if (here == key) {
                return false;
            }
            if (spread(here) < spread(key)) {
                break;
            }
            link = key < here ? &below->left : &below->right;
            below = tx.read(*link);
        }
        Node* const node = make<Node>(tx);
        tx.write(node->key, key);
        tx.write(node->value, value);
        tx.write(node->left, static_cast<Node*>(nullptr));
        tx.write(node->right, static_cast<Node*>(nullptr));
        split(tx, below, key, *node);
        tx.write(*link, node);
        return true;
    }
    /// The value that was there.
    template <Transaction Tx>
    std::optional<Value> remove(Tx& tx, std::uint64_t key)
    {
        Node** link = &root_;
        for (Node* node = tx.read(*link); node != nullptr; node = tx.read(*link)) {
            const std::uint64_t here = tx.read(node->key);
            if (here == key) {
                const Value value = tx.read(node->value);
                join(tx, *link, tx.read(node->left), tx.read(node->right));
                tx.free(node);
                return value;
            }
            link = key < here ? &node->left : &node->right;
        }
        return std::nullopt;
    }
    /// The least key.
    template <Transaction Tx>
    [[nodiscard]] std::optional<std::uint64_t> first(Tx& tx)
    {
        Node* node = tx.read(root_);
        if (node == nullptr) {
            return std::nullopt;
        }
        for (Node* left = tx.read(node->left); left != nullptr; left = tx.read(node->left)) {
            node = left;
        }
        return tx.read(node->key);
    }
    /// visit(key, value), in the order of the keys; no thread is in a transaction.
    template <class Visit>
    void for_each(Visit visit) const
    {
        visit_below(root_, visit);
    }
    /// Keys are in order, and ranks too; no thread is in a transaction.
    [[nodiscard]] bool is_whole() const { return is_whole_below(root_, 0, UINT64_MAX); }
    [[nodiscard]] bool is_empty() const noexcept { return root_ == nullptr; }

    /// Frees every node, `nodes_each` in a transaction; `dispose(tx, value)` is told of each.
    template <TransactionalMemory M, class Dispose>
    void clear(Dispose dispose, unsigned nodes_each = 64)
    {
        while (!is_empty()) {
            M::atomically([&](auto& tx) {
                for (unsigned i = 0; i < nodes_each; ++i) {
                    const std::optional<std::uint64_t> key = first(tx);
                    if (!key) {
                        return;
                    }
                    dispose(tx, *remove(tx, *key));
                }
            });
        }
    }

private:
    /// Hangs what is below `key` to the left of `node`, and the rest to its right. `below` has keys of lower ranks only.
    template <Transaction Tx>
    static void split(Tx& tx, Node* below, std::uint64_t key, Node& node)
    {
        Node** less = &node.left;
        Node** greater = &node.right;
        while (below != nullptr) {
            if (tx.read(below->key) < key) {
                write_changed(tx, *less, below);
                less = &below->right;
                below = tx.read(*less);
            } else {
                write_changed(tx, *greater, below);
                greater = &below->left;
                below = tx.read(*greater);
            }
        }
        write_changed(tx, *less, nullptr);
        write_changed(tx, *greater, nullptr);
    }
    /// Every key of `less` is below those of `greater`.
    template <Transaction Tx>
    static void join(Tx& tx, Node*& place, Node* less, Node* greater)
    {
        Node** link = &place;
        while (less != nullptr && greater != nullptr) {
            if (spread(tx.read(less->key)) > spread(tx.read(greater->key))) {
                write_changed(tx, *link, less);
                link = &less->right;
                less = tx.read(*link);
            } else {
                write_changed(tx, *link, greater);
                link = &greater->left;
                greater = tx.read(*link);
            }
        }
        write_changed(tx, *link, less != nullptr ? less : greater);
    }
    template <class Visit>
    static void visit_below(const Node* node, Visit& visit)
    {
        if (node != nullptr) {
            visit_below(node->left, visit);
            visit(node->key, node->value);
            visit_below(node->right, visit);
        }
    }
    static bool has_rank_below(const Node* node, const Node& parent) { return node == nullptr || spread(node->key) < spread(parent.key); }
    static bool is_whole_below(const Node* node, std::uint64_t least, std::uint64_t greatest)
    {
        if (node == nullptr) {
            return true;
        }
        if (node->key < least || node->key > greatest || !has_rank_below(node->left, *node) || !has_rank_below(node->right, *node)) {
            return false;
        }
        return (node->left == nullptr || (node->key > 0 && is_whole_below(node->left, least, node->key - 1))) &&
               (node->right == nullptr || (node->key < UINT64_MAX && is_whole_below(node->right, node->key + 1, greatest)));
    }

    Node* root_;
};

}  // namespace bench::transactional
