#pragma once
// Durable objects beside the sections of generated programs, with the engine pronto: one for each worker, of which no
// operation that has returned may be missing.

#include <cstdint>

extern "C" {
/// Makes or finds the worker's object. Call objects_verify() before anything else.
void objects_begin(unsigned worker_count);
/// An operation; returns how many the worker's object has had. One thread at a time for each worker.
std::uint64_t objects_add(unsigned worker);
/// How many operations the worker's object has; UINT64_MAX if it does not hold what they would have made.
std::uint64_t objects_verify(unsigned worker);
}
