#pragma once
// A sorted list of keys with a word each.

#include <cstdint>
#include <optional>

#include "transactions.hpp"

namespace bench::transactional {

template <Word Value>
class List {
public:
    struct Node {
        std::uint64_t key;
        Value value;
        Node* next;
    };

    /// The value's place; nullptr: there is no such key.
    template <Transaction Tx>
    [[nodiscard]] Value* find(Tx& tx, std::uint64_t key)
    {
        Node* const node = tx.read(*link_of(tx, key));
        return node != nullptr && tx.read(node->key) == key ? &node->value : nullptr;
    }
    /// False: the key was there, and keeps its value.
    template <Transaction Tx>
    bool insert(Tx& tx, std::uint64_t key, Value value)
    {
        Node** const link = link_of(tx, key);
        Node* const next = tx.read(*link);
        if (next != nullptr && tx.read(next->key) == key) {
            return false;
        }
        Node* const node = make<Node>(tx);
        tx.write(node->key, key);
        tx.write(node->value, value);
        tx.write(node->next, next);
        tx.write(*link, node);
        return true;
    }
    /// The value that was there.
    template <Transaction Tx>
    std::optional<Value> remove(Tx& tx, std::uint64_t key)
    {
        Node** const link = link_of(tx, key);
        Node* const node = tx.read(*link);
        if (node == nullptr || tx.read(node->key) != key) {
            return std::nullopt;
        }
        return take(tx, *link, *node);
    }
    /// The value of the least key.
    template <Transaction Tx>
    std::optional<Value> pop(Tx& tx)
    {
        Node* const node = tx.read(first_);
        return node != nullptr ? std::optional(take(tx, first_, *node)) : std::nullopt;
    }
    /// visit(key, place of the value), in the order of the keys.
    template <Transaction Tx, class Visit>
    void for_each(Tx& tx, Visit visit)
    {
        for (Node* node = tx.read(first_); node != nullptr; node = tx.read(node->next)) {
            visit(tx.read(node->key), node->value);
        }
    }
    /// The first key for which `is_wanted(key, value)` is true.
    template <Transaction Tx, class IsWanted>
    [[nodiscard]] std::optional<std::uint64_t> find_if(Tx& tx, IsWanted is_wanted)
    {
        for (Node* node = tx.read(first_); node != nullptr; node = tx.read(node->next)) {
            const std::uint64_t key = tx.read(node->key);
            if (is_wanted(key, tx.read(node->value))) {
                return key;
            }
        }
        return std::nullopt;
    }
    /// visit(key, value); no thread is in a transaction.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (const Node* node = first_; node != nullptr; node = node->next) {
            visit(node->key, node->value);
        }
    }
    [[nodiscard]] bool is_empty() const noexcept { return first_ == nullptr; }

private:
    /// The link to the first node that has this key or a greater one.
    template <Transaction Tx>
    Node** link_of(Tx& tx, std::uint64_t key)
    {
        Node** link = &first_;
        for (Node* node = tx.read(*link); node != nullptr && tx.read(node->key) < key; node = tx.read(*link)) {
            link = &node->next;
        }
        return link;
    }
    template <Transaction Tx>
    static Value take(Tx& tx, Node*& link, Node& node)
    {
        const Value value = tx.read(node.value);
        tx.write(link, tx.read(node.next));
        tx.free(&node);
        return value;
    }

    Node* first_;
};

}  // namespace bench::transactional
