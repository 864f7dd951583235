// A B+tree of small nodes, so that a few operations split nodes on every level.

#include <algorithm>

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

constexpr std::uint32_t fan_out = 4;

template <class Memory>
struct TreeNode {
    std::uint32_t leaf;
    typename Memory::template Field<std::uint32_t> count;  ///< keys of a leaf, children of an inner node
    typename Memory::template Field<std::uint64_t> keys[fan_out];
    typename Memory::template Field<std::uint64_t> entries[fan_out];  ///< values of a leaf, addresses of children
    typename Memory::template Field<TreeNode*> next;                  ///< of a leaf

    [[nodiscard]] TreeNode* child(std::uint32_t at) const { return reinterpret_cast<TreeNode*>(std::uint64_t{entries[at]}); }
    void set_child(std::uint32_t at, TreeNode* node) { entries[at] = reinterpret_cast<std::uint64_t>(node); }
};

template <class Memory>
struct Tree {
    typename Memory::template Field<TreeNode<Memory>*> top;
    typename Memory::template Field<std::uint64_t> count;
};

template <class Memory>
class BTree final : public WorkloadOn<Memory, Tree<Memory>> {
    using Root = Tree<Memory>;
    using Node = TreeNode<Memory>;
    static constexpr std::uint64_t keys = 400;

    static Node* make_node(bool leaf)
    {
        auto* const node = Memory::template make_zeroed<Node>();
        node->leaf = leaf ? 1 : 0;
        Memory::filled(node->leaf);
        return node;
    }

    void change(Root& root, Random& random) override
    {
        if (root.top == nullptr) {
            root.top = make_node(true);
            Memory::stored(root.top);
        }
        for (int i = 0; i < 3; ++i) {
            const std::uint64_t value = random();
            put(root, 1 + random() % keys, value);
        }
    }

    static void put(Root& root, std::uint64_t key, std::uint64_t value)
    {
        if (root.top->count == fan_out) {
            Node* const above = make_node(false);
            above->count = 1;
            above->set_child(0, root.top);
            split_child(*above, 0);
            root.top = above;
            Memory::stored(*above);
            Memory::stored(root.top);
        }
        Node* node = root.top;
        while (node->leaf == 0) {
            std::uint32_t at = child_of(*node, key);
            if (node->child(at)->count == fan_out) {
                split_child(*node, at);
                at = child_of(*node, key);
            }
            node = node->child(at);
        }
        const std::uint32_t count = node->count;
        const auto at = static_cast<std::uint32_t>(std::lower_bound(node->keys, node->keys + count, key) - node->keys);
        if (at != count && node->keys[at] == key) {
            node->entries[at] = value;
            Memory::stored(node->entries[at]);
            return;
        }
        std::move_backward(node->keys + at, node->keys + count, node->keys + count + 1);
        std::move_backward(node->entries + at, node->entries + count, node->entries + count + 1);
        node->keys[at] = key;
        node->entries[at] = value;
        ++node->count;
        ++root.count;
        Memory::stored(*node);
        Memory::stored(root.count);
    }

    /// keys[i] is the smallest key of child(i + 1).
    static std::uint32_t child_of(const Node& node, std::uint64_t key)
    {
        const auto* const end = node.keys + node.count - 1;
        return static_cast<std::uint32_t>(std::upper_bound(node.keys, end, key) - node.keys);
    }

    static void split_child(Node& parent, std::uint32_t at)
    {
        Node& left = *parent.child(at);
        Node* const right = make_node(left.leaf != 0);
        const std::uint32_t kept = left.count / 2;
        const std::uint32_t moved = left.count - kept;
        right->count = moved;
        std::uint64_t separator = left.keys[kept];
        std::copy_n(left.entries + kept, moved, right->entries);
        if (left.leaf != 0) {
            std::copy_n(left.keys + kept, moved, right->keys);
            right->next = left.next;
            left.next = right;
        } else {
            separator = left.keys[kept - 1];
            std::copy_n(left.keys + kept, moved - 1, right->keys);
        }
        left.count = kept;
        const std::uint32_t count = parent.count;
        std::move_backward(parent.keys + at, parent.keys + count - 1, parent.keys + count);
        std::move_backward(parent.entries + at + 1, parent.entries + count, parent.entries + count + 1);
        parent.keys[at] = separator;
        parent.set_child(at + 1, right);
        ++parent.count;
        Memory::stored(left);
        Memory::stored(*right);
        Memory::stored(parent);
    }

    static std::string check_node(const Node* node, std::uint64_t low, std::uint64_t high, unsigned depth, std::uint64_t& count)
    {
        if (!may_be_followed(node) || node->count > fan_out || depth > 12) {
            return "a child is not a node";
        }
        const std::uint32_t key_count = node->leaf != 0 ? node->count + 0 : node->count - 1;
        for (std::uint32_t i = 0; i < key_count; ++i) {
            const std::uint64_t key = node->keys[i];
            if (key < low || key >= high || (i > 0 && node->keys[i - 1] >= key)) {
                return "key " + std::to_string(key) + " is in the wrong place";
            }
        }
        if (node->leaf != 0) {
            count += node->count;
            return "";
        }
        for (std::uint32_t i = 0; i < node->count; ++i) {
            const std::uint64_t child_low = i == 0 ? low : std::uint64_t{node->keys[i - 1]};
            const std::uint64_t child_high = i + 1 == node->count ? high : std::uint64_t{node->keys[i]};
            if (auto found = check_node(node->child(i), child_low, child_high, depth + 1, count); !found.empty()) {
                return found;
            }
        }
        return "";
    }

    std::string problem_of(const Root& root, const FindObject&) const override
    {
        std::uint64_t count = 0;
        if (root.top != nullptr) {
            if (auto found = check_node(root.top, 0, UINT64_MAX, 0, count); !found.empty()) {
                return found;
            }
        }
        return count == root.count ? "" : "the count is " + std::to_string(root.count);
    }

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        Digest digest;
        const Node* node = root.top;
        while (node != nullptr && node->leaf == 0) {
            node = node->child(0);
        }
        for (; node != nullptr; node = node->next) {
            for (std::uint32_t i = 0; i < node->count; ++i) {
                digest.add(node->keys[i]);
                digest.add(node->entries[i]);
            }
        }
        return digest.value();
    }
};

}  // namespace

WorkloadMakers btree() { return over_each_memory<BTree>(); }

}  // namespace stillpoint::explorer
