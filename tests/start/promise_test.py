"""A promise that a medium cannot keep is refused: durability power in memory is refused, unless its emulation is named."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import engines  # noqa: E402  (the path must be set first)

BUILD = os.environ["STILLPOINT_BUILD"]
TOOL = os.path.join(BUILD, "bin", "stillpoint")
PROGRAM = os.path.join(BUILD, "bin", "start_program")
CLEAN_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}


def lies_in_memory(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False).stdout.strip() == "tmpfs"


@unittest.skipUnless(lies_in_memory("/dev/shm") and os.access("/dev/shm", os.W_OK), "there is no /dev/shm")
class Promise(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.pool = os.path.join(folder.name, "promise.pool")

    def run_it(self, *options, pool=None, program=(PROGRAM,)):
        return subprocess.run([TOOL, "run", "--pool", pool or self.pool, "--pool-max", "64M", *options, "--", *program],
                              env=CLEAN_ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)

    def info(self):
        done = subprocess.run([TOOL, "info", "--json", self.pool], env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=True)
        facts = json.loads(done.stdout)
        return facts["durability"], facts["durability_is_emulated"]

    def test_a_new_pool_in_memory_is_for_the_death_of_the_process_where_nothing_is_said(self):
        for engine in engines.names_that_keep_stores():
            with self.subTest(engine=engine):
                run = self.run_it("--engine", engine)
                self.assertEqual(run.stdout, "start 1 run 1\n", run.stderr)
                self.assertIn("its durability is process", run.stderr)
                self.assertIn("durability process,", run.stderr)
                self.assertEqual(self.info(), ("process", False))
                self.assertEqual(self.run_it().stdout, "start 2 run 2\n")
                os.remove(self.pool)

    def test_power_is_refused_and_the_ways_out_are_named(self):
        for program in ((PROGRAM,), ("sh", "-c", f"echo ran; {PROGRAM}")):
            run = self.run_it("--durability", "power", program=program)
            self.assertEqual((run.returncode, run.stdout, os.path.exists(self.pool)), (69, "", False), run.stderr)
            for text in ("--durability process", "--medium memory", "ends with the machine"):
                self.assertIn(text, run.stderr)

    def test_an_emulation_that_is_named_is_kept_and_called_so(self):
        for options in (("--medium", "memory"), ("--medium", "memory", "--durability", "power")):
            run = self.run_it(*options)
            self.assertEqual(run.stdout, "start 1 run 1\n", run.stderr)
            self.assertIn("durability power (emulated),", run.stderr)
            self.assertEqual(self.info(), ("power", True))
            os.remove(self.pool)

    def test_a_pool_that_was_moved_into_memory_is_refused(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            if lies_in_memory(folder):
                self.skipTest("the build lies in memory")
            pool = os.path.join(folder, "disk.pool")
            self.assertEqual(self.run_it(pool=pool).returncode, 0)
            shutil.copy(pool, self.pool)
        run = self.run_it()
        self.assertEqual((run.returncode, run.stdout), (69, ""), run.stderr)
        self.assertEqual(self.run_it("--medium", "memory").stdout, "start 2 run 2\n")
        self.assertEqual(self.info(), ("power", True))

    def test_doctor_agrees(self):
        done = subprocess.run([TOOL, "doctor", "--json", "/dev/shm"], env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertEqual(json.loads(done.stdout)["verdict"]["durability"], "process")


if __name__ == "__main__":
    unittest.main()
