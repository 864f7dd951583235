#!/usr/bin/env python3
"""The structures' test on respct in a pool, in the checked form, with a checkpoint each millisecond.

Invariants:
- The structures use logged variables as their rules ask: the checks of debug builds find nothing.
- What they answer is right whenever a checkpoint is taken.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BINARIES = Path(os.environ.get("STILLPOINT_BUILD", "build")).resolve() / "bin"
IN_MEMORY = os.access("/dev/shm", os.W_OK)


class Structures(unittest.TestCase):
    def run_on(self, folder):
        with tempfile.TemporaryDirectory(prefix="stillpoint-structures-", dir=folder) as place:
            done = subprocess.run([BINARIES / "stillpoint", "run", "--quiet", "--engine", "respct", "--interval-ms", "1", "--pool",
                                   Path(place) / "pool", "--", BINARIES / "bench_structures_respct_test"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:])
            self.assertIn("[  PASSED  ]", done.stdout)

    @unittest.skipUnless(IN_MEMORY, "no /dev/shm that can be written")
    def test_in_shared_memory(self):
        self.run_on("/dev/shm")

    def test_in_a_file(self):
        self.run_on(BINARIES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
