"""examples/respct-resume, killed again and again, continues where it was and ends with the result of an uninterrupted run."""

import os
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from examples_test import BINARIES, ExampleTest

ROWS, POWER = 40, 6000000
HAS_ENGINE = "respct" in subprocess.run([BINARIES / "stillpoint", "run", "--help"], capture_output=True, text=True, check=False).stdout


@unittest.skipUnless(HAS_ENGINE, "the engine respct is not there")
class RespctResume(ExampleTest):
    def command(self, *options):
        return [str(word) for word in (BINARIES / "stillpoint", "run", "--quiet", "--engine=respct", "--pool", self.pool, "--interval",
                                       "10ms", "--durability", "process", *options, "--", BINARIES / "respct-resume", ROWS, POWER)]

    def digest_of(self, output):
        return re.search(r"digest (\w+), (\d+) multiplications", output).groups()

    def test_many_kills_leave_the_result_as_it_is_on_a_disk(self):
        self.survives_many_kills()

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "there is no /dev/shm")
    def test_and_in_memory_that_the_program_writes_in_place(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.pool = Path(folder.name) / "test.pool"
        self.survives_many_kills()

    def survives_many_kills(self):
        digest, work = self.digest_of(self.run_program("respct-resume", ROWS, POWER))
        self.assertEqual(int(work), ROWS * POWER)
        seconds = random.Random(7)
        resumed, progress, longest_s = [], 0, 0.25
        for kills in range(400):
            running = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                output, _ = running.communicate(timeout=seconds.uniform(0.05, longest_s))
            except subprocess.TimeoutExpired:
                running.kill()
                output, _ = running.communicate()
            longest_s *= 1.2  # On a busy machine a run may be killed before it has begun; one that got on shortens it again.
            found = re.search(r"restart point (\d), in row (\d+) after (\d+) multi", output)
            if found:
                place, row, done = map(int, found.groups())
                before, progress = progress, row + (done / POWER if place != 1 else 0)
                self.assertGreaterEqual(progress, before, "it went back")
                resumed.append((place, row, done))
                longest_s = max(0.25, longest_s / 1.5) if progress > before else longest_s
            if running.returncode == 0:
                break
            self.assertEqual(running.returncode, -9, output)
        self.assertGreater(kills, 3, "it was never killed in time")
        again, work = self.digest_of(output)
        self.assertEqual(again, digest)
        self.assertTrue(any(0 < done < POWER and place == 2 for place, row, done in resumed), f"never inside a row: {resumed}")
        self.assertLess(int(work), ROWS * POWER // 2, "the last run began again")
        # A finished part stays so.
        again, work = self.digest_of(subprocess.run(self.command(), capture_output=True, text=True, check=True, timeout=60).stdout)
        self.assertEqual((again, int(work)), (digest, 0))


if __name__ == "__main__":
    unittest.main()
