#pragma once
/* Shared with a source that is compiled for CPUs with AVX. */

#ifdef __cplusplus
extern "C" {
#endif

typedef double wide_vector __attribute__((vector_size(32)));
typedef struct wide_vectors {
    wide_vector one, two;
} wide_vectors;

/* In one transaction: adds 1 to 4 to the first, and makes the second twice that. */
void wide_add(wide_vectors* vectors);

#ifdef __cplusplus
}
#endif
