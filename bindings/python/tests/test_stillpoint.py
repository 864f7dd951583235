"""The package, in processes of its own with a pool. PYTHONPATH has the package, STILLPOINT the command."""

import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs.py"
TOOL = os.environ.get("STILLPOINT", "stillpoint")
KILLS = 8


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pool = Path(folder.name) / "a.pool"

    def words(self, *arguments, options=()):
        return [TOOL, "run", "--quiet", "--durability", "process", "--pool-size", "8M", "--pool-max", "64M", "--pool",
                str(self.pool), *options, "--", sys.executable, "-B", str(PROGRAMS), *arguments]

    def life(self, *arguments, code=0):
        done = subprocess.run(self.words(*arguments), capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_kills_leave_whole_sections(self):
        moments, before = random.Random(3), 0
        for _ in range(KILLS):
            words = self.words("transfers", "100000000", options=("--interval-ms", "5"))
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
                found = run.stdout.readline()
                time.sleep(moments.uniform(0, 0.3))
                run.kill()
                rest, errors = run.communicate()
            self.assertEqual(run.returncode, -9, found + rest + errors)
            self.assertGreaterEqual(int(found), before)
            before = int(found)
        self.assertGreater(int(self.life("transfers", "10")), 0)

    def test_containers_are_as_those_of_python(self):
        self.assertEqual(self.life("against_model", "2000"), "fresh True True True\n")
        self.assertEqual(self.life("against_model", "2000"), "clean True True True\n")

    def test_nested_containers_are_freed(self):
        first = self.life("nested", code=-9).split()
        self.assertEqual(first[0], "fresh")
        second = self.life("nested").split(maxsplit=2)
        self.assertEqual(second, ["crashed", "0", "0 ['kept', 'top']\n"])

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "numpy is not installed")
    def test_arrays(self):
        self.assertEqual(self.life("arrays"), "fresh 1005 int32 True\n")
        self.assertEqual(self.life("arrays"), "clean 2010 int32 True\n")

    def test_refusals_say_why(self):
        lines = self.life("refusals").splitlines()
        for line, begin in zip(lines, ("TypeError 'it' is a DurableList", "TypeError a durable container cannot hold a set",
                                       "TypeError a durable container cannot hold a set",
                                       "KeyError 'none'",
                                       "IndexError", "TypeError a durable container cannot hold a list", "KeyError 'none'",
                                       "StillpointError",
                                       "StillpointError", "StillpointError", "TypeError a durable array has numbers", "MemoryError"),
                               strict=False):
            self.assertTrue(line.startswith(begin), f"{line!r} does not begin with {begin!r}")
        self.assertEqual(len(lines), 13, lines)
        self.assertIn("the checkpoint waits for the caller", lines[-1])

    def test_a_wait_has_a_level(self):
        unsupported, wrong = self.life("levels").splitlines()
        self.assertRegex(unsupported, "^18 .*: the pool has no replica")
        self.assertEqual(wrong, "None a level is 'local' or 'remote', not 'both'")

    def test_damage_is_found(self):
        lines = self.life("damaged").splitlines()
        self.assertEqual(len(lines), 3, lines)
        for line in lines:
            self.assertIn("cannot be read", line)

    def test_without_a_pool_it_runs(self):
        for _ in range(2):
            done = subprocess.run([sys.executable, "-B", PROGRAMS, "transfers", "10"], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "0\n"), done.stderr)

    def test_open_says_how_to_start(self):
        program = f"import stillpoint\ntry: stillpoint.open({str(self.pool)!r})\nexcept stillpoint.StillpointError as error: print(error)"
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, env=environment)
        self.assertRegex(done.stdout, "after the C library.*stillpoint run", done.stderr)
        self.assertFalse(self.pool.exists())

    def test_engines(self):
        for engine, code in (("pronto", 0), ("respct", 1), ("spht", 1)):
            with self.subTest(engine=engine):
                done = subprocess.run(self.words("transfers", "10", options=("--engine", engine)), capture_output=True, text=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, code, done.stderr)
                if code:
                    self.assertIn("make the pool with another engine", done.stderr)
                self.pool.unlink()


if __name__ == "__main__":
    unittest.main()
