#ifndef LINT_HOOKS_H
#define LINT_HOOKS_H
/* The wrapper header of the layer lint: its runtime is the layer pmthreads' own, watched. */
#include "../pmthreads/pmthreads-hooks.h"
#endif
