#!/usr/bin/env python3
"""An engine is a folder and a line of the registry: wholecopy passes what every engine must. No test knows its name but this one, which
runs it alone."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build/with_wholecopy"))
TOOL = BUILD / "bin/stillpoint"
ENGINE = "wholecopy"


class Wholecopy(unittest.TestCase):
    def run_well(self, *words):
        done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=600, env={**os.environ, "STILLPOINT_BUILD": str(BUILD)})
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def test_it_is_listed_beside_the_others(self):
        listed = [line.split()[0] for line in self.run_well(TOOL, "tables", "engines").splitlines()]
        self.assertEqual(listed[-1], ENGINE)
        of_the_product = self.run_well(BUILD.parent / "bin/stillpoint", "tables", "engines").splitlines()
        self.assertEqual(listed[:-1], [line.split()[0] for line in of_the_product])
        self.assertIn(ENGINE, self.run_well(TOOL, "run", "--help"))

    def test_it_passes_the_conformance_campaigns(self):
        self.assertIn(f"{ENGINE}/", self.run_well(BUILD / "bin/explore", "--campaign", ENGINE, "--states", "12000", "--seconds", "60"))

    def test_it_keeps_its_promises_through_kills(self):
        for medium in ("file", "memory"):
            with self.subTest(medium=medium):
                loop = ROOT / "tests/kill/kill_loop.py"
                self.run_well(sys.executable, "-B", loop, "--engine", ENGINE, "--binaries", BUILD / "bin", "--folder", BUILD / "kill-loop",
                              "--kills", "15", "--seed", "5", "--medium", medium)

    def test_it_survives_every_fault_of_its_calls(self):
        faults = ROOT / "tests/faults/everywhere.py"
        self.assertIn("0 wrong", self.run_well(sys.executable, "-B", faults, "--engine", ENGINE, "--seconds", "8", "--seed", "3"))

    def test_its_pools_can_be_looked_at_and_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            pool = Path(folder) / "a.pool"
            self.run_well(TOOL, "run", "--quiet", "--pool", pool, "--engine", ENGINE, "--pool-size-mb", "16", "--", BUILD / "bin/bank",
                          "--accounts", "50", "--threads", "2", "--transfers", "2000")
            self.assertEqual(json.loads(self.run_well(TOOL, "info", "--json", pool))["engine"], ENGINE)
            self.assertTrue(json.loads(self.run_well(TOOL, "check", "--json", pool))["clean"])
            product = subprocess.run([BUILD.parent / "bin/stillpoint", "check", pool], capture_output=True, text=True, check=False)
            self.assertNotEqual(product.returncode, 0)
            self.assertIn(ENGINE, product.stderr)  # The product has no such engine, and says so.

    def test_it_is_measured(self):
        said = self.run_well(TOOL, "bench", "--engine", f"volatile,{ENGINE}", "--workload", "queue", "--medium", "memory",
                             "--durability", "process", "--threads", "1", "--repeat", "1", "--seconds", "0.1")
        self.assertIn(ENGINE, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
