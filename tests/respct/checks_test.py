"""The checked form of respct.hpp ends the program at each misuse, with a message that names the line, and what is allowed passes; and what
cannot be logged at all does not compile, with a message that says why.

misuse.cpp says on each wrong line which of its arguments must lead there: those and no others.
"""

import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from command_line import BUILD, ROOT, SMALL, TOOL, CommandLineTest

SOURCE = Path(__file__).parent / "misuse.cpp"
PROGRAM = BUILD / "bin/respct_misuse"
WRONG_LINES = {name: number for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
               for name in re.findall(r"// wrong: (\w+)", line)}
REASONS = {  # what the message must say beside the line
    "outside_the_pool": "lies outside the pool.*respct::make",
    "global_variable": "lies outside the pool.*respct::make",
    "modified_outside": "add_modified.*outside the pool",
    "modified_over_the_end": "add_modified.*outside the pool",
    "untyped_memory": "recovery does not look.*respct::make",
    "beside_its_place": r"byte 48 of the block.*recovery does not look",
    "of_another_size": "recovery does not look for one of its size",
    "second_init": r"initialised a second time.*misuse\.cpp:{before}\b.*later, update it",
    "no_lock": r"without a lock.*misuse\.cpp:{before}\b.*Take the same lock",
    "different_locks": r"without a lock.*misuse\.cpp:{line}\b.*Take the same lock",
    "lock_left_out_later": r"without a lock.*misuse\.cpp:\d+\b.*Take the same lock",
    "at_a_restart_point": "between checkpoint_allow and checkpoint_prevent.*after checkpoint_prevent",
    "modified_at_a_restart_point": "between checkpoint_allow and checkpoint_prevent.*blocking_call",
    "wait_after_a_write": r"wait for a condition after a durable write.*misuse\.cpp:{before}\b.*critical_section",
    "restart_point_under_a_lock": "lock",
}


HAS_ENGINE = "respct" in subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, check=False).stdout


@unittest.skipUnless(HAS_ENGINE, "the engine respct is not there")
class Checks(CommandLineTest):
    def misuse(self, name):
        return self.stillpoint("run", "--quiet", "--engine=respct", "--pool", self.pool, *SMALL, "--", PROGRAM, name)

    def test_each_misuse_is_told_with_its_line(self):
        self.assertEqual(sorted(WRONG_LINES), sorted(REASONS))
        for name, line in WRONG_LINES.items():
            with self.subTest(name):
                self.pool.unlink(missing_ok=True)
                done = self.misuse(name)
                self.assertIn(done.returncode, (-signal.SIGABRT, 128 + signal.SIGABRT), done.stderr)
                messages = [text for text in done.stderr.splitlines() if text.startswith("stillpoint: error: ")]
                self.assertEqual(len(messages), 1, done.stderr)
                self.assertRegex(messages[0], rf"misuse\.cpp:{line}: ")
                self.assertRegex(messages[0], REASONS[name].format(line=line, before=line - 1))

    def test_two_threads_with_one_frame_are_told(self):
        done = self.misuse("frame_of_another_thread")
        self.assertIn(done.returncode, (-signal.SIGABRT, 128 + signal.SIGABRT), done.stderr)
        self.assertRegex(done.stderr, "another thread has this frame.*a name of its own")

    def test_what_is_allowed_is_silent(self):
        done = self.misuse("right")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_without_a_pool_nothing_is_checked(self):
        for name in ("right", "global_variable", "no_lock", "second_init"):
            done = self.stillpoint(name, tool=PROGRAM)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)


class Refused(unittest.TestCase):
    """Code that must not compile."""

    def assert_refused(self, declaration, *reasons):
        compilers = [compiler for compiler in ("g++", "clang++-19") if shutil.which(compiler)]
        self.assertTrue(compilers, "no compiler is installed")
        for compiler in compilers:
            for checked in (0,) if reasons else (0, 1):
                words = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}",
                         f"-DSTILLPOINT_RESPCT_CHECKED={checked}", "-x", "c++", "-"]
                text = f'#include <string>\n#include "stillpoint/respct.hpp"\n{declaration}\n'
                done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=60)
                if not reasons:
                    self.assertEqual((done.returncode, done.stderr), (0, ""), compiler)
                    continue
                self.assertNotEqual(done.returncode, 0, f"{compiler} accepted: {declaration}")
                for reason in reasons:
                    self.assertRegex(done.stderr, reason, compiler)

    def test_atomics(self):
        self.assert_refused("stillpoint::respct::logged<std::atomic<int>> variable;", "ResPCT cannot log atomic read-modify-writes",
                            "guard a logged<T> by a mutex")

    def test_too_large(self):
        self.assert_refused("struct Large { char bytes[17]; }; stillpoint::respct::logged<Large> variable;",
                            "fit into one cache line", "16 bytes", "log its members one by one")

    def test_not_trivially_copyable(self):
        self.assert_refused("struct Owner { ~Owner(); int value; }; stillpoint::respct::logged<Owner> variable;", "must be trivially copyable")

    def test_without_a_default_constructor(self):
        self.assert_refused("struct Bare { explicit Bare(int); }; auto* made = stillpoint::respct::make<Bare>(1);",
                            "give it a default constructor, or specialise")

    def test_steps_of_what_is_no_number(self):
        self.assert_refused("void step(stillpoint::respct::logged<int*>& pointer) { ++pointer; }", r"operator\+\+|cannot increment")

    def test_what_can_be_logged(self):
        self.assert_refused("struct Two { long a, b; }; struct All { stillpoint::respct::logged<Two> two; stillpoint::respct::logged<char> letter;\n"
                            "stillpoint::respct::logged<int> numbers[4]; };\n"
                            "void use(All& all) { ++all.numbers[1]; all.numbers[2]--; all.letter = 'x'; all.two = Two{1, 2}; all.numbers[0] += 3; }")


if __name__ == "__main__":
    unittest.main()
