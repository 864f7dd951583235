/* Cells and checks: the part of the store that its files share. */
#ifndef STILLPOINT_PYTHON_CELLS_H
#define STILLPOINT_PYTHON_CELLS_H

#include "store.h"

enum { SPPY_FIRST_CAPACITY = 8 };
#define SPPY_COUNT_MAX ((uint64_t)UINT32_MAX / 4)

int sppy_read_cell(const sppy_cell* cell, sppy_value* value);
int sppy_fill_cell(sppy_cell* cell, const sppy_value* value);
/* *left_over: a container to which the cell alone referred; else as it was. */
void sppy_empty_cell(sppy_cell* cell, uint64_t* left_over);

static inline sppy_cell* sppy_cell_at(const sppy_sequence* sequence, uint64_t index)
{
    return &sequence->cells[(sequence->first + index) & (sequence->capacity - 1)];
}

#endif
