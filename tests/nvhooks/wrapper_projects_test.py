"""Build systems take `stillpoint cc` for the compiler that it is: configure's checks, make, and CMake."""

import os
import unittest

from compiler_case import CC, CXX, TOOL, CompilerCase, needs_clang, needs_plugin, needs_program

CONFIGURE = r"""#!/bin/sh
# The checks that every configure script begins with, in its way.
set -e
say() { echo "configure: $*"; }
try() { # try NAME COMMAND...: the exit code decides
    name=$1; shift
    if "$@" >>config.log 2>&1; then say "$name: yes"; else say "$name: no"; fi
}
: ${CC=cc} ${CXX=c++}
echo 'int main(void) { return 0; }' >conftest.c
rm -f a.out; $CC $CFLAGS conftest.c >>config.log 2>&1; test -f a.out && say "default output: a.out"
./a.out && say "runs: yes"
$CC -c $CFLAGS conftest.c && test -f conftest.o && say "object suffix: o"
echo 'int main(void) { choke me; }' >conftest.c
try "accepts nonsense" $CC -c conftest.c
printf '#ifndef __clang__\nchoke me\n#endif\nint main(void) { return 0; }\n' >conftest.c
try "is Clang" $CC -c conftest.c
try "accepts -g" $CC -g -c conftest.c
try "understands -c and -o together" $CC -c conftest.c -o conftest2.o
try "-Werror and an unknown flag" $CC -Werror -funknown-flag -c conftest.c
printf '#include <stdio.h>\n' >conftest.c
try "has stdio.h" $CC -E conftest.c
printf '#include <no-such-header.h>\n' >conftest.c
try "has no-such-header.h" $CC -E conftest.c
printf 'char cos(); int main(void) { return cos(); }\n' >conftest.c
try "cos in -lm" $CC conftest.c -o conftest -lm
printf 'char no_such(); int main(void) { return no_such(); }\n' >conftest.c
try "no_such in libc" $CC conftest.c -o conftest
printf 'int f(void) { return 1; }\n' >conftest.c
try "-fPIC -shared" $CC -fPIC -shared conftest.c -o conftest.so
printf '#include <vector>\nint main() { return std::vector<int>(0).size(); }\n' >conftest.cpp
try "C++20" $CXX -std=c++20 conftest.cpp -o conftest
for version in --version -v -dumpmachine; do try "$version" $CC $version; done
printf 'CC = %s\nCXX = %s\n' "$CC" "$CXX" | cat - Makefile.in >Makefile
"""
ANSWERS = ["default output: a.out", "runs: yes", "object suffix: o", "accepts nonsense: no", "is Clang: yes",
           "accepts -g: yes", "understands -c and -o together: yes", "-Werror and an unknown flag: no", "has stdio.h: yes",
           "has no-such-header.h: no", "cos in -lm: yes", "no_such in libc: no", "-fPIC -shared: yes", "C++20: yes",
           "--version: yes", "-v: yes", "-dumpmachine: yes"]

MAKEFILE = """
CFLAGS = -O2 -g -Wall -Werror
program: main.o part.o ; $(CXX) $(CFLAGS) -o $@ $^
%.o: %.c ; $(CC) $(CFLAGS) -MMD -MP -c $< -o $@
%.o: %.cpp ; $(CXX) $(CFLAGS) -std=c++20 -MMD -MP -c $< -o $@
-include main.d part.d
"""

CMAKELISTS = """
cmake_minimum_required(VERSION 3.25)
project(mixed LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Threads REQUIRED)
message(STATUS "compiler ${CMAKE_C_COMPILER_ID} ${CMAKE_CXX_COMPILER_ID}")
add_library(part SHARED part.c)
add_executable(program main.cpp)
target_link_libraries(program PRIVATE part Threads::Threads)
"""

MAIN = """
#include <atomic>
#include <iostream>
#include <thread>
extern "C" int part(int value);
int main()
{
    std::atomic<int> sum{0};
    std::jthread([&] { sum += part(20); }).join();
    std::cout << sum << '\\n';
}
"""


@needs_plugin
@needs_clang
@needs_program("make")
class Projects(CompilerCase):
    def setUp(self):
        super().setUp()
        self.write("part.h", "int part(int value);\n#define OFFSET 22\n")
        self.write("part.c", '#include "part.h"\nint part(int value) { return value + OFFSET; }\n')
        self.write("main.cpp", MAIN)

    def test_a_project_with_configure_and_make(self):
        self.write("configure", CONFIGURE).chmod(0o755)
        self.write("Makefile.in", MAKEFILE)
        for cc, cxx in ((CC, CXX), (f"{TOOL} cc", f"{TOOL} c++")):
            said = self.output_of("./configure", CC=str(cc), CXX=str(cxx))
            self.assertEqual(said.splitlines(), [f"configure: {answer}" for answer in ANSWERS],
                             (self.folder / "config.log").read_text())
            self.output_of("make", "-B")
            self.assertEqual(self.output_of("./program"), "42\n")
        self.assertIn("part.h", (self.folder / "part.d").read_text())
        self.assertIn("up to date", self.output_of("make"))
        self.write("part.h", "int part(int value);\n#define OFFSET 23\n")
        os.utime(self.folder / "part.h", (2**31, 2**31))
        self.output_of("make")
        self.assertEqual(self.output_of("./program"), "43\n")

    @needs_program("ninja")
    def test_a_project_with_cmake(self):
        self.write("CMakeLists.txt", CMAKELISTS)
        cmake = os.environ.get("CMAKE", "cmake")
        said = self.output_of(cmake, "-G", "Ninja", "-S", ".", "-B", "build", f"-DCMAKE_C_COMPILER={CC}",
                              f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=Release")
        self.assertIn("compiler Clang Clang", said)
        self.output_of(cmake, "--build", "build", "-j", "1")
        self.assertEqual(self.output_of("build/program"), "42\n")
        self.assertIn("no work to do", self.output_of(cmake, "--build", "build"))


if __name__ == "__main__":
    unittest.main()
