"""Stillpoint as a part of another project, by add_subdirectory and by FetchContent: it brings its library, its command and its compiler,
neither tests nor bench, and needs no GoogleTest. The project is configured, and what the build would do is read; one part is built."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from install_test import BUILD, CMAKE, PROGRAM, output_of

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
{how}
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE stillpoint::stillpoint)
add_executable(consumer-cxx consumer.cpp)
target_link_libraries(consumer-cxx PRIVATE stillpoint::cxx)
add_custom_target(unit_tests)  # A name that Stillpoint's own build uses.
"""
FETCH = """
include(FetchContent)
FetchContent_Declare(stillpoint SOURCE_DIR "{root}")
FetchContent_MakeAvailable(stillpoint)
"""
CXX_PROGRAM = "#include <stillpoint/pronto.hpp>\n#include <stillpoint/respct.hpp>\nint main() { return sp_version() == nullptr; }\n"


class Subproject(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=BUILD)
        self.addCleanup(folder.cleanup)
        self.source, self.build = Path(folder.name) / "source", Path(folder.name) / "build"
        self.source.mkdir()
        (self.source / "consumer.c").write_text(PROGRAM)
        (self.source / "consumer.cpp").write_text(CXX_PROGRAM)

    def configure(self, how, *options):
        (self.source / "CMakeLists.txt").write_text(PROJECT.format(how=how.format(root=ROOT)))
        words = [CMAKE, "-G", "Ninja", "-S", str(self.source), "-B", str(self.build), "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON",
                 f"-DCMAKE_C_COMPILER={os.environ.get('CC', 'cc')}", f"-DCMAKE_CXX_COMPILER={os.environ.get('CXX', 'c++')}"]
        return subprocess.run([*words, *options], capture_output=True, text=True, check=False, timeout=600)

    def check(self, how):
        done = self.configure(how)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        targets = output_of("ninja", "-C", str(self.build), "-t", "targets", "all")
        for wanted in ("consumer:", "lib/libstillpoint.so", "bin/stillpoint:"):
            self.assertIn(wanted, targets)
        for unwanted in ("core_test", "bench_worker", "word-index", "undo_crash_test", "cli_counter"):
            self.assertNotIn(unwanted, targets)
        commands = output_of("ninja", "-C", str(self.build), "-t", "commands", "consumer", "consumer-cxx")
        self.assertIn(f"-I{ROOT}/include", commands.replace("-isystem ", "-I"))
        self.assertIn("-std=gnu++20", next(line for line in commands.splitlines() if "consumer.cpp" in line))
        self.assertNotIn("-Werror", commands)

    def test_add_subdirectory(self):
        self.check('add_subdirectory("{root}" stillpoint)')
        output_of("ninja", "-C", str(self.build), "stillpoint-heap")
        self.assertTrue((self.build / "stillpoint/lib/libstillpoint-heap.so.1").exists())

    @unittest.skipUnless(shutil.which("ninja"), "ninja is not installed")
    def test_fetch_content(self):
        self.check(FETCH)

    def test_tests_are_refused_there(self):
        done = self.configure('add_subdirectory("{root}" stillpoint)', "-DSTILLPOINT_BUILD_TESTS=ON")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("run in its own build only", " ".join(done.stderr.split()))

    def test_stillpoint_alone_without_tests_needs_no_googletest(self):
        words = [CMAKE, "-G", "Ninja", "-S", str(ROOT), "-B", str(self.build), "-DSTILLPOINT_BUILD_TESTS=OFF",
                 "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"]
        output_of(*words)
        targets = output_of("ninja", "-C", str(self.build), "-t", "targets", "all")
        self.assertIn("bin/bank", targets)
        self.assertNotIn("bench_worker", targets)


if __name__ == "__main__":
    unittest.main()
