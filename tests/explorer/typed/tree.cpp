// A search tree, and an index: an array of pointers to all its nodes, which is made again now and then.

#include <algorithm>
#include <vector>

#include "typed/typed_stores.hpp"

namespace stillpoint::explorer {

namespace {

struct TreeNode {
    TreeNode* children[2];
    std::uint64_t key;
    std::uint64_t value;
};
struct TreeIndex {
    std::uint64_t count;
    TreeNode* nodes[1];  ///< `count` of them
};
struct TreeRoot {
    TreeNode* top;
    TreeIndex* index;
};
NVM_TYPE(TreeNode, NVM_HAS_PTR(TreeNode, children));
NVM_TYPE(TreeIndex, NVM_HAS_PTR_TAIL(TreeIndex, nodes));
NVM_TYPE(TreeRoot, NVM_HAS_PTR(TreeRoot, top), NVM_HAS_PTR(TreeRoot, index));

class Tree final : public TypedProgram {
public:
    void* make_root(NVM_POOL* pool) override { return make<TreeRoot>(pool, NVM_TYPE_ID(TreeRoot)); }

    void change(NVM_POOL* pool, void* root, unsigned /*part*/, Random& random) override
    {
        auto& tree = *static_cast<TreeRoot*>(root);
        const std::uint64_t key = random() % 24;
        if (random() % 5 == 0) {
            make_index(pool, tree, random() % 2 == 0);
            return;
        }
        TreeNode** place = &tree.top;
        while (*place != nullptr && (*place)->key != key) {
            place = &(*place)->children[key > (*place)->key ? 1 : 0];
        }
        if (*place == nullptr) {
            auto* const node = make<TreeNode>(pool, NVM_TYPE_ID(TreeNode));
            node->key = key;
            node->value = random();
            set(*place, node);
        } else if (random() % 2 == 0) {
            set((*place)->value, random());
        } else {
            erase(pool, tree, *place);
        }
    }

    [[nodiscard]] std::uint64_t digest(const void* root, unsigned /*part*/) const override
    {
        const auto& tree = *static_cast<const TreeRoot*>(root);
        BoundedDigest digest;
        add(digest, tree.top, 0);
        const TreeIndex* const index = tree.index;
        for (std::uint64_t i = 0; index != nullptr && i < index->count; ++i) {
            digest.add(index->nodes[i]->key);
            digest.add(index->nodes[i]->value);
        }
        return digest.value();
    }

private:
    static void add(BoundedDigest& digest, const TreeNode* node, unsigned depth)
    {
        digest.add(node == nullptr ? 0 : node->key + 1);
        if (node != nullptr && depth < objects_max) {
            digest.add(node->value);
            add(digest, node->children[0], depth + 1);
            add(digest, node->children[1], depth + 1);
        }
    }

    static void erase(NVM_POOL* pool, TreeRoot& tree, TreeNode*& place)
    {
        TreeNode* const node = place;
        if (node->children[0] == nullptr || node->children[1] == nullptr) {
            set(place, node->children[node->children[0] == nullptr ? 1 : 0]);
        } else {
            TreeNode** next = &node->children[1];
            while ((*next)->children[0] != nullptr) {
                next = &(*next)->children[0];
            }
            TreeNode* const successor = *next;
            log_together(*next, successor->children, place);
            *next = successor->children[1];
            successor->children[0] = node->children[0];
            successor->children[1] = node->children[1];
            place = successor;
        }
        if (tree.index == nullptr && nvm_free(pool, node) != SP_OK) {  // The index may still lead to it.
            refused("a node is not freed");
        }
    }

    static void collect(std::vector<TreeNode*>& nodes, TreeNode* node)
    {
        if (node != nullptr && nodes.size() < objects_max) {
            nodes.push_back(node);
            collect(nodes, node->children[0]);
            collect(nodes, node->children[1]);
        }
    }

    static void make_index(NVM_POOL* pool, TreeRoot& tree, bool has_one)
    {
        TreeIndex* index = nullptr;
        if (has_one) {
            std::vector<TreeNode*> nodes;
            collect(nodes, tree.top);
            index = make<TreeIndex>(pool, NVM_TYPE_ID(TreeIndex),
                                    sizeof(TreeIndex) + std::max<std::size_t>(nodes.size(), 1) * sizeof(TreeNode*) - sizeof(TreeNode*));
            index->count = nodes.size();
            std::copy(nodes.begin(), nodes.end(), index->nodes);
        }
        set(tree.index, index);
    }
};

}  // namespace

std::unique_ptr<TypedProgram> make_tree() { return std::make_unique<Tree>(); }

}  // namespace stillpoint::explorer
