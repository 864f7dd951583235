"""Every engine that has pools in files has them in Ceph, without knowing. Invariants: those of tests/kill/kill_loop.py, whose kills these are."""

import os
import subprocess
import sys
import unittest

from rados_cluster import BUILD, CEPH_POOL, SOURCE, TOOL, RadosTest
from support import engines

KILLS = 4


class Engines(RadosTest):
    def loop(self, *words):
        environment = {**self.environment, "STILLPOINT_BUILD": str(BUILD), "STILLPOINT_SOURCE": str(SOURCE)}
        done = subprocess.run([sys.executable, "-B", str(SOURCE / "tests" / "kill" / "kill_loop.py"), "--kills", str(KILLS), "--seed", "4",
                               "--longest-ms", "900", "--interval-ms", "20", "--medium", "file", "--binaries", str(BUILD / "bin"),
                               "--folder", str(self.folder), "--ceph-pool", CEPH_POOL, *words],
                              env=environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_kills_of_each_engine(self):
        for engine in engines.listed_by(TOOL):
            with self.subTest(engine=engine.name):
                self.loop("--engine", engine.name)

    def test_kills_of_threads_that_are_processes(self):
        if os.access(BUILD / "bin" / "nvthreads_ledger", os.X_OK):
            self.loop("--program", "ledger-of-processes")


if __name__ == "__main__":
    unittest.main()
