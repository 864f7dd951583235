#!/bin/sh
# Builds the arch layer and its tests for AArch64 and runs them under an emulator.
# Usage: run.sh SOURCE_DIR BUILD_DIR. Exit code 77: skipped, with the reason.
set -eu
source_dir=$1
build_dir=$2/aarch64
compiler=aarch64-linux-gnu-g++
googletest=/usr/src/googletest/googletest

skip() {
    echo "skipped: $1"
    exit 77
}
command -v $compiler >/dev/null || skip "no $compiler (Debian: g++-aarch64-linux-gnu)"
[ -f $googletest/src/gtest-all.cc ] || skip "no GoogleTest sources (Debian: googletest)"
[ -f /usr/include/xxhash.h ] || skip "no xxhash.h (Debian: libxxhash-dev)"
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || emulator=
if [ "$(uname -m)" = aarch64 ]; then
    emulator=env
fi

mkdir -p "$build_dir"
gtest=$(sh "$source_dir/tests/arch_on_aarch64/googletest.sh" $compiler $googletest "$2")
# Out of /usr/include, whose other headers are this machine's.
mkdir -p "$build_dir/xxhash"
cp /usr/include/xxhash.h /usr/include/xxh3.h "$build_dir/xxhash"
$compiler -std=c++20 -O2 -static -Wall -Wextra -Wpedantic -Wconversion -Werror -D_GNU_SOURCE \
    -I"$source_dir/src" -I"$source_dir/tests" -isystem $googletest/include -isystem "$build_dir/xxhash" \
    "$source_dir"/src/arch/*.cpp $googletest/src/gtest_main.cc "$gtest" \
    -o "$build_dir/arch_test" 2>"$build_dir/messages" || { cat "$build_dir/messages"; exit 1; }
# The encoding that is spelt out by hand, read back by another program.
aarch64-linux-gnu-objdump -d "$build_dir/arch_test" | grep -q 'dc.*cvap' || {
    echo "no dc cvap in the binary: its encoding in src/arch/aarch64.hpp is wrong"
    exit 1
}
[ -n "$emulator" ] || skip "built for AArch64, but there is no qemu-aarch64 to run it (Debian: qemu-user-static)"
if [ "$emulator" = env ]; then
    exec "$build_dir/arch_test"
fi
# A CPU without dc cvap must fall back to dc cvac.
$emulator -cpu cortex-a53 "$build_dir/arch_test"
# QEMU before 8.1 announces dc cvap to programs and then does not know it.
version=$($emulator --version | sed -n 's/.*version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
major=${version% *}
minor=${version#* }
if [ "$major" -gt 8 ] || { [ "$major" -eq 8 ] && [ "$minor" -ge 1 ]; }; then
    $emulator -cpu max "$build_dir/arch_test"
else
    echo "dc cvap was built and disassembled, but not run: QEMU $major.$minor cannot emulate it"
fi
