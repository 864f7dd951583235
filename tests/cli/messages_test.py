"""Which messages the library tells, and where: --log-level, --quiet, and a program's own callback."""

import subprocess
import unittest

from command_line import BUILD, COUNTER, SMALL, CommandLineTest


class Messages(CommandLineTest):
    def run_at(self, *options):
        done = self.stillpoint("run", *options, "--pool", self.pool, *SMALL, "--", COUNTER)
        return done.stderr

    def test_levels(self):
        for options, info, debug in (((), True, False), (("--log-level", "debug"), True, True), (("--log-level", "warning"), False, False),
                                     (("--quiet",), False, False), (("--quiet", "--log-level", "debug"), False, False)):
            with self.subTest(options=options):
                errors = self.run_at(*options)
                self.assertEqual("engine pmthreads" in errors, info, errors)
                self.assertEqual("stillpoint: debug: epoch" in errors, debug, errors)

    def test_none_silences_errors_and_the_exit_code_stays(self):
        self.pool.write_bytes(b"no pool" * 4096)
        for level, told in (("none", False), ("error", True)):
            done = self.stillpoint("run", "--log-level", level, "--pool", self.pool, *SMALL, "--", COUNTER)
            self.assertEqual((done.returncode, "not a" in done.stderr or "error" in done.stderr), (65, told), done.stderr)

    def test_a_callback_gets_whole_lines_and_may_call_the_library(self):
        done = subprocess.run([BUILD / "bin/cli_messages", self.pool], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^\d+ info \d+ debug\n$")
        self.assertNotIn("durability process", done.stderr)


if __name__ == "__main__":
    unittest.main()
