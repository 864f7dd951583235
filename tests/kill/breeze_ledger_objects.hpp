#pragma once
// The objects of breeze_ledger. A thread's slot holds a thing of some shape: a list, a text, a table of pointers into an array, a ring, a
// tree, or a number in a union with those. Shape and contents follow from the number of the transaction that wrote it, so a check knows
// what must be there. Functions that change objects run within a transaction, and throw Refused where the pool refuses something.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "stillpoint/breeze.h"
#include "stillpoint/stillpoint.h"

namespace ledger {

struct Item {
    Item* next;
    std::uint64_t number;
    std::uint64_t inverse;
};
struct Text {
    std::uint64_t number;
    std::uint64_t bytes;
    char letters[8];  ///< and what follows
};
struct Table {
    std::uint64_t number;
    std::uint64_t count;
    Item* items[1];  ///< into one array; as many as the object has room for
};
struct Ring {
    Ring* next;
    Ring* previous;
    std::uint64_t number;
};
struct Branch {
    Branch* left;
    Branch* right;
    nvm_weak parent;
    std::uint64_t number;
};

enum Shape : std::uint32_t { nothing, number, list, text, table, ring, tree, shapes };

struct Slot {
    std::uint32_t shape;
    std::uint32_t reserved;
    union {
        std::uint64_t word;
        Item* list;
        Text* text;
        Table* table;
        Ring* ring;
        Branch* tree;
    };
};
constexpr std::size_t slots = 12;

/// The slots that one thread writes.
struct Part {
    std::uint64_t done;  ///< its newest transaction in this pool
    Slot slots[ledger::slots];
    nvm_weak watched[ledger::slots];  ///< the thing of each slot
    nvm_weak former[ledger::slots];   ///< the one before, which nothing keeps alive
};

NVM_TYPE(Item, NVM_HAS_PTR(Item, next));
NVM_TYPE(Text, NVM_HAS_TAIL(Text, letters));
NVM_TYPE(Table, NVM_HAS_PTR_TAIL(Table, items));
NVM_TYPE(Ring, NVM_HAS_PTR(Ring, next), NVM_HAS_PTR(Ring, previous));
NVM_TYPE(Branch, NVM_HAS_PTR(Branch, left), NVM_HAS_PTR(Branch, right), NVM_HAS_WEAK(Branch, parent));
NVM_TYPE(Slot, NVM_HAS_PTR_IF(Slot, list, shape, 2), NVM_HAS_PTR_IF(Slot, text, shape, 3), NVM_HAS_PTR_IF(Slot, table, shape, 4),
         NVM_HAS_PTR_IF(Slot, ring, shape, 5), NVM_HAS_PTR_IF(Slot, tree, shape, 6));
NVM_TYPE(Part, NVM_HAS_STRUCT(Part, slots, Slot), NVM_HAS_WEAK(Part, watched), NVM_HAS_WEAK(Part, former));

/// A call has failed; `code` is its sp_error.
struct Refused : std::runtime_error {
    explicit Refused(int result) : std::runtime_error(sp_last_error()), code(result) {}
    int code;
};
inline void need(int result)
{
    if (result != SP_OK) {
        throw Refused(result);
    }
}

template <class T>
void set(T& place, T value)
{
    need(nvm_log_at(&place, sizeof place, __FILE__, __LINE__));
    place = value;
}

template <class T>
T* make(NVM_POOL* pool, std::uint32_t type, std::size_t bytes = sizeof(T))
{
    void* const made = nvm_alloc(pool, type, bytes);
    if (made == nullptr) {
        throw Refused(SP_E_POOL_FULL);
    }
    return static_cast<T*>(made);
}

inline std::uint64_t mixed(std::uint64_t value)
{
    value = (value ^ value >> 31) * 0x9e3779b97f4a7c15;
    return value ^ value >> 29;
}
inline Shape shape_of(std::uint64_t written) { return written == 0 ? nothing : static_cast<Shape>(mixed(written) % shapes); }
inline std::uint64_t length_of(std::uint64_t written) { return 1 + mixed(written + 1) % 6; }
inline std::uint64_t text_bytes_of(std::uint64_t written) { return sizeof(Text::letters) + mixed(written + 2) % 1200; }
/// Few have more than a transaction's log, and more than a record of rewritten pointers.
inline std::uint64_t items_of(std::uint64_t written)
{
    const std::uint64_t chance = mixed(written + 3);
    return chance % 64 == 0 ? 6000 : 1 + chance / 64 % 40;
}
inline bool is_empty_item(std::uint64_t written, std::uint64_t i) { return mixed(written ^ i) % 5 == 0; }
inline char letter_of(std::uint64_t written, std::uint64_t i) { return static_cast<char>('a' + (written + i) % 26); }

/// The object that the slot leads to; nullptr: none.
inline void* thing_of(const Slot& slot) { return slot.shape == nothing || slot.shape == number ? nullptr : static_cast<void*>(slot.list); }

// ---- Changes ----------------------------------------------------------------------------------

inline void write_item(Item& item, std::uint64_t value)
{
    need(nvm_log(&item.number, 2 * sizeof item.number));
    item.number = value;
    item.inverse = ~value;
}

/// Nodes that are there get other numbers; missing ones are added, and further ones cut off.
inline Item* write_list(NVM_POOL* pool, Item* first, std::uint64_t written)
{
    Item* last = nullptr;
    Item* at = first;
    for (std::uint64_t i = 0; i < length_of(written); ++i) {
        if (at == nullptr) {
            at = make<Item>(pool, NVM_TYPE_ID(Item));
            if (last != nullptr) {
                set(last->next, at);
            } else {
                first = at;
            }
        }
        write_item(*at, written + i);
        last = at;
        at = at->next;
    }
    if (last->next != nullptr) {
        set(last->next, static_cast<Item*>(nullptr));
    }
    return first;
}

inline Text* write_text(NVM_POOL* pool, Text* there, std::uint64_t written)
{
    const std::uint64_t bytes = text_bytes_of(written);
    if (there == nullptr || there->bytes != bytes) {
        there = make<Text>(pool, NVM_TYPE_ID(Text), offsetof(Text, letters) + bytes);
    }
    need(nvm_log(there, offsetof(Text, letters) + bytes));
    there->number = written;
    there->bytes = bytes;
    for (std::uint64_t i = 0; i < bytes; ++i) {
        there->letters[i] = letter_of(written, i);
    }
    return there;
}

inline Table* make_table(NVM_POOL* pool, std::uint64_t written)
{
    const std::uint64_t count = items_of(written);
    auto* const made = make<Table>(pool, NVM_TYPE_ID(Table), offsetof(Table, items) + count * sizeof(Item*));
    auto* const items = make<Item>(pool, NVM_TYPE_ID(Item), count * sizeof(Item));
    made->number = written;
    made->count = count;
    for (std::uint64_t i = 0; i < count; ++i) {
        items[i].number = written + i;
        items[i].inverse = ~items[i].number;
        made->items[i] = is_empty_item(written, i) ? nullptr : &items[i];
    }
    return made;
}

inline Ring* make_ring(NVM_POOL* pool, std::uint64_t written)
{
    auto* const first = make<Ring>(pool, NVM_TYPE_ID(Ring));
    Ring* last = first;
    first->number = written;
    for (std::uint64_t i = 1; i < length_of(written); ++i) {
        auto* const next = make<Ring>(pool, NVM_TYPE_ID(Ring));
        next->number = written + i;
        next->previous = last;
        last->next = next;
        last = next;
    }
    last->next = first;
    first->previous = last;
    return first;
}

inline Branch* make_tree(NVM_POOL* pool, std::uint64_t written, Branch* parent, std::uint64_t place)
{
    auto* const made = make<Branch>(pool, NVM_TYPE_ID(Branch));
    made->number = written + place;
    need(nvm_weak_set(pool, &made->parent, parent));
    if (2 * place <= length_of(written)) {
        made->left = make_tree(pool, written, made, 2 * place);
    }
    if (2 * place + 1 <= length_of(written)) {
        made->right = make_tree(pool, written, made, 2 * place + 1);
    }
    return made;
}

/// The slot holds what belongs to that number from here on. Some things are changed in their places.
inline void write_slot(NVM_POOL* pool, Slot& slot, std::uint64_t written)
{
    const Shape shape = shape_of(written);
    const bool stays = slot.shape == shape && mixed(written + 4) % 2 == 0;
    Slot made{};
    made.shape = shape;
    switch (shape) {
    case number: made.word = written; break;
    case list: made.list = write_list(pool, stays ? slot.list : nullptr, written); break;
    case text: made.text = write_text(pool, stays ? slot.text : nullptr, written); break;
    case table: made.table = make_table(pool, written); break;
    case ring: made.ring = make_ring(pool, written); break;
    case tree: made.tree = make_tree(pool, written, nullptr, 1); break;
    default: break;
    }
    set(slot, made);
}

// ---- Checks -----------------------------------------------------------------------------------

/// Objects that pointers lead to, and how many do.
using Reached = std::unordered_map<const void*, std::uint32_t>;

/// False: that pointer of a tree, a list or a ring is not what was written.
inline bool is_sound_list(const Item* item, std::uint64_t written, Reached& reached)
{
    std::uint64_t length = 0;
    for (; item != nullptr && length < length_of(written); item = item->next, ++length) {
        ++reached[item];
        if (item->number != written + length || item->inverse != ~item->number) {
            return false;
        }
    }
    return item == nullptr && length == length_of(written);
}

inline bool is_sound_text(const Text& found, std::uint64_t written, Reached& reached)
{
    ++reached[&found];
    bool is_sound = found.number == written && found.bytes == text_bytes_of(written);
    for (std::uint64_t i = 0; is_sound && i < found.bytes; ++i) {
        is_sound = found.letters[i] == letter_of(written, i);
    }
    return is_sound;
}

inline bool is_sound_table(const Table& found, std::uint64_t written, Reached& reached)
{
    ++reached[&found];
    if (found.number != written || found.count != items_of(written)) {
        return false;
    }
    const Item* array = nullptr;  // All pointers lead into one.
    for (std::uint64_t i = 0; i < found.count; ++i) {
        const Item* const item = found.items[i];
        if ((item == nullptr) != is_empty_item(written, i)) {
            return false;
        }
        if (item == nullptr) {
            continue;
        }
        array = array == nullptr ? item - i : array;
        if (item != array + i || item->number != written + i || item->inverse != ~item->number) {
            return false;
        }
        ++reached[array];
    }
    return true;
}

inline bool is_sound_ring(const Ring* first, std::uint64_t written, Reached& reached)
{
    const Ring* at = first;
    ++reached[first];  // By the slot; the ring's own pointers follow.
    for (std::uint64_t i = 0; i < length_of(written); ++i, at = at->next) {
        ++reached[at->next];
        ++reached[at->previous];
        if (at->number != written + i || at->next->previous != at) {
            return false;
        }
    }
    return at == first;
}

inline bool is_sound_tree(NVM_POOL* pool, const Branch* branch, std::uint64_t written, const Branch* parent, std::uint64_t place,
                          Reached& reached)
{
    if (branch == nullptr || place > length_of(written)) {
        return branch == nullptr && place > length_of(written);
    }
    ++reached[branch];
    return branch->number == written + place && nvm_weak_get(pool, &branch->parent) == parent &&
           is_sound_tree(pool, branch->left, written, branch, 2 * place, reached) &&
           is_sound_tree(pool, branch->right, written, branch, 2 * place + 1, reached);
}

/// The slot holds what the transaction of that number has written; 0: none has.
inline bool is_sound_slot(NVM_POOL* pool, const Slot& slot, std::uint64_t written, Reached& reached)
{
    if (slot.shape != shape_of(written)) {
        return false;
    }
    switch (slot.shape) {
    case number: return slot.word == written;
    case list: return is_sound_list(slot.list, written, reached);
    case text: return slot.text != nullptr && is_sound_text(*slot.text, written, reached);
    case table: return slot.table != nullptr && is_sound_table(*slot.table, written, reached);
    case ring: return slot.ring != nullptr && is_sound_ring(slot.ring, written, reached);
    case tree: return is_sound_tree(pool, slot.tree, written, nullptr, 1, reached);
    default: return slot.word == 0;
    }
}

}  // namespace ledger
