// The programs. Each digest follows every pointer, so an object that was freed, or is of another transaction, shows.

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "arch/checksum.hpp"
#include "core/units.hpp"
#include "stillpoint/stillpoint.h"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

namespace {

constexpr std::uint64_t objects_max = 1000;  ///< more than any of these programs makes

[[noreturn]] void refused(const char* what) { throw std::runtime_error(std::string(what) + ": " + sp_last_error()); }

template <class T>
void set(T& place, T value)
{
    if (nvm_log(&place, sizeof place) != SP_OK) {
        refused("a store is refused");
    }
    place = value;
}

template <class T>
T* make(NVM_POOL* pool, std::uint32_t type, std::size_t bytes = sizeof(T))
{
    auto* const made = static_cast<T*>(nvm_alloc(pool, type, bytes));
    if (made == nullptr) {
        refused("no object");
    }
    return made;
}

class Digest {
public:
    void add(std::uint64_t value)
    {
        if (++count_ > 4 * objects_max) {
            throw std::runtime_error("objects have no end");
        }
        sum_ = mix64(sum_ + 1, value);
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return sum_ | 1; }  // 0 is what does not exist.

private:
    std::uint64_t sum_ = 0;
    std::uint64_t count_ = 0;
};

// ---- Lists: nodes are added, dropped, moved and changed, with weak pointers to some of them. ----

struct ListNode {
    ListNode* next;
    std::uint64_t value;
    nvm_weak first;  ///< of its list, when it was added
    char text[40];
};
struct ListRoot {
    ListNode* heads[4];
};
NVM_TYPE(ListNode, NVM_HAS_PTR(ListNode, next), NVM_HAS_WEAK(ListNode, first));
NVM_TYPE(ListRoot, NVM_HAS_PTR(ListRoot, heads));

/// A list for each part; the only part has them all.
class Lists final : public TypedProgram {
public:
    explicit Lists(bool is_divided) : is_divided_(is_divided) {}

    void* make_root(NVM_POOL* pool) override { return make<ListRoot>(pool, NVM_TYPE_ID(ListRoot)); }

    void change(NVM_POOL* pool, void* root, unsigned part, Random& random) override
    {
        auto& heads = static_cast<ListRoot*>(root)->heads;
        ListNode*& from = is_divided_ ? heads[part] : heads[random() % std::size(heads)];
        ListNode*& to = is_divided_ ? heads[part] : heads[random() % std::size(heads)];
        ListNode* const first = from;
        switch (first == nullptr ? 0 : random() % 6) {
        case 0:
        case 1: add(pool, from, random()); break;
        case 2: set(from, first->next); break;
        case 3:
            set(from, first->next);
            set(first->next, to);
            set(to, first);
            break;
        case 4:
            if (nvm_tx_begin(pool) != SP_OK) {  // A part of the transaction.
                refused("no inner transaction");
            }
            for (ListNode* node = first; node != nullptr; node = node->next) {
                set(node->value, node->value * 3 + 1);
                set(node->value, node->value + 1);
            }
            if (nvm_tx_commit(pool) != SP_OK) {
                refused("no inner commit");
            }
            break;
        default:
            add(pool, from, random());
            set(from, from->next);  // Nothing has ever led to the new one.
            break;
        }
    }

    [[nodiscard]] std::uint64_t digest(const void* root, unsigned part) const override
    {
        Digest digest;
        const auto& heads = static_cast<const ListRoot*>(root)->heads;
        for (unsigned i = 0; i < std::size(heads); ++i) {
            digest.add(i);
            for (const ListNode* node = is_divided_ && i != part ? nullptr : heads[i]; node != nullptr; node = node->next) {
                digest.add(node->value);
                digest.add(static_cast<unsigned char>(node->text[39]));
            }
        }
        return digest.value();
    }

private:
    static void add(NVM_POOL* pool, ListNode*& head, std::uint64_t value)
    {
        auto* const node = make<ListNode>(pool, NVM_TYPE_ID(ListNode));
        node->value = value;
        node->next = head;
        node->text[39] = static_cast<char>(value);
        if (nvm_weak_set(pool, &node->first, head) != SP_OK) {
            refused("no weak pointer");
        }
        set(head, node);
    }

    bool is_divided_;
};

// ---- A search tree, and an index: an array of pointers to all its nodes, which is made again now and then. ----

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
        Digest digest;
        add(digest, tree.top, 0);
        const TreeIndex* const index = tree.index;
        for (std::uint64_t i = 0; index != nullptr && i < index->count; ++i) {
            digest.add(index->nodes[i]->key);
            digest.add(index->nodes[i]->value);
        }
        return digest.value();
    }

private:
    static void add(Digest& digest, const TreeNode* node, unsigned depth)
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
            set(*next, successor->children[1]);
            set(successor->children[0], node->children[0]);
            set(successor->children[1], node->children[1]);
            set(place, successor);
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

// ---- Rings: objects that point at each other, which reference counts never free. ----

struct RingNode {
    RingNode* next;
    RingNode* previous;
    std::uint64_t value;
};
struct RingRoot {
    RingNode* rings[3];
};
NVM_TYPE(RingNode, NVM_HAS_PTR(RingNode, next), NVM_HAS_PTR(RingNode, previous));
NVM_TYPE(RingRoot, NVM_HAS_PTR(RingRoot, rings));

class Rings final : public TypedProgram {
public:
    void* make_root(NVM_POOL* pool) override { return make<RingRoot>(pool, NVM_TYPE_ID(RingRoot)); }

    void change(NVM_POOL* pool, void* root, unsigned /*part*/, Random& random) override
    {
        auto& rings = static_cast<RingRoot*>(root)->rings;
        RingNode*& ring = rings[random() % std::size(rings)];
        switch (ring == nullptr ? 0 : random() % 5) {
        case 0: {
            RingNode* first = nullptr;
            for (std::uint64_t length = 1 + random() % 3; length > 0; --length) {
                first = insert(pool, first, random());
            }
            set(ring, first);  // The old one cannot be reached any more.
            break;
        }
        case 1:
        case 2: set(ring, insert(pool, ring, random())); break;
        case 3: {
            RingNode* const gone = ring;
            set(ring, gone->next == gone ? nullptr : gone->next);
            set(gone->previous->next, gone->next);
            set(gone->next->previous, gone->previous);
            break;
        }
        default: set(ring->value, random()); break;
        }
    }

    [[nodiscard]] std::uint64_t digest(const void* root, unsigned /*part*/) const override
    {
        Digest digest;
        for (const RingNode* const ring : static_cast<const RingRoot*>(root)->rings) {
            digest.add(0);
            const RingNode* node = ring;
            while (node != nullptr) {
                digest.add(node->value);
                if (node->next->previous != node) {
                    throw std::runtime_error("a ring is broken");
                }
                node = node->next == ring ? nullptr : node->next;
            }
        }
        return digest.value();
    }

private:
    static RingNode* insert(NVM_POOL* pool, RingNode* before, std::uint64_t value)
    {
        // There are two sizes: a collection frees a ring of both in two steps.
        auto* const node = make<RingNode>(pool, NVM_TYPE_ID(RingNode), (1 + value % 2 * 3) * sizeof(RingNode));
        node->value = value;
        node->next = before == nullptr ? node : before;
        node->previous = before == nullptr ? node : before->previous;
        if (before != nullptr) {
            set(before->previous->next, node);
            set(before->previous, node);
        }
        return node;
    }
};

// ---- Shapes: members of a union, nested structures, arrays of structures, large objects, and freeing by hand. ----

struct Pair {
    struct Shape* first;
    std::uint64_t number;
};
struct Shape {
    std::uint32_t tag;  ///< 1: `link` is there, else `number`
    union {
        Shape* link;
        std::uint64_t number;
    };
    Pair pairs[2];
};
struct Sheet {
    std::uint64_t marks[33'000];  ///< more than one zone of the pool
};
struct ShapeRoot {
    Shape* shapes;      ///< an array
    Sheet* sheet;
};
NVM_TYPE(Pair, NVM_HAS_PTR(Pair, first));
NVM_TYPE(Shape, NVM_HAS_PTR_IF(Shape, link, tag, 1), NVM_HAS_STRUCT(Shape, pairs, Pair));
NVM_TYPE(Sheet, NVM_HAS_TAIL(Sheet, marks));
NVM_TYPE(ShapeRoot, NVM_HAS_PTR(ShapeRoot, shapes), NVM_HAS_PTR(ShapeRoot, sheet));

class Shapes final : public TypedProgram {
public:
    void* make_root(NVM_POOL* pool) override
    {
        auto* const root = make<ShapeRoot>(pool, NVM_TYPE_ID(ShapeRoot));
        root->shapes = make<Shape>(pool, NVM_TYPE_ID(Shape), shapes * sizeof(Shape));
        return root;
    }

    void change(NVM_POOL* pool, void* root, unsigned /*part*/, Random& random) override
    {
        auto& all = *static_cast<ShapeRoot*>(root);
        Shape& shape = all.shapes[random() % shapes];
        switch (random() % 7) {
        case 0:
        case 1: {
            auto* const made = make<Shape>(pool, NVM_TYPE_ID(Shape));
            made->number = random();
            link(shape, made);
            break;
        }
        case 2: link(shape, shape.pairs[0].first); break;
        case 3:
            if (nvm_log(&shape, offsetof(Shape, pairs)) != SP_OK) {
                refused("a union is refused");
            }
            shape.tag = 0;
            shape.number = random();
            break;
        case 4: set(shape.pairs[random() % 2].first, &all.shapes[random() % shapes]); break;  // Into an object.
        case 5: set(shape.pairs[0].first, shape.tag == 1 ? shape.link : nullptr); break;
        default:
            if (all.sheet == nullptr) {
                auto* const sheet = make<Sheet>(pool, NVM_TYPE_ID(Sheet));
                sheet->marks[random() % std::size(sheet->marks)] = random();
                sheet->marks[word_of_second_zone] = random();
                set(all.sheet, sheet);
            } else {
                Sheet* const sheet = all.sheet;
                set(all.sheet, static_cast<Sheet*>(nullptr));
                if (random() % 2 == 0 && nvm_free(pool, sheet) != SP_OK) {
                    refused("a sheet is not freed");
                }
            }
            break;
        }
    }

    [[nodiscard]] std::uint64_t digest(const void* root, unsigned /*part*/) const override
    {
        const auto& all = *static_cast<const ShapeRoot*>(root);
        Digest digest;
        for (std::size_t i = 0; i < shapes; ++i) {
            const Shape& shape = all.shapes[i];
            digest.add(shape.tag == 1 ? 1 : 0);
            digest.add(shape.tag != 1 ? shape.number : digest_of(all, shape.link));
            for (const Pair& pair : shape.pairs) {
                digest.add(digest_of(all, pair.first));
            }
        }
        if (all.sheet != nullptr) {
            digest.add(checksum64(all.sheet->marks, sizeof all.sheet->marks, 0));
        }
        return digest.value();
    }

private:
    static constexpr std::size_t shapes = 3;
    /// There the zone has the header of its first block, unless it is a part of a larger one.
    static constexpr std::size_t word_of_second_zone = (256 * kib - 48) / sizeof(std::uint64_t);

    static std::uint64_t digest_of(const ShapeRoot& all, const Shape* shape)
    {
        if (shape == nullptr) {
            return 0;
        }
        const bool is_of_array = shape >= all.shapes && shape < all.shapes + shapes;
        return is_of_array ? static_cast<std::uint64_t>(shape - all.shapes) + 1 : shape->number + 100;
    }

    static void link(Shape& shape, Shape* other)
    {
        if (nvm_log(&shape, offsetof(Shape, pairs)) != SP_OK) {
            refused("a union is refused");
        }
        shape.tag = 1;
        shape.link = other != &shape ? other : nullptr;
    }
};

}  // namespace

const std::vector<TypedProgramEntry>& typed_programs()
{
    static const std::vector<TypedProgramEntry> programs = {
        {"lists", [] { return std::unique_ptr<TypedProgram>(new Lists(false)); }, 12},
        {"tree", [] { return std::unique_ptr<TypedProgram>(new Tree); }, 12},
        {"rings", [] { return std::unique_ptr<TypedProgram>(new Rings); }, 12, 1, true},
        {"shapes", [] { return std::unique_ptr<TypedProgram>(new Shapes); }, 10, 1, true},
        {"threads", [] { return std::unique_ptr<TypedProgram>(new Lists(true)); }, 8, 2},
    };
    return programs;
}

const TypedProgramEntry& typed_program_called(std::string_view name)
{
    const auto found = std::ranges::find(typed_programs(), name, &TypedProgramEntry::name);
    if (found == typed_programs().end()) {
        throw std::runtime_error("there is no typed program " + std::string(name));
    }
    return *found;
}

}  // namespace stillpoint::explorer
