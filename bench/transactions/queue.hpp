#pragma once
// A first-in, first-out queue of words.

#include <optional>

#include "transactions.hpp"

namespace bench::transactional {

template <Word Value>
class Queue {
public:
    template <Transaction Tx>
    void push(Tx& tx, Value value)
    {
        Node* const node = make<Node>(tx);
        tx.write(node->value, value);
        tx.write(node->next, static_cast<Node*>(nullptr));
        if (Node* const last = tx.read(last_); last != nullptr) {
            tx.write(last->next, node);
        } else {
            tx.write(first_, node);
        }
        tx.write(last_, node);
    }
    /// Nothing: it is empty.
    template <Transaction Tx>
    std::optional<Value> pop(Tx& tx)
    {
        Node* const node = tx.read(first_);
        if (node == nullptr) {
            return std::nullopt;
        }
        const Value value = tx.read(node->value);
        Node* const next = tx.read(node->next);
        tx.write(first_, next);
        if (next == nullptr) {
            tx.write(last_, static_cast<Node*>(nullptr));
        }
        tx.free(node);
        return value;
    }
    /// visit(value), the oldest first; no thread is in a transaction.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (const Node* node = first_; node != nullptr; node = node->next) {
            visit(node->value);
        }
    }

private:
    struct Node {
        Value value;
        Node* next;
    };

    Node* first_;
    Node* last_;
};

}  // namespace bench::transactional
