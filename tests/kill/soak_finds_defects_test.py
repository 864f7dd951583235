"""A soak that finds nothing proves something only if it would find something: with a program that breaks a rule on
purpose it must say so, with the seed and the command that repeats it. soak_program.cpp has the defects."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOAK = Path(__file__).with_name("soak.py")
BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))


class SoakFindsDefects(unittest.TestCase):
    def soak(self, defect, kills, arrangement="file-process-mprotect", options=()):
        with tempfile.TemporaryDirectory(prefix="soak-", dir=BUILD) as folder:
            return subprocess.run([sys.executable, "-B", str(SOAK), "--defect", defect, "--kills", str(kills), "--seed", "7",
                                   "--only", arrangement, "--limit-s", "60", "--binaries", str(BUILD / "bin"),
                                   "--folder", f"{folder}/soak", *options], capture_output=True, text=True, check=False, timeout=600)

    def assert_found(self, defect, *words, arrangement="file-process-mprotect"):
        done = self.soak(defect, 1000, arrangement)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for word in (*words, "seed 7", f"soak.py --seed 7 --kills 1000 --only {arrangement} --fresh --defect {defect}"):
            self.assertIn(word, done.stderr)
        return done.stdout

    def test_an_acknowledgement_that_comes_too_early(self):
        self.assertIn("acknowledged epochs lost: 1", self.assert_found("early-ack", "acknowledged", "is lost"))

    def test_a_transfer_in_two_failure_atomic_sections(self):
        self.assert_found("torn", "the sum of the accounts")

    def test_a_store_outside_a_failure_atomic_section(self):
        self.assert_found("outside", "the count of a thread")

    def test_a_block_that_nobody_frees(self):
        self.assert_found("leak", "the live blocks of the heap")

    def test_an_integer_that_is_not_the_one_stored_where_a_mutex_was(self):
        self.assert_found("stale", "memory that was a synchronisation object")

    def test_a_store_without_a_mark(self):
        self.assert_found("unmarked", "the sum of the accounts", arrangement="file-process-hooks")

    def test_a_program_without_defects_passes(self):
        done = self.soak("none", 12)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("acknowledged epochs lost: 0", done.stdout)

    def test_an_arrangement_without_direct_reads_is_not_passed_over(self):
        done = self.soak("no-device", 6)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("there is no direct I/O in", done.stderr)
        done = self.soak("no-device", 6, options=["--allow-no-device"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 reads by a device", done.stdout)


if __name__ == "__main__":
    unittest.main()
