// A sorted, doubly linked list: an insertion or removal changes three nodes.

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

template <class Memory>
struct ListNode {
    typename Memory::template Field<ListNode*> next;
    typename Memory::template Field<ListNode*> previous;
    std::uint64_t key;
    std::uint64_t payload[29];  // 256 bytes in plain memory: neighbours lie in different lines.
};

template <class Memory>
struct List {
    typename Memory::template Field<ListNode<Memory>*> first;
    typename Memory::template Field<std::uint64_t> length;
};

template <class Memory>
class LinkedList final : public WorkloadOn<Memory, List<Memory>> {
    using Root = List<Memory>;
    using Node = ListNode<Memory>;
    static constexpr std::uint64_t keys = 40;
    static constexpr std::uint64_t payload_of(std::uint64_t key) { return key * 0x9e3779b97f4a7c15u; }

    void change(Root& root, Random& random) override
    {
        const std::uint64_t key = 1 + random() % keys;
        Node* before = nullptr;
        Node* after = root.first;
        while (after != nullptr && after->key < key) {
            before = after;
            after = after->next;
        }
        if (after != nullptr && after->key == key) {
            link(root, before, after->next);
            Memory::destroy(after);
            --root.length;
            Memory::stored(root.length);
            return;
        }
        auto* const node = Memory::template make<Node>();
        node->key = key;
        for (std::uint64_t& word : node->payload) {
            word = payload_of(key);
        }
        Memory::filled(*node);
        link(root, before, node);
        link(root, node, after);
        ++root.length;
        Memory::stored(root.length);
    }

    static void link(Root& root, Node* before, Node* after)
    {
        auto& next = before != nullptr ? before->next : root.first;
        next = after;
        Memory::stored(next);
        if (after != nullptr) {
            after->previous = before;
            Memory::stored(after->previous);
        }
    }

    std::string problem_of(const Root& root, const FindObject&) const override
    {
        std::uint64_t length = 0;
        const Node* before = nullptr;
        for (const Node* node = root.first; node != nullptr; before = node, node = node->next) {
            if (!may_be_followed(node) || ++length > keys) {
                return "a link leads nowhere, or round";
            }
            if (node->previous != before || (before != nullptr && before->key >= node->key)) {
                return "links or order are broken at key " + std::to_string(node->key);
            }
            for (const std::uint64_t word : node->payload) {
                if (word != payload_of(node->key)) {
                    return "the payload of key " + std::to_string(node->key) + " is torn";
                }
            }
        }
        return length == root.length ? "" : "the length is " + std::to_string(root.length);
    }

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        Digest digest;
        for (const Node* node = root.first; node != nullptr; node = node->next) {
            digest.add(node->key);
        }
        return digest.value();
    }
};

}  // namespace

WorkloadMakers linked_list() { return over_each_memory<LinkedList>(); }

}  // namespace stillpoint::explorer
