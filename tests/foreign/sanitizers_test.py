"""Programs that GCC or Clang compiled with a sanitizer, linked with the library: they run, under `stillpoint run` and by sp_open,
or are refused with what to do."""

import shutil
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from command_line import BUILD, ROOT, SMALL, CommandLineTest  # noqa: E402  (the path comes first)

COMPILERS = [name for name in ("gcc", "clang-19") if shutil.which(name)]
WORKING = (("-fsanitize=address",), ("-fsanitize=undefined",), ("-fsanitize=leak",), ("-fsanitize=address", "-static-libasan"))
# Whichever way they are found, the trackers and the one engine that take faults stand in front of the sanitizer's handlers.
TRACKERS = ("auto", "mprotect")
OPTIONS = "quiet=1 durability=process pool_size_mb=4 pool_max_mb=64"


class Sanitizers(CommandLineTest):
    def compiled(self, compiler, *flags):
        """The program, or None where this compiler has no such sanitizer."""
        program = self.folder / f"{compiler}{''.join(flags)}"
        done = subprocess.run([compiler, "-g", "-O1", *flags, f"-I{ROOT / 'include'}", HERE / "sanitized_program.c", "-o", program,
                               f"-L{BUILD / 'lib'}", "-lstillpoint", "-lpthread", f"-Wl,-rpath,{BUILD / 'lib'}"],
                              capture_output=True, text=True, check=False)
        return program if done.returncode == 0 else None

    def programs(self, *choices):
        for compiler in COMPILERS:
            for flags in choices:
                program = self.compiled(compiler, *flags)
                if program is not None:
                    yield program
        for pool in self.folder.glob("*.pool"):
            pool.unlink()

    def test_address_undefined_and_leak_run_under_run(self):
        ran = 0
        for program in self.programs(*WORKING):
            pool = program.with_suffix(".run.pool")
            for number, tracker in enumerate(TRACKERS, 1):
                with self.subTest(program=program.name, tracker=tracker):
                    done = self.stillpoint("run", "-q", "--pool", pool, *SMALL, "--tracker", tracker, "--", program)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"count {2000 * number}\n", ""))
                    ran += 1
        self.assertGreater(ran, 0, "no compiler here has a sanitizer")

    def test_address_undefined_and_leak_run_with_sp_open(self):
        for program in self.programs(*WORKING):
            pool = program.with_suffix(".open.pool")
            for number, tracker in enumerate(TRACKERS, 1):
                with self.subTest(program=program.name, tracker=tracker):
                    done = self.stillpoint(pool, f"{OPTIONS} tracker={tracker}", tool=program)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"count {2000 * number}\n", ""))

    def test_errors_are_still_found(self):
        for kind, flags, message in (("heap", "-fsanitize=address", "heap-use-after-free"),
                                     ("overflow", "-fsanitize=undefined", "signed integer overflow")):
            for program in self.programs((flags,)):
                with self.subTest(program=program.name):
                    done = self.stillpoint("run", "-q", "--pool", self.pool, *SMALL, "--", program, "--bug", kind)
                    self.assertIn(message, done.stderr)

    def test_a_script_that_starts_such_a_program(self):
        for program in self.programs(("-fsanitize=address",)):
            with self.subTest(program=program.name):
                script = self.folder / "script.sh"
                script.write_text(f'#!/bin/sh\nexec "{program}"\n')
                script.chmod(0o755)
                pool = program.with_suffix(".script.pool")
                done = self.stillpoint("run", "-q", "--pool", pool, *SMALL, "--", script)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "count 2000\n", ""))

    def test_thread_and_memory_are_refused_with_what_to_do(self):
        for flags, name, advice in ((("-fsanitize=thread",), "ThreadSanitizer", "volatile"),
                                    (("-fsanitize=memory",), "MemorySanitizer", "valgrind")):
            for program in self.programs(flags):
                with self.subTest(program=program.name):
                    for done, code in ((self.stillpoint("run", "--pool", self.pool, *SMALL, "--", program), 69),
                                       (self.stillpoint(self.pool, OPTIONS, tool=program), 3)):
                        self.assertEqual(done.returncode, code, done.stderr)
                        self.assertIn(name, done.stderr)
                        self.assertIn(advice, done.stderr)
                        self.assertNotIn("bad address", done.stderr)
                        self.assertFalse(self.pool.exists(), "a pool was made for a program that cannot use it")

    def test_thread_and_memory_run_volatile(self):
        for program in self.programs(("-fsanitize=thread",), ("-fsanitize=memory",)):
            with self.subTest(program=program.name):
                done = self.stillpoint("run", "--quiet", "--", program)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "count 2000\n", ""))


if __name__ == "__main__":
    unittest.main()
