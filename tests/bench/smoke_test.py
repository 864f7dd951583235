#!/usr/bin/env python3
"""Every workload on every engine and peer that is here, with small inputs: none may rot.

Invariants:
- Each workload of the catalogue runs on each engine that can do it, and its own check finds nothing wrong.
- What an engine cannot do is named; what is not installed is skipped with the command that brings it.
- After a kill no engine has operations that were never done, and none has lost what it promises to keep.
- Programs compiled by `stillpoint c++` run under the tracker hooks.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", "build")).resolve()
COMMAND = BUILD / "bin" / "stillpoint"
# libpmemobj runs every program, and so takes as long to compile as an engine: where `make build-bench` or a benchmark has made its worker.
PEERS = ["lmdb", "rocksdb-sync", "rocksdb-async", "sqlite", *(["pmemobj"] if (BUILD / "bin" / "bench_worker_pmemobj").is_file() else [])]
KEEPS_ALL = "nothing once an operation has returned"
# The structures and programs of ResPCT's paper: hash map and queue, and of the applications those of its Figure 13.
OF_RESPCT = ("hash_map", "queue", "dedup", "swaptions", "matrix_multiply", "linear_regression")


def bench(*words):
    done = subprocess.run([COMMAND, "bench", "--smoke", "--quiet", "--json", "-", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=540)
    if done.returncode != 0:
        raise AssertionError(f"stillpoint bench {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


class Smoke(unittest.TestCase):
    def test_every_workload_gives_the_right_result_on_every_engine(self):
        document = bench("--workload", "all", "--engine", ",".join(["pmthreads,respct,pronto,breeze,volatile-tm", *PEERS]), "--kills", "0",
                         "--value-size", "64")
        listed = json.loads(subprocess.run([BUILD / "bin" / "bench_worker_volatile", "--list"], stdout=subprocess.PIPE,
                                           check=True).stdout)
        self.assertEqual([cell["workload"] for cell in document["cells"]], [row["name"] for row in listed["workloads"]])
        self.assertTrue(document["complete"])
        for cell in document["cells"]:
            done = {row["name"] for row in cell["configurations"]}
            self.assertLessEqual({"volatile", "pmthreads"}, done, cell["title"])
            self.assertEqual("volatile-tm" in done, cell["family"] == "transactions", cell["title"])
            if cell["workload"] in OF_RESPCT:
                self.assertIn("respct", done, cell["title"])
            for row in cell["configurations"]:
                self.assertGreater(row["rate"]["median"], 0, f"{cell['title']}: {row['name']}")
            for one in cell["left_out"]:
                self.assertRegex(one, "^[a-z-]+: [a-z].+", "an engine, and why it cannot do that")
        for one in document["skipped"]:
            self.assertIn("apt-get install", one["remedy"])

    def test_a_kill_loses_no_more_than_each_engine_says(self):
        document = bench("--workload", "hash_map,queue,list,vacation", "--engine",
                         ",".join(["pmthreads,respct,respct-stop,pronto,pronto-sharded,breeze", *PEERS]))
        for cell in document["cells"]:
            for row in cell["configurations"]:
                kill = row["kill"]
                if row["name"] == "volatile-words":  # As volatile, it loses everything: one of the two is enough.
                    continue
                self.assertIsNotNone(kill, f"{cell['title']}: {row['name']}")
                if row["loses"] == KEEPS_ALL and "operations_lost" in kill:
                    self.assertEqual(kill["operations_lost"], 0, f"{cell['title']}: {row['name']}")
                self.assertGreater(kill["restart_to_first_operation_ns"], 0)

    def test_the_tracker_hooks_runs_programs_of_its_compiler(self):
        if not (BUILD / "bin" / "bench_worker_pmthreads_hooks").is_file():
            self.skipTest("no LLVM and Clang when this was built: no program with hooks")
        self.assert_runs_with("hooks")

    def test_each_tracker_of_pages_runs_ordinary_programs(self):
        self.assert_runs_with("uffd", "mprotect")

    def assert_runs_with(self, *trackers):
        document = bench("--workload", "btree,queue", "--engine", "pmthreads", "--tracker", ",".join(trackers))
        for cell in document["cells"]:
            self.assertEqual([row["tracker"] for row in cell["configurations"] if row["kind"] != "volatile"], [*trackers])
            self.assertIn("volatile-words", [row["name"] for row in cell["configurations"]])


if __name__ == "__main__":
    if not os.access("/dev/shm", os.W_OK):
        print("skipped: no /dev/shm that can be written")
        sys.exit(77)
    unittest.main(verbosity=2)
