#!/usr/bin/env python3
"""The transactional programs after kills: what a crash leaves of each is what some of its transactions had made.

Invariants:
- Killed at any moment, each program that the engine can run finds its memory whole when it starts again, and its next result is right.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from driver.process import Process  # its folder is known from here on

BUILD = Path(os.environ.get("STILLPOINT_BUILD", "build")).resolve()
ENGINES = ["pmthreads"]
KILLS = 4
EMULATED = ["--medium", "memory", "--durability", "process", "--interval-ms", "5"]


def programs_of(engine):
    listed = subprocess.run([BUILD / "bin" / f"bench_worker_{engine}", "--list"], stdout=subprocess.PIPE, check=True)
    return [row["name"] for row in json.loads(listed.stdout)["workloads"] if row["family"] == "transactions"]


class Killed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stillpoint-transactions-", dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, engine, program):
        return Process(f"{engine} {program}", [BUILD / "bin" / "stillpoint", "run", "--quiet", "--pool", self.folder / program, "--engine",
                                               engine, *EMULATED, "--", BUILD / "bin" / f"bench_worker_{engine}", program, "threads=2",
                                               "smoke=1", "pinned=0"])

    def test_each_program_finds_its_memory_whole_after_a_kill(self):
        for engine in ENGINES:
            for program in programs_of(engine):
                with self.subTest(engine=engine, program=program):
                    self.kill_and_check(engine, program)

    def kill_and_check(self, engine, program):
        generator = random.Random(program)
        for _ in range(KILLS):
            with self.start(engine, program) as worker:
                self.assertEqual(worker.ask("check")["fault"], "")
                worker.ask(f"mortal {int(60e9)} {self.folder / 'told'}")
                time.sleep(generator.uniform(0.01, 0.1))
                worker.kill()
        with self.start(engine, program) as worker:
            worker.slice(1)
            worker.end()


if __name__ == "__main__":
    if not os.access("/dev/shm", os.W_OK):
        print("skipped: no /dev/shm that can be written")
        sys.exit(77)
    unittest.main(verbosity=2)
