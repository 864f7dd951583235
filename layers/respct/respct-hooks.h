#ifndef RESPCT_HOOKS_H
#define RESPCT_HOOKS_H
/* The wrapper header of the layer respct: its runtime is the layer pmthreads' own, with another engine. */
#include "../pmthreads/pmthreads-hooks.h"
#endif
