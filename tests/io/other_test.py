"""Things that a program may do to durable memory besides reading into it: it works, is refused with a message, or is named in a warning."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}


class Other(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_way(self, way, *options, code=0, pool="p"):
        words = [BUILD / "bin/stillpoint", "run", "--pool", pool, "--pool-max", "64M", "--durability", "process", *options, "--",
                 BUILD / "bin/io_other", way]
        done = subprocess.run(words, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_pinned_memory_that_nobody_knows_is_named(self):
        told = self.run_way("pin", "--tracker", "uffd", "--interval", "20ms").stderr
        self.assertEqual(told.count("a device may store into 1024 KiB of this process"), 1, told)

    def test_a_debugger_is_named_once_where_what_it_stores_is_lost(self):
        for options, times in ((("--tracker", "mprotect"), 1), (("--engine", "pronto"), 1), (("--tracker", "uffd"), 0)):
            with self.subTest(options=options):
                told = self.run_way("traced", *options, "--interval", "20ms", pool=options[1]).stderr
                self.assertEqual(told.count("traces this one: what a debugger stores"), times, told)


if __name__ == "__main__":
    unittest.main()
