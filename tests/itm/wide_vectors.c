/* Vectors of 256 bits. Compiled for CPUs with AVX: only they have registers for such values. */

#include "wide_vectors.h"

void wide_add(wide_vectors* vectors)
{
    __transaction_atomic
    {
        vectors->one += (wide_vector){1, 2, 3, 4};
        vectors->two = vectors->one + vectors->one;
    }
}
