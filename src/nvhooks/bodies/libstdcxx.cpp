// Bodies of functions that libstdc++ has precompiled and that write or read the program's memory at places that no
// description can name: the trees of std::map and std::set, and the nodes of std::list. The build compiles this file to bitcode,
// which is part of the compiler plugin; the pass puts a body in place of the declaration in each unit that uses it,
// and instruments it like the program's own code (library_bodies.cpp).
//
// Written from what the functions have to achieve (a red-black tree with a header node; a circular list with two
// pointers a node) and from the memory layout that libstdc++'s ABI fixes. The name of each body is the prefix below
// and the symbol that it stands for; tests/nvhooks/containers_test.py holds the list against libstdc++.

#define BODY_OF(symbol) __asm__("nvhooks.body." symbol)

namespace {

// ---- The red-black tree. A header stands beside each tree: its parent is the root, whose parent is the header;
// its left is the first node, its right the last; in an empty tree both are the header itself.

enum Color : int { red = 0, black = 1 };

struct TreeNode {
    Color color;
    TreeNode* parent;
    TreeNode* left;
    TreeNode* right;
};
static_assert(sizeof(TreeNode) == 32);

bool is_black(const TreeNode* node) { return node == nullptr || node->color == black; }

TreeNode* first_of(TreeNode* node)
{
    while (node->left != nullptr) {
        node = node->left;
    }
    return node;
}

TreeNode* last_of(TreeNode* node)
{
    while (node->right != nullptr) {
        node = node->right;
    }
    return node;
}

/// Makes what points down to `old` point to `node`, which may be null.
void replace_child(TreeNode* old, TreeNode* node, TreeNode& header)
{
    TreeNode* const parent = old->parent;
    if (parent == &header) {
        header.parent = node;
    } else if (parent->left == old) {
        parent->left = node;
    } else {
        parent->right = node;
    }
}

/// Towards the left: the right child takes the place of `node`, which becomes its left child.
void rotate(TreeNode* node, bool towards_left, TreeNode& header)
{
    TreeNode* const up = towards_left ? node->right : node->left;
    TreeNode* const moved = towards_left ? up->left : up->right;
    (towards_left ? node->right : node->left) = moved;
    if (moved != nullptr) {
        moved->parent = node;
    }
    replace_child(node, up, header);
    up->parent = node->parent;
    (towards_left ? up->left : up->right) = node;
    node->parent = up;
}

/// `node` is red and new: no red node may have a red parent.
void restore_after_insert(TreeNode* node, TreeNode& header)
{
    while (node->parent != &header && node->parent->color == red) {
        TreeNode* parent = node->parent;
        TreeNode* const grandparent = parent->parent;  // a red node is not the root
        const bool parent_is_left = grandparent->left == parent;
        TreeNode* const uncle = parent_is_left ? grandparent->right : grandparent->left;
        if (!is_black(uncle)) {
            parent->color = black;
            uncle->color = black;
            grandparent->color = red;
            node = grandparent;
            continue;
        }
        if ((parent->left == node) != parent_is_left) {
            rotate(parent, parent_is_left, header);
            parent = node;
        }
        parent->color = black;
        grandparent->color = red;
        rotate(grandparent, !parent_is_left, header);
        break;
    }
    header.parent->color = black;
}

/// The paths through `node`, a child of `parent` that may be null, have a black node too few.
void restore_after_erase(TreeNode* node, TreeNode* parent, TreeNode& header)
{
    while (parent != &header && is_black(node)) {
        const bool is_left = parent->left == node;
        TreeNode* sibling = is_left ? parent->right : parent->left;
        if (!is_black(sibling)) {
            sibling->color = black;
            parent->color = red;
            rotate(parent, is_left, header);
            sibling = is_left ? parent->right : parent->left;
        }
        TreeNode* const near = is_left ? sibling->left : sibling->right;
        TreeNode* far = is_left ? sibling->right : sibling->left;
        if (is_black(near) && is_black(far)) {
            sibling->color = red;
            node = parent;
            parent = node->parent;
            continue;
        }
        if (is_black(far)) {
            near->color = black;
            sibling->color = red;
            rotate(sibling, !is_left, header);
            far = sibling;
            sibling = near;
        }
        sibling->color = parent->color;
        parent->color = black;
        far->color = black;
        rotate(parent, is_left, header);
        return;
    }
    if (node != nullptr) {
        node->color = black;
    }
}

/// Takes out a node that has at most one child.
void erase_outer(TreeNode* node, TreeNode& header)
{
    TreeNode* const child = node->left != nullptr ? node->left : node->right;
    TreeNode* const parent = node->parent;
    if (header.left == node) {
        header.left = child != nullptr ? first_of(child) : parent;
    }
    if (header.right == node) {
        header.right = child != nullptr ? last_of(child) : parent;
    }
    replace_child(node, child, header);
    if (child != nullptr) {
        child->parent = parent;
    }
    if (node->color == black) {
        restore_after_erase(child, parent, header);
    }
}

/// Takes out a node with two children: the next node takes its place.
void erase_inner(TreeNode* node, TreeNode& header)
{
    TreeNode* const next = first_of(node->right);
    TreeNode* const child = next->right;
    TreeNode* parent = next;  // of `child` afterwards
    const Color lost = next->color;
    if (next != node->right) {
        parent = next->parent;
        parent->left = child;
        if (child != nullptr) {
            child->parent = parent;
        }
        next->right = node->right;
        next->right->parent = next;
    }
    next->left = node->left;
    next->left->parent = next;
    replace_child(node, next, header);
    next->parent = node->parent;
    next->color = node->color;
    if (lost == black) {
        restore_after_erase(child, parent, header);
    }
}

/// In order; after the last node comes the header.
TreeNode* next_of(TreeNode* node)
{
    if (node->right != nullptr) {
        return first_of(node->right);
    }
    TreeNode* up = node->parent;
    while (up->right == node) {
        node = up;
        up = up->parent;
    }
    return node->right == up ? node : up;  // the header: its right is the root only where the root is the last node
}

/// In order; before the header comes the last node.
TreeNode* previous_of(TreeNode* node)
{
    if (node->color == red && node->parent->parent == node) {
        return node->right;  // the header: it is red, and the root is black
    }
    if (node->left != nullptr) {
        return last_of(node->left);
    }
    TreeNode* up = node->parent;
    while (up->left == node) {
        node = up;
        up = up->parent;
    }
    return up;
}

// ---- The list: a ring through a head that holds no element.

struct ListNode {
    ListNode* next;
    ListNode* prev;
};
static_assert(sizeof(ListNode) == 16);

void join(ListNode* first, ListNode* second)
{
    first->next = second;
    second->prev = first;
}

}  // namespace

extern "C" {

// The names that have no use here but to carry the symbols.
void tree_insert(bool to_left, TreeNode* node, TreeNode* parent, TreeNode& header)
    BODY_OF("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_");
TreeNode* tree_erase(TreeNode* node, TreeNode& header) BODY_OF("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_");
TreeNode* tree_next(TreeNode* node) BODY_OF("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base");
TreeNode* tree_next_constant(TreeNode* node) BODY_OF("_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base");
TreeNode* tree_previous(TreeNode* node) BODY_OF("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base");
TreeNode* tree_previous_constant(TreeNode* node) BODY_OF("_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base");
void list_hook(ListNode* node, ListNode* before) BODY_OF("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void list_unhook(ListNode* node) BODY_OF("_ZNSt8__detail15_List_node_base9_M_unhookEv");
void list_transfer(ListNode* before, ListNode* first, ListNode* end) BODY_OF("_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_");
void list_reverse(ListNode* head) BODY_OF("_ZNSt8__detail15_List_node_base10_M_reverseEv");
void list_swap(ListNode& one, ListNode& other) BODY_OF("_ZNSt8__detail15_List_node_base4swapERS0_S1_");

/// Into an empty tree the header is the parent, and the side is left.
void tree_insert(bool to_left, TreeNode* node, TreeNode* parent, TreeNode& header)
{
    node->color = red;
    node->parent = parent;
    node->left = nullptr;
    node->right = nullptr;
    if (parent == &header) {
        header.parent = node;
        header.left = node;
        header.right = node;
    } else if (to_left) {
        parent->left = node;
        if (header.left == parent) {
            header.left = node;
        }
    } else {
        parent->right = node;
        if (header.right == parent) {
            header.right = node;
        }
    }
    restore_after_insert(node, header);
}

/// Returns the node that is no longer in the tree, for the caller to free.
TreeNode* tree_erase(TreeNode* node, TreeNode& header)
{
    if (node->left != nullptr && node->right != nullptr) {
        erase_inner(node, header);
    } else {
        erase_outer(node, header);
    }
    return node;
}

TreeNode* tree_next(TreeNode* node) { return next_of(node); }
TreeNode* tree_next_constant(TreeNode* node) { return next_of(node); }
TreeNode* tree_previous(TreeNode* node) { return previous_of(node); }
TreeNode* tree_previous_constant(TreeNode* node) { return previous_of(node); }

void list_hook(ListNode* node, ListNode* before)
{
    join(before->prev, node);
    join(node, before);
}

void list_unhook(ListNode* node) { join(node->prev, node->next); }

/// Moves [first, end) to before the node; they may be of the same list.
void list_transfer(ListNode* before, ListNode* first, ListNode* end)
{
    if (before == end || first == end) {
        return;
    }
    ListNode* const last = end->prev;
    join(first->prev, end);
    join(before->prev, first);
    join(last, before);
}

void list_reverse(ListNode* head)
{
    ListNode* node = head;
    do {
        ListNode* const next = node->next;
        node->next = node->prev;
        node->prev = next;
        node = next;
    } while (node != head);
}

void list_swap(ListNode& one, ListNode& other)
{
    if (&one == &other) {
        return;
    }
    const ListNode was = one;
    const bool one_was_empty = one.next == &one;
    if (other.next == &other) {
        join(&one, &one);
    } else {
        join(&one, other.next);
        join(other.prev, &one);
    }
    if (one_was_empty) {
        join(&other, &other);
    } else {
        join(&other, was.next);
        join(was.prev, &other);
    }
}

}  // extern "C"
