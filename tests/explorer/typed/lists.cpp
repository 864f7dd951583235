// Lists: nodes are added, dropped, moved and changed, with weak pointers to some of them.

#include <iterator>

#include "typed/typed_stores.hpp"

namespace stillpoint::explorer {

namespace {

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
    using Kind = ListsKind;
    explicit Lists(Kind kind) : kind_(kind), is_divided_(kind == Kind::divided || kind == Kind::reusing) {}

    void* make_root(NVM_POOL* pool) override { return make<ListRoot>(pool, NVM_TYPE_ID(ListRoot)); }

    void change(NVM_POOL* pool, void* root, unsigned part, Random& random) override
    {
        auto& heads = static_cast<ListRoot*>(root)->heads;
        ListNode*& from = is_divided_ ? heads[part] : heads[random() % std::size(heads)];
        ListNode*& to = is_divided_ ? heads[part] : heads[random() % std::size(heads)];
        ListNode* const first = from;
        if (kind_ == Kind::growing) {
            for (int i = 0; i < 6; ++i) {
                add(pool, heads[random() % std::size(heads)], random());
            }
            return;
        }
        if (kind_ == Kind::reusing) {
            add_or_free(pool, from, random);
            return;
        }
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
        BoundedDigest digest;
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

    /// A node that comes next has the place of one that was freed.
    static void add_or_free(NVM_POOL* pool, ListNode*& head, Random& random)
    {
        ListNode* const first = head;
        if (first == nullptr || random() % 2 == 0) {
            add(pool, head, random());
            return;
        }
        set(head, first->next);
        if (nvm_free(pool, first) != SP_OK) {
            refused("a node is not freed");
        }
    }

    Kind kind_;
    bool is_divided_;
};

}  // namespace

std::unique_ptr<TypedProgram> make_lists(ListsKind kind) { return std::make_unique<Lists>(kind); }

}  // namespace stillpoint::explorer
