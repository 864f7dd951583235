#!/bin/sh
# Prints the path of GoogleTest as an object for AArch64, which the programs of several tests are linked with; the first compiles it.
# Usage: googletest.sh COMPILER GOOGLETEST_SOURCES BUILD_DIR.
set -eu
object=$3/googletest-aarch64.o
(
    flock 9
    if [ ! -f "$object" ]; then
        # Not optimised: it takes longer to compile than to run.
        "$1" -std=c++20 -O0 -I"$2" -I"$2/include" -c "$2/src/gtest-all.cc" -o "$object.part"
        mv "$object.part" "$object"
    fi
) 9>"$object.lock"
echo "$object"
