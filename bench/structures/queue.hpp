#pragma once
// A queue under one lock, a linked list of nodes [ResPCT §5.1].
//
// Where the engine rolls back only what it logs by name, a node's link needs no log: that of the last node is not read before the next
// push has written it, since a pop knows the last node by the queue's own pointer.

#include <cstdint>
#include <type_traits>

#include "../engines/engine.hpp"

namespace bench {

template <MemoryEngine E>
class SingleLockQueue {
public:
    explicit SingleLockQueue(const char* name) : queue_(E::template named<Queue>(name)) {}

    void push(unsigned, std::uint64_t number)
    {
        typename E::template Operation<1> operation;
        operation.lock(queue_->mutex);
        Node* const node = E::template make<Node>();
        node->number = number;
        if constexpr (E::rolls_back_bytes) {
            E::init(node->next, static_cast<Node*>(nullptr));
        }
        Node* last = queue_->last;
        if (last == nullptr) {
            queue_->first = node;
        } else {
            if constexpr (!E::rolls_back_bytes) {
                E::about_to_write(&last->next, sizeof last->next);
            }
            last->next = node;
        }
        queue_->last = node;
    }

    bool pop(unsigned, std::uint64_t& number)
    {
        typename E::template Operation<1> operation;
        operation.lock(queue_->mutex);
        Node* node = queue_->first;
        if (node == nullptr) {
            return false;
        }
        number = node->number;
        const bool is_last = !E::rolls_back_bytes && node == queue_->last;
        Node* next = is_last ? nullptr : static_cast<Node*>(node->next);
        queue_->first = next;
        if (next == nullptr) {
            queue_->last = static_cast<Node*>(nullptr);
        }
        E::deallocate(node);
        return true;
    }

    void settle() { E::settle(); }

private:
    struct Node {
        std::uint64_t number;
        std::conditional_t<E::rolls_back_bytes, typename E::template Durable<Node*>, Node*> next;
    };
    struct Queue {
        typename E::Mutex mutex;
        typename E::template Durable<Node*> first;
        typename E::template Durable<Node*> last;
    };

    Queue* queue_;
};

}  // namespace bench
