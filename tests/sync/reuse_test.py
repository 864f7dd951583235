"""Records of synchronisation objects do not outlive the objects: integers where they were come back as they were, and objects in use
come back fit for use. `reuse_test.py --runs N --seed S` is the long random form."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))
PROGRAM = Path(os.environ.get("SYNC_REUSE", BUILD / "bin/sync_reuse"))
TIMEOUT_S = 60
WAYS = ("storage", "shrink", "shrink_large", "move", "free", "root_delete", "nvmalloc", "in_use")
TRACKERS = ("uffd", "mprotect", "hooks")
OPTIONS = "engine={} {}durability=process interval_ms={} pool_size_mb=16 pool_max_mb=64 quiet"


def options(tracker, interval_ms=3600000):
    engine, more = ("pronto", "") if tracker == "pronto" else ("pmthreads", f"tracker={tracker} ")
    return OPTIONS.format(engine, more, interval_ms)


class Reuse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, pool, tracker, *command, interval_ms=3600000):
        done = subprocess.run([PROGRAM, self.folder / pool, options(tracker, interval_ms), *map(str, command)], capture_output=True,
                              text=True, check=False, timeout=TIMEOUT_S)
        expected = -signal.SIGKILL if command[-1] == "kill" else 0
        self.assertEqual(done.returncode, expected, f"{pool} {tracker} {command}: {done.stdout}{done.stderr}")

    def way(self, way, tracker):
        for end in ("exit", "kill"):
            with self.subTest(way=way, tracker=tracker, end=end):
                pool = f"{way}-{tracker}-{end}"
                self.run_program(pool, tracker, "way", way, end)
                self.run_program(pool, tracker, "check")
                (self.folder / pool).unlink()

    def test_each_way_of_death_and_reuse(self):
        for tracker in TRACKERS:
            for way in WAYS:
                self.way(way, tracker)

    def test_deleted_durable_objects(self):
        for way in ("delete_object", "storage", "in_use"):
            self.way(way, "pronto")

    def random(self, seed, runs):
        for tracker in (*TRACKERS, "pronto"):
            pool = f"random-{tracker}-{seed}"
            for run in range(runs):
                self.run_program(pool, tracker, "random", seed * 1000 + run, 60, ("kill", "exit")[run % 3 == 2], interval_ms=2)
            self.run_program(pool, tracker, "check")
            (self.folder / pool).unlink()

    def test_random_deaths_and_reuses(self):
        self.random(1, 3)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, required=True)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    case = Reuse("test_random_deaths_and_reuses")
    case.setUp()
    try:
        for seed in range(chosen.seed, chosen.seed + chosen.runs):
            case.random(seed, 6)
            print(f"seed {seed}: nothing lost")
    finally:
        case.doCleanups()


if __name__ == "__main__":
    if any(argument.startswith("--runs") for argument in sys.argv):
        main()
    else:
        unittest.main()
