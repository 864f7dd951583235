#ifndef STILLPOINT_VERSION_H
#define STILLPOINT_VERSION_H
/* The version of these headers; sp_version() is that of the library that the program runs with. The library of a later minor version
 * runs programs of an earlier one; a new major version does not, and has another file name (libstillpoint.so.MAJOR). CMake reads this
 * file. */

#define STILLPOINT_VERSION_MAJOR 1
#define STILLPOINT_VERSION_MINOR 0
#define STILLPOINT_VERSION_PATCH 0
#define STILLPOINT_VERSION_STRING "1.0.0"

/* One number that grows with each version: 10203 for 1.2.3. */
#define STILLPOINT_VERSION_NUMBER (STILLPOINT_VERSION_MAJOR * 10000 + STILLPOINT_VERSION_MINOR * 100 + STILLPOINT_VERSION_PATCH)

/* For #if: whether these headers are of this version or a later one. */
#define STILLPOINT_VERSION_AT_LEAST(major, minor, patch) (STILLPOINT_VERSION_NUMBER >= (major) * 10000 + (minor) * 100 + (patch))

#endif
