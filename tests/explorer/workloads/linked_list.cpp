// A sorted, doubly linked list: an insertion or removal changes three nodes.

#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class LinkedList final : public Workload {
    struct Node {
        Node* next;
        Node* previous;
        std::uint64_t key;
        std::uint64_t payload[29];  // 256 bytes: neighbours lie in different lines.
    };
    struct Root {
        Node* first;
        std::uint64_t length;
    };
    static constexpr std::uint64_t keys = 40;
    static constexpr std::uint64_t payload_of(std::uint64_t key) { return key * 0x9e3779b97f4a7c15u; }

    std::size_t root_bytes() const override { return sizeof(Root); }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        const std::uint64_t key = 1 + random() % keys;
        Node* before = nullptr;
        Node* after = root.first;
        while (after != nullptr && after->key < key) {
            before = after;
            after = after->next;
        }
        if (after != nullptr && after->key == key) {
            link(root, before, after->next);
            sp_free(after);
            --root.length;
            stored(root.length);
            return;
        }
        auto* const node = static_cast<Node*>(sp_malloc(sizeof(Node)));
        node->key = key;
        for (std::uint64_t& word : node->payload) {
            word = payload_of(key);
        }
        stored(*node);
        link(root, before, node);
        link(root, node, after);
        ++root.length;
        stored(root.length);
    }

    static void link(Root& root, Node* before, Node* after)
    {
        Node*& next = before != nullptr ? before->next : root.first;
        next = after;
        stored(next);
        if (after != nullptr) {
            after->previous = before;
            stored(after->previous);
        }
    }

    std::string check(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
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

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        Digest digest;
        for (const Node* node = static_cast<const Root*>(memory)->first; node != nullptr; node = node->next) {
            digest.add(node->key);
        }
        return digest.value();
    }
};

}  // namespace

std::unique_ptr<Workload> make_linked_list() { return std::make_unique<LinkedList>(); }

}  // namespace stillpoint::explorer
