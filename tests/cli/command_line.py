"""The shared part of the tests of the command line: running the built command in a folder of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for support

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build"))
TOOL = BUILD / "bin/stillpoint"
COUNTER = BUILD / "bin/cli_counter"
SMALL = ("--durability", "process", "--pool-size", "4M", "--pool-max", "64M")


class CommandLineTest(unittest.TestCase):
    """Each test has an empty folder, on the file system of the build, that is gone afterwards."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="cli-", dir=BUILD))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.pool = self.folder / "a.pool"

    def stillpoint(self, *arguments, tool=TOOL, **environment):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("STILLPOINT_") and name != "LD_PRELOAD"}
        return subprocess.run([str(word) for word in (tool, *arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              env={**clean, **environment}, capture_output=True, text=True, check=False, timeout=600)

    def run_counter(self, *arguments, pool=None, options=()):
        return self.stillpoint("run", "--quiet", "--pool", pool or self.pool, *SMALL, *options, "--", COUNTER, *arguments)

    def new_pool(self):
        done = self.run_counter()
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.pool

    def assert_refused(self, done, exit_code, *messages):
        """One clear message, the documented exit code, and no output of the program."""
        self.assertEqual(done.returncode, exit_code, f"{done.stdout}{done.stderr}")
        self.assertNotIn("run ", done.stdout)
        lines = [line for line in done.stderr.splitlines() if line.startswith("stillpoint: error: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for message in messages:
            self.assertRegex(lines[0], message)

    def assert_untouched_by(self, path, action):
        """`action()` leaves the bytes, the length and the mode of the file as they were."""
        before = (path.read_bytes(), path.stat().st_mode)
        result = action()
        self.assertTrue(before == (path.read_bytes(), path.stat().st_mode), f"{path} was changed")
        return result
