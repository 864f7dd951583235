#pragma once
// Marks a definition as part of the library's C interface: everything else is hidden.

#define STILLPOINT_API extern "C" __attribute__((visibility("default")))
