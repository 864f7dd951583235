#include <string.h>

#include "cells.h"
#include "stillpoint/stillpoint.h"

/* FNV-1a: equal in each process. */
static uint64_t hash_of(const sppy_value* key)
{
    uint64_t hash = 0xcbf29ce484222325 ^ key->tag;
    for (uint32_t i = 0; i < key->size_bytes; ++i) {
        hash = (hash ^ ((const unsigned char*)key->bytes)[i]) * 0x100000001b3;
    }
    return hash ^ hash >> 32;
}

/* The slot of the key, or the free one in which it would be; *entry: the key's, or NULL. */
static int find_slot(sppy_dict* dict, const sppy_value* key, uint64_t hash, uint64_t* slot, sppy_entry** entry)
{
    const uint64_t mask = dict->capacity * 2 - 1;
    *entry = NULL;
    for (uint64_t i = 0; i <= mask; ++i) {
        *slot = (hash + i) & mask;
        const uint32_t number = dict->slots[*slot];
        if (number == 0) {
            return SP_OK;
        }
        if (number > dict->used) {
            return SPPY_DAMAGED;
        }
        sppy_entry* const found = &dict->entries[number - 1];
        sppy_value there;
        if (found->hash != hash || found->key.tag != key->tag || found->key.size_bytes != key->size_bytes) {
            continue;
        }
        if (sppy_read_cell(&found->key, &there) != SP_OK) {
            return SPPY_DAMAGED;
        }
        if (memcmp(there.bytes, key->bytes, key->size_bytes) == 0) {
            *entry = found;
            return SP_OK;
        }
    }
    return SPPY_DAMAGED;
}

/* The entry of the key. */
static int find_entry(sppy_dict* dict, const sppy_value* key, sppy_entry** entry)
{
    uint64_t slot = 0;
    if (dict->count == 0) {
        return SPPY_MISSING;
    }
    const int code = find_slot(dict, key, hash_of(key), &slot, entry);
    return code == SP_OK && *entry == NULL ? SPPY_MISSING : code;
}

int sppy_dict_get(sppy_dict* dict, const sppy_value* key, sppy_value* value)
{
    sppy_entry* entry = NULL;
    const int code = find_entry(dict, key, &entry);
    return code != SP_OK ? code : sppy_read_cell(&entry->value, value);
}

/* The entries in other tables of `capacity`, without those that were deleted. */
static int move_entries(sppy_dict* dict, uint64_t capacity)
{
    if (capacity > SPPY_COUNT_MAX) {
        return SPPY_NO_MEMORY;
    }
    sppy_entry* const entries = sp_malloc(capacity * sizeof(sppy_entry));
    uint32_t* const slots = sp_calloc(capacity * 2, sizeof(uint32_t));
    if (entries == NULL || slots == NULL) {
        sp_free(entries);
        sp_free(slots);
        return SPPY_NO_MEMORY;
    }
    uint64_t used = 0;
    for (uint64_t i = 0; i < dict->used; ++i) {
        if (dict->entries[i].key.tag != 0) {
            uint64_t slot = dict->entries[i].hash & (capacity * 2 - 1);
            while (slots[slot] != 0) {
                slot = (slot + 1) & (capacity * 2 - 1);
            }
            entries[used++] = dict->entries[i];
            slots[slot] = (uint32_t)used;
        }
    }
    sp_free(dict->entries);
    sp_free(dict->slots);
    dict->entries = entries;
    dict->slots = slots;
    dict->used = dict->count = used;
    dict->capacity = capacity;
    return SP_OK;
}

int sppy_dict_set(sppy_dict* dict, const sppy_value* key, const sppy_value* value, uint64_t* left_over)
{
    const uint64_t hash = hash_of(key);
    uint64_t slot = 0;
    sppy_entry* entry = NULL;
    sppy_cell made, kept;
    int code = dict->capacity == 0 ? SP_OK : find_slot(dict, key, hash, &slot, &entry);
    if (code != SP_OK || (code = sppy_fill_cell(&made, value)) != SP_OK) {
        return code;
    }
    if (entry != NULL) {
        sppy_empty_cell(&entry->value, left_over);
        entry->value = made;
        return SP_OK;
    }
    if ((code = sppy_fill_cell(&kept, key)) == SP_OK && dict->used == dict->capacity) {
        const uint64_t wanted = dict->count * 4 >= dict->capacity * 3 ? dict->capacity * 2 : dict->capacity;
        code = move_entries(dict, wanted == 0 ? SPPY_FIRST_CAPACITY : wanted);
        if (code != SP_OK) {
            sppy_empty_cell(&kept, left_over);
        } else {
            code = find_slot(dict, key, hash, &slot, &entry);
        }
    }
    if (code != SP_OK) {
        sppy_empty_cell(&made, left_over);
        return code;
    }
    dict->entries[dict->used++] = (sppy_entry){hash, kept, made};
    dict->slots[slot] = (uint32_t)dict->used;
    dict->count++;
    return SP_OK;
}

int sppy_dict_delete(sppy_dict* dict, const sppy_value* key, uint64_t* left_over)
{
    sppy_entry* entry = NULL;
    const int code = find_entry(dict, key, &entry);
    if (code != SP_OK) {
        return code;
    }
    sppy_empty_cell(&entry->value, left_over);
    sppy_empty_cell(&entry->key, left_over);
    if (--dict->count == 0) {
        dict->used = 0;
        memset(dict->slots, 0, dict->capacity * 2 * sizeof(uint32_t));
    }
    return SP_OK;
}

int sppy_dict_next(sppy_dict* dict, uint64_t* position, sppy_value* key, sppy_value* value)
{
    while (*position < dict->used) {
        const sppy_entry* const entry = &dict->entries[(*position)++];
        if (entry->key.tag != 0) {
            const int code = sppy_read_cell(&entry->key, key);
            return code != SP_OK ? code : sppy_read_cell(&entry->value, value);
        }
    }
    return SPPY_MISSING;
}
