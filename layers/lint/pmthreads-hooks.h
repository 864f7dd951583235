#ifndef LINT_PMTHREADS_HOOKS_H
#define LINT_PMTHREADS_HOOKS_H
/* A program written for the layer pmthreads is linted as it is. */
#include "lint-hooks.h"
#endif
