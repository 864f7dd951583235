#include "cells.h"
#include "stillpoint/stillpoint.h"

int sppy_sequence_get(sppy_sequence* sequence, uint64_t index, sppy_value* value)
{
    return index >= sequence->count ? SPPY_MISSING : sppy_read_cell(sppy_cell_at(sequence, index), value);
}

int sppy_sequence_set(sppy_sequence* sequence, uint64_t index, const sppy_value* value, uint64_t* left_over)
{
    sppy_cell made;
    if (index >= sequence->count) {
        return SPPY_MISSING;
    }
    const int code = sppy_fill_cell(&made, value);
    if (code == SP_OK) {
        sppy_empty_cell(sppy_cell_at(sequence, index), left_over);
        *sppy_cell_at(sequence, index) = made;
    }
    return code;
}

static int grow(sppy_sequence* sequence)
{
    const uint64_t capacity = sequence->capacity == 0 ? SPPY_FIRST_CAPACITY : sequence->capacity * 2;
    sppy_cell* const cells = capacity > SPPY_COUNT_MAX ? NULL : sp_malloc(capacity * sizeof(sppy_cell));
    if (cells == NULL) {
        return SPPY_NO_MEMORY;
    }
    for (uint64_t i = 0; i < sequence->count; ++i) {
        cells[i] = *sppy_cell_at(sequence, i);
    }
    sp_free(sequence->cells);
    sequence->cells = cells;
    sequence->capacity = capacity;
    sequence->first = 0;
    return SP_OK;
}

int sppy_sequence_insert(sppy_sequence* sequence, uint64_t index, const sppy_value* value)
{
    sppy_cell made;
    int code = index > sequence->count ? SPPY_MISSING : SP_OK;
    if (code == SP_OK && sequence->count == sequence->capacity) {
        code = grow(sequence);
    }
    if (code != SP_OK || (code = sppy_fill_cell(&made, value)) != SP_OK) {
        return code;
    }
    if (index < sequence->count / 2) { /* the cells before it move */
        sequence->first = (sequence->first - 1) & (sequence->capacity - 1);
        for (uint64_t i = 0; i < index; ++i) {
            *sppy_cell_at(sequence, i) = *sppy_cell_at(sequence, i + 1);
        }
    } else {
        for (uint64_t i = sequence->count; i > index; --i) {
            *sppy_cell_at(sequence, i) = *sppy_cell_at(sequence, i - 1);
        }
    }
    *sppy_cell_at(sequence, index) = made;
    sequence->count++;
    return SP_OK;
}

int sppy_sequence_delete(sppy_sequence* sequence, uint64_t index, uint64_t* left_over)
{
    if (index >= sequence->count) {
        return SPPY_MISSING;
    }
    sppy_empty_cell(sppy_cell_at(sequence, index), left_over);
    if (index < sequence->count / 2) {
        for (uint64_t i = index; i > 0; --i) {
            *sppy_cell_at(sequence, i) = *sppy_cell_at(sequence, i - 1);
        }
        sequence->first = (sequence->first + 1) & (sequence->capacity - 1);
    } else {
        for (uint64_t i = index; i + 1 < sequence->count; ++i) {
            *sppy_cell_at(sequence, i) = *sppy_cell_at(sequence, i + 1);
        }
    }
    sequence->count--;
    return SP_OK;
}
