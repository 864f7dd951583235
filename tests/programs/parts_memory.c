// Parts that live by the heap: words with a sum, blocks with patterns, a tree, an array, named objects.

#include <stdio.h>
#include <string.h>

#include "program.h"

static unsigned char pattern_of(uint64_t tag, size_t size_bytes) { return (unsigned char)(tag * 31 + size_bytes * 7 + 5); }

static void fill_pattern(void* at, uint64_t tag, size_t size_bytes, size_t from)
{
    memset((char*)at + from, pattern_of(tag, size_bytes), size_bytes - from);
}

static void verify_pattern(const char* what, const void* at, uint64_t tag, size_t size_bytes, size_t from)
{
    const unsigned char* const bytes = at;
    const unsigned char wanted = pattern_of(tag, size_bytes);
    for (size_t i = from; i < size_bytes; ++i) {
        if (bytes[i] != wanted) {
            end_program(END_BROKEN, what, wanted, bytes[i]);
        }
    }
}

// -- Words ------------------------------------------------------------------------------------

struct words {
    struct head head;
    uint64_t word[];
};

static const uint64_t first_word = 1000000;

static uint64_t word_count(const struct part* part) { return (uint64_t)part->parameter * 512; }

static size_t words_bytes(const struct part* part) { return sizeof(struct words) + word_count(part) * 8; }

static void words_make(struct part* part)
{
    struct words* const words = (struct words*)part->head;
    for (uint64_t i = 0; i < word_count(part); i += 64) {
        words->word[i] = first_word;
    }
}

static uint64_t words_verify(const struct part* part)
{
    const struct words* const words = (const struct words*)part->head;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < word_count(part); ++i) {
        sum += words->word[i];
    }
    expect_equal("the sum of the words", word_count(part) / 64 * first_word, sum);
    return 0;
}

void words_transfer(struct part* part, struct worker* worker, unsigned times)
{
    struct words* const words = (struct words*)part->head;
    part_touch(part, worker);
    for (unsigned i = 0; i < times; ++i) {
        uint64_t* const from = &words->word[random_below(word_count(part) / 64) * 64];
        uint64_t* const to = &words->word[random_below(word_count(part))];
        const uint64_t amount = random_below(*from / 2 + 1);
        *from -= amount;
        *to += amount;
    }
}

const struct part_kind words_kind = {words_bytes, words_make, words_verify, NULL};

// -- List -------------------------------------------------------------------------------------

struct block {
    struct block* next;
    uint64_t tag;
    uint64_t size_bytes;
};

struct list {
    struct head head;
    struct block* first;
    uint64_t length;
    uint64_t tags; // sum of all blocks'
};

static size_t list_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct list);
}

static void list_make(struct part* part) { (void)part; }

static void block_verify(const struct block* block)
{
    verify_pattern("a block of a list does not hold its pattern", block, block->tag, block->size_bytes, sizeof *block);
}

static uint64_t list_verify(const struct part* part)
{
    const struct list* const list = (const struct list*)part->head;
    uint64_t length = 0, tags = 0;
    for (const struct block* block = list->first; block != NULL && length <= list->length; block = block->next) {
        block_verify(block);
        tags += block->tag;
        ++length;
    }
    expect_equal("the length of a list", list->length, length);
    expect_equal("the sum of a list's tags", list->tags, tags);
    return length;
}

/// NULL: the pool is at its maximum.
static void* allocate(size_t size_bytes)
{
    switch (random_below(4)) {
    case 0: return sp_calloc(1, size_bytes);
    case 1: return sp_aligned_alloc((size_t)16 << random_below(9), size_bytes);
    default: return sp_malloc(size_bytes);
    }
}

void list_push(struct part* part, struct worker* worker, size_t size_bytes)
{
    struct list* const list = (struct list*)part->head;
    if (list->length >= part->parameter) {
        list_pop(part, worker);
        return;
    }
    size_bytes = sizeof(struct block) + random_below(size_bytes + 1);
    part_touch(part, worker);
    struct block* const block = allocate(size_bytes);
    if (block == NULL) {
        return;
    }
    *block = (struct block){list->first, next_random(), size_bytes};
    fill_pattern(block, block->tag, size_bytes, sizeof *block);
    list->first = block;
    list->tags += block->tag;
    ++list->length;
}

void list_pop(struct part* part, struct worker* worker)
{
    struct list* const list = (struct list*)part->head;
    part_touch(part, worker);
    struct block* const block = list->first;
    if (block == NULL) {
        return;
    }
    block_verify(block);
    list->first = block->next;
    list->tags -= block->tag;
    --list->length;
    sp_free(block);
}

void list_resize(struct part* part, struct worker* worker, size_t size_bytes)
{
    struct list* const list = (struct list*)part->head;
    part_touch(part, worker);
    struct block** link = &list->first;
    for (uint64_t hops = random_below(list->length); hops > 0 && (*link)->next != NULL; --hops) {
        link = &(*link)->next;
    }
    struct block* const block = *link;
    if (block == NULL) {
        return;
    }
    block_verify(block);
    const size_t old_bytes = block->size_bytes;
    const uint64_t tag = block->tag;
    size_bytes = sizeof *block + random_below(size_bytes + 1);
    struct block* const resized = sp_realloc(block, size_bytes);
    if (resized == NULL) {
        return;
    }
    const size_t kept_bytes = size_bytes < old_bytes ? size_bytes : old_bytes;
    const unsigned char* const bytes = (const unsigned char*)resized;
    for (size_t i = sizeof *resized; i < kept_bytes; ++i) {
        if (bytes[i] != pattern_of(tag, old_bytes)) {
            end_program(END_BROKEN, "sp_realloc has changed what a block holds", pattern_of(tag, old_bytes), bytes[i]);
        }
    }
    resized->size_bytes = size_bytes;
    fill_pattern(resized, tag, size_bytes, sizeof *resized);
    *link = resized;
}

const struct part_kind list_kind = {list_bytes, list_make, list_verify, NULL};

// -- Tree -------------------------------------------------------------------------------------

struct node {
    struct node* child[2];
    uint64_t key;
    uint64_t inverse;
};

struct tree {
    struct head head;
    struct node* top;
    uint64_t count;
    uint64_t keys; // their sum
};

static size_t tree_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct tree);
}

static uint64_t nodes_verify(const struct node* node, uint64_t low, uint64_t high, uint64_t* keys, unsigned depth)
{
    if (node == NULL) {
        return 0;
    }
    if (depth > 4096) {
        end_program(END_BROKEN, "a tree is too deep", 4096, depth);
    }
    expect_equal("the inverse of a tree's key", ~node->key, node->inverse);
    if (node->key < low || node->key > high) {
        end_program(END_BROKEN, "a tree is out of order", low, node->key);
    }
    *keys += node->key;
    return 1 + nodes_verify(node->child[0], low, node->key, keys, depth + 1) +
           nodes_verify(node->child[1], node->key, high, keys, depth + 1);
}

static uint64_t tree_verify(const struct part* part)
{
    const struct tree* const tree = (const struct tree*)part->head;
    uint64_t keys = 0;
    const uint64_t count = nodes_verify(tree->top, 0, UINT64_MAX, &keys, 0);
    expect_equal("the nodes of a tree", tree->count, count);
    expect_equal("the sum of a tree's keys", tree->keys, keys);
    return count;
}

void tree_insert(struct part* part, struct worker* worker)
{
    struct tree* const tree = (struct tree*)part->head;
    if (tree->count >= part->parameter) {
        tree_erase(part, worker);
        return;
    }
    part_touch(part, worker);
    struct node* const node = sp_malloc(sizeof *node + random_below(3) * 40);
    if (node == NULL) {
        return;
    }
    const uint64_t key = random_below(1 << 20);
    *node = (struct node){{NULL, NULL}, key, ~key};
    struct node** link = &tree->top;
    while (*link != NULL) {
        link = &(*link)->child[key > (*link)->key];
    }
    *link = node;
    ++tree->count;
    tree->keys += key;
}

void tree_erase(struct part* part, struct worker* worker)
{
    struct tree* const tree = (struct tree*)part->head;
    part_touch(part, worker);
    struct node** link = &tree->top;
    for (uint64_t hops = random_below(6); hops > 0 && *link != NULL && (*link)->child[hops & 1] != NULL; --hops) {
        link = &(*link)->child[hops & 1];
    }
    struct node* const node = *link;
    if (node == NULL) {
        return;
    }
    tree->keys -= node->key;
    --tree->count;
    if (node->child[0] == NULL || node->child[1] == NULL) {
        *link = node->child[0] != NULL ? node->child[0] : node->child[1];
    } else {
        struct node** next = &node->child[1]; // The smallest of the right takes the place.
        while ((*next)->child[0] != NULL) {
            next = &(*next)->child[0];
        }
        struct node* const heir = *next;
        *next = heir->child[1];
        heir->child[0] = node->child[0];
        heir->child[1] = node->child[1];
        *link = heir;
    }
    sp_free(node);
}

const struct part_kind tree_kind = {tree_bytes, list_make, tree_verify, NULL};

// -- Array ------------------------------------------------------------------------------------

struct array {
    struct head head;
    uint64_t* values;
    uint64_t length;
    uint64_t mixed; // all values by exclusive or
};

static size_t array_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct array);
}

static uint64_t array_verify(const struct part* part)
{
    const struct array* const array = (const struct array*)part->head;
    uint64_t mixed = 0;
    for (uint64_t i = 0; i < array->length; ++i) {
        mixed ^= array->values[i];
    }
    expect_equal("the values of an array", array->mixed, mixed);
    return array->values != NULL ? 1 : 0;
}

static bool array_fit(struct array* array, uint64_t length)
{
    uint64_t* const values = sp_realloc(array->values, (length + 1) * 8);
    if (values != NULL) {
        array->values = values;
    }
    return values != NULL;
}

void array_append(struct part* part, struct worker* worker, unsigned count)
{
    struct array* const array = (struct array*)part->head;
    if (array->length + count > part->parameter) {
        array_shrink(part, worker, 10);
        return;
    }
    part_touch(part, worker);
    if (!array_fit(array, array->length + count)) {
        return;
    }
    for (unsigned i = 0; i < count; ++i) {
        const uint64_t value = next_random();
        array->values[array->length++] = value;
        array->mixed ^= value;
    }
}

void array_shrink(struct part* part, struct worker* worker, unsigned percent)
{
    struct array* const array = (struct array*)part->head;
    part_touch(part, worker);
    const uint64_t length = array->length * percent / 100;
    while (array->length > length) {
        array->mixed ^= array->values[--array->length];
    }
    array_fit(array, length);
}

void array_store(struct part* part, struct worker* worker)
{
    struct array* const array = (struct array*)part->head;
    part_touch(part, worker);
    for (unsigned i = 0; i < 8 && array->length > 0; ++i) {
        uint64_t* const at = &array->values[random_below(array->length)];
        const uint64_t value = next_random();
        array->mixed ^= *at ^ value;
        *at = value;
    }
}

const struct part_kind array_kind = {array_bytes, list_make, array_verify, NULL};

// -- Handles ----------------------------------------------------------------------------------

enum { handle_count = 5 };

struct handles {
    struct head head;
    struct {
        uint64_t size_bytes; // 0: there is none
        uint64_t tag;
    } entry[handle_count];
};

static size_t handles_bytes(const struct part* part)
{
    (void)part;
    return sizeof(struct handles);
}

static const char* handle_name(const struct part* part, uint64_t number, char* room)
{
    snprintf(room, 40, "handle %u of part %u", (unsigned)number, part->index);
    return room;
}

static uint64_t handles_verify(const struct part* part)
{
    const struct handles* const handles = (const struct handles*)part->head;
    uint64_t count = 0;
    for (unsigned i = 0; i < handle_count; ++i) {
        char name[40];
        size_t size_bytes = 0;
        const void* const object = sp_root_find(handle_name(part, i, name), &size_bytes);
        expect_equal("the size of a named object", handles->entry[i].size_bytes, object != NULL ? size_bytes : 0);
        if (object != NULL) {
            verify_pattern("a named object does not hold its pattern", object, handles->entry[i].tag, size_bytes, 0);
            ++count;
        }
    }
    return count;
}

static void handle_make(struct part* part, uint64_t number, size_t size_bytes)
{
    struct handles* const handles = (struct handles*)part->head;
    char name[40];
    void* const object = sp_root(handle_name(part, number, name), size_bytes);
    if (object == NULL) {
        return;
    }
    const uint64_t tag = next_random();
    fill_pattern(object, tag, size_bytes, 0);
    handles->entry[number].size_bytes = size_bytes;
    handles->entry[number].tag = tag;
}

static void handle_delete(struct part* part, uint64_t number)
{
    struct handles* const handles = (struct handles*)part->head;
    char name[40];
    must(sp_root_delete(handle_name(part, number, name)), "sp_root_delete");
    handles->entry[number].size_bytes = 0;
}

void handles_create(struct part* part, struct worker* worker, size_t size_bytes)
{
    struct handles* const handles = (struct handles*)part->head;
    part_touch(part, worker);
    const uint64_t number = random_below(handle_count);
    if (handles->entry[number].size_bytes == 0) {
        handle_make(part, number, 1 + random_below(size_bytes));
    }
}

void handles_delete(struct part* part, struct worker* worker)
{
    struct handles* const handles = (struct handles*)part->head;
    part_touch(part, worker);
    const uint64_t number = random_below(handle_count);
    if (handles->entry[number].size_bytes != 0) {
        handle_delete(part, number);
    }
}

void handles_resize(struct part* part, struct worker* worker, size_t size_bytes)
{
    struct handles* const handles = (struct handles*)part->head;
    part_touch(part, worker);
    const uint64_t number = random_below(handle_count);
    if (handles->entry[number].size_bytes != 0) {
        handle_delete(part, number);
        handle_make(part, number, 1 + random_below(size_bytes));
    }
}

const struct part_kind handles_kind = {handles_bytes, list_make, handles_verify, NULL};
