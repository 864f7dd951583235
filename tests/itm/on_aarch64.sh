#!/bin/sh
# Builds libstillpoint-itm and its tests for AArch64 and runs those in ordinary memory under an emulator: what is kept when a transaction
# begins is different on each CPU.
# Usage: on_aarch64.sh SOURCE_DIR BUILD_DIR. Exit code 77: skipped, with the reason.
set -eu
source_dir=$1
build_dir=$2/itm-aarch64
compiler=aarch64-linux-gnu-g++
googletest=/usr/src/googletest/googletest

skip() {
    echo "skipped: $1"
    exit 77
}
command -v $compiler >/dev/null || skip "no $compiler (Debian: g++-aarch64-linux-gnu)"
[ -f $googletest/src/gtest-all.cc ] || skip "no GoogleTest sources (Debian: googletest)"
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || skip "no qemu-aarch64 (Debian: qemu-user-static)"

mkdir -p "$build_dir"
cd "$build_dir"
compile() {
    object=$1
    shift
    $compiler -std=c++20 -O1 -I"$source_dir/src" -I"$source_dir/include" -I"$source_dir/tests" -I$googletest -I$googletest/include \
        "$@" -o "$object"
}
gtest=$(sh "$source_dir/tests/arch_on_aarch64/googletest.sh" $compiler $googletest "$2")
for source in "$source_dir"/src/itm/*.cpp; do
    compile "library-$(basename "$source").o" -fno-omit-frame-pointer -DSTILLPOINT_VERSION='"aarch64"' -c "$source"
done
for name in accesses rollback irrevocable exceptions threads; do
    compile "test-$name.o" -fgnu-tm -c "$source_dir/tests/itm/${name}_test.cpp"
done
compile itm_test -static -Wl,--wrap=__cxa_begin_catch -Wl,--wrap=__cxa_end_catch "$source_dir/tests/itm/without_pool.cpp" \
    $googletest/src/gtest_main.cc "$gtest" test-*.o library-*.o -pthread 2>messages || { cat messages; exit 1; }
# In a static program the library's own handlers are the test's as well.
"$emulator" ./itm_test --gtest_brief=1 --gtest_filter='*/ordinary:-*Handlers*'
