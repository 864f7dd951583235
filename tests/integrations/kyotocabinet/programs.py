"""Runs the programs of integrations/kyotocabinet/build.py, with a pool and without."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parent.parent.parent.parent / "build"))
FOLDER = BUILD / "integrations/kyotocabinet"
TOOL = BUILD / "bin/stillpoint"
EXIT_SKIPPED = 77


def skip_without(*programs):
    """Ends the test as skipped where a program was not built: the build's own test says why."""
    for program in programs:
        if not Path(program).is_file():
            print(f"skipped: {program} is missing")
            sys.exit(EXIT_SKIPPED)


class PoolTest(unittest.TestCase):
    """A test with a pool of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(temporary.cleanup)
        self.pool = Path(temporary.name) / "test.pool"

    def plain(self, *words):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, "KCRNDSEED": "1", "TMPDIR": str(self.pool.parent)}, errors="replace")

    def durable(self, *words, options=()):
        return self.plain(TOOL, "run", "--quiet", "--durability", "process", "--interval-ms", "10",
                          "--pool", self.pool, *options, "--", *words)

    def assert_ended(self, done, code):
        self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
