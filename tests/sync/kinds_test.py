"""Locks of every kind in durable memory, contended, with owners that die, under each tracker: none fails, no wake-up is lost, no update is
lost, and all are fit for use after a kill. `kinds_test.py --runs N` is the long form."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))
PROGRAM = Path(os.environ.get("SYNC_KINDS", BUILD / "bin/sync_kinds"))
TIMEOUT_S = 100
TRACKERS = ("engine=pmthreads tracker=uffd", "engine=pmthreads tracker=mprotect", "engine=pmthreads tracker=hooks",
            "engine=pmthreads tracker=hooks verify_marks", "engine=pronto")


class Kinds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.pool = Path(folder.name) / "test.pool"

    def run_program(self, tracker, rounds, end):
        options = f"{tracker} durability=process interval_ms=2 pool_size_mb=16 pool_max_mb=64"
        done = subprocess.run([PROGRAM, self.pool, options, str(rounds), end], capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, -signal.SIGKILL if end == "kill" else 0, f"{tracker}, {end}: {done.stdout}{done.stderr}")
        self.assertNotIn("verify_marks:", done.stderr)

    def runs(self, count, rounds):
        for tracker in TRACKERS:
            self.pool.unlink(missing_ok=True)
            with self.subTest(tracker=tracker):
                for run in range(count):
                    self.run_program(tracker, rounds, "exit" if run + 1 == count or run % 4 == 3 else "kill")

    def test_each_kind_under_each_tracker(self):
        self.runs(3, 24)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, required=True)
    case = Kinds()
    case.setUp()
    try:
        case.runs(arguments.parse_args().runs, 200)
        print("nothing lost")
    finally:
        case.doCleanups()


if __name__ == "__main__":
    if any(argument.startswith("--runs") for argument in sys.argv):
        main()
    else:
        unittest.main()
