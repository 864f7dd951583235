#!/usr/bin/env python3
"""Programs of stillpoint cc --runtime=nvthreads that are killed: what their sections had done is there, and no more (program.c)."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/nvhooks"))
from compiler_case import CC, TOOL, needs_clang, needs_plugin  # noqa: E402  (the path must be set first)

PROGRAM = Path(__file__).resolve().parent / "program.c"
WHOLE = "7 1 1\n"


@needs_clang
@needs_plugin
class Restart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)
        cls.program = Path(cls.shared.name) / "program"
        done = subprocess.run([TOOL, "cc", "--runtime=nvthreads", "-O2", "-Wall", "-pthread", PROGRAM, "-o", cls.program],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pool = Path(folder.name) / "a.pool"

    def run_program(self, how, acknowledge, medium="file", program=None):
        return subprocess.run([TOOL, "run", "--quiet", "--engine=nvthreads", "--durability=process", f"--acknowledge={acknowledge}",
                               f"--medium={medium}", f"--pool={self.pool}", "--pool-size=4M", "--pool-max=8M", "--",
                               program or self.program, how], capture_output=True, text=True, check=False, timeout=120)

    def assert_leaves(self, how, expected, acknowledge="unlock"):
        for medium in ("file", "memory"):
            self.pool.unlink(missing_ok=True)
            died = self.run_program(how, acknowledge, medium)
            self.assertEqual(died.returncode, -9, died.stderr)
            found = self.run_program("look", acknowledge, medium)
            self.assertEqual((found.returncode, found.stdout), (0, expected), f"{how} {medium} {found.stderr}")
            check = subprocess.run([TOOL, "check", self.pool], capture_output=True, text=True, check=False)
            self.assertEqual(check.returncode, 0, check.stderr)

    def test_a_section_is_durable_when_its_unlock_has_returned(self):
        self.assert_leaves("section", WHOLE)

    def test_an_unfinished_section_leaves_nothing(self):
        self.assert_leaves("unfinished", WHOLE)

    def test_what_builds_on_an_open_section_does_not_survive_without_it(self):
        self.assert_leaves("open", WHOLE)

    def test_a_wait_is_for_every_section_before(self):
        self.assert_leaves("waited", WHOLE, acknowledge="order")

    def test_stores_outside_of_sections_are_durable_after_a_wait(self):
        self.assert_leaves("plain-waited", WHOLE, acknowledge="order")

    def test_stores_outside_of_sections_are_there_before_what_has_seen_them(self):
        self.assert_leaves("plain-joined", WHOLE)
        self.assert_leaves("plain-then-thread", WHOLE)

    def test_a_wait_inside_a_section_is_refused(self):
        died = self.run_program("wait-inside", "unlock")
        self.assertEqual((died.returncode, died.stdout.splitlines()[1:]), (-9, ["1"]), died.stderr)

    def test_a_program_without_hooks_is_refused(self):
        plain = Path(self.shared.name) / "plain"
        build = subprocess.run([CC, "-O2", "-pthread", f"-I{ROOT}/include", f"-I{ROOT}/layers/nvthreads", PROGRAM, "-o", plain,
                                f"-L{Path(TOOL).parents[1]}/lib", "-lstillpoint", f"-Wl,-rpath,{Path(TOOL).parents[1]}/lib"],
                               capture_output=True, text=True, check=False)
        self.assertEqual(build.returncode, 0, build.stderr)
        done = self.run_program("look", "unlock", program=plain)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nothing in this program marks", done.stderr)


if __name__ == "__main__":
    unittest.main()
