// A B+tree of small nodes, so that a few operations split nodes on every level.

#include <algorithm>

#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class BTree final : public Workload {
    static constexpr std::uint32_t fan_out = 4;
    struct Node {
        std::uint32_t leaf;
        std::uint32_t count;  ///< keys of a leaf, children of an inner node
        std::uint64_t keys[fan_out];
        union {
            std::uint64_t values[fan_out];
            Node* children[fan_out];
        };
        Node* next;  ///< of a leaf
    };
    struct Root {
        Node* root;
        std::uint64_t count;
    };
    static constexpr std::uint64_t keys = 400;

    std::size_t root_bytes() const override { return sizeof(Root); }

    static Node* make_node(bool leaf)
    {
        auto* const node = static_cast<Node*>(sp_calloc(1, sizeof(Node)));
        node->leaf = leaf ? 1 : 0;
        stored(node->leaf);
        return node;
    }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        if (root.root == nullptr) {
            root.root = make_node(true);
            stored(root.root);
        }
        for (int i = 0; i < 3; ++i) {
            put(root, 1 + random() % keys, random());
        }
    }

    static void put(Root& root, std::uint64_t key, std::uint64_t value)
    {
        if (root.root->count == fan_out) {
            Node* const above = make_node(false);
            above->count = 1;
            above->children[0] = root.root;
            split_child(*above, 0);
            root.root = above;
            stored(*above);
            stored(root.root);
        }
        Node* node = root.root;
        while (node->leaf == 0) {
            std::uint32_t at = child_of(*node, key);
            if (node->children[at]->count == fan_out) {
                split_child(*node, at);
                at = child_of(*node, key);
            }
            node = node->children[at];
        }
        const auto* const end = node->keys + node->count;
        const auto at = static_cast<std::uint32_t>(std::lower_bound(node->keys, node->keys + node->count, key) - node->keys);
        if (node->keys + at != end && node->keys[at] == key) {
            node->values[at] = value;
            stored(node->values[at]);
            return;
        }
        std::move_backward(node->keys + at, node->keys + node->count, node->keys + node->count + 1);
        std::move_backward(node->values + at, node->values + node->count, node->values + node->count + 1);
        node->keys[at] = key;
        node->values[at] = value;
        ++node->count;
        ++root.count;
        stored(*node);
        stored(root.count);
    }

    /// keys[i] is the smallest key of children[i + 1].
    static std::uint32_t child_of(const Node& node, std::uint64_t key)
    {
        const auto* const end = node.keys + node.count - 1;
        return static_cast<std::uint32_t>(std::upper_bound(node.keys, end, key) - node.keys);
    }

    static void split_child(Node& parent, std::uint32_t at)
    {
        Node& left = *parent.children[at];
        Node* const right = make_node(left.leaf != 0);
        const std::uint32_t kept = left.count / 2;
        right->count = left.count - kept;
        std::uint64_t separator = left.keys[kept];
        if (left.leaf != 0) {
            std::copy_n(left.keys + kept, right->count, right->keys);
            std::copy_n(left.values + kept, right->count, right->values);
            right->next = left.next;
            left.next = right;
        } else {
            separator = left.keys[kept - 1];
            std::copy_n(left.keys + kept, right->count - 1, right->keys);
            std::copy_n(left.children + kept, right->count, right->children);
        }
        left.count = kept;
        std::move_backward(parent.keys + at, parent.keys + parent.count - 1, parent.keys + parent.count);
        std::move_backward(parent.children + at + 1, parent.children + parent.count,
                           parent.children + parent.count + 1);
        parent.keys[at] = separator;
        parent.children[at + 1] = right;
        ++parent.count;
        stored(left);
        stored(*right);
        stored(parent);
    }

    static std::string check_node(const Node* node, std::uint64_t low, std::uint64_t high, unsigned depth,
                                  std::uint64_t& count)
    {
        if (!may_be_followed(node) || node->count > fan_out || depth > 12) {
            return "a child is no node";
        }
        const std::uint32_t key_count = node->leaf != 0 ? node->count : node->count - 1;
        for (std::uint32_t i = 0; i < key_count; ++i) {
            if (node->keys[i] < low || node->keys[i] >= high || (i > 0 && node->keys[i - 1] >= node->keys[i])) {
                return "key " + std::to_string(node->keys[i]) + " is in the wrong place";
            }
        }
        if (node->leaf != 0) {
            count += node->count;
            return "";
        }
        for (std::uint32_t i = 0; i < node->count; ++i) {
            const std::uint64_t child_low = i == 0 ? low : node->keys[i - 1];
            const std::uint64_t child_high = i + 1 == node->count ? high : node->keys[i];
            if (auto found = check_node(node->children[i], child_low, child_high, depth + 1, count); !found.empty()) {
                return found;
            }
        }
        return "";
    }

    std::string check(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        std::uint64_t count = 0;
        if (root.root != nullptr) {
            if (auto found = check_node(root.root, 0, UINT64_MAX, 0, count); !found.empty()) {
                return found;
            }
        }
        return count == root.count ? "" : "the count is " + std::to_string(root.count);
    }

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        Digest digest;
        const Node* node = static_cast<const Root*>(memory)->root;
        while (node != nullptr && node->leaf == 0) {
            node = node->children[0];
        }
        for (; node != nullptr; node = node->next) {
            for (std::uint32_t i = 0; i < node->count; ++i) {
                digest.add(node->keys[i]);
                digest.add(node->values[i]);
            }
        }
        return digest.value();
    }
};

}  // namespace

std::unique_ptr<Workload> make_btree() { return std::make_unique<BTree>(); }

}  // namespace stillpoint::explorer
