#!/usr/bin/env python3
"""The benchmark pronto_costs: that each part measures and shows something, with small data. No times.

Invariants:
- Each part of a quick run has a row for every side that is here, and the page has every part.
- What is not here is left out with a sentence that says what would bring it; the rest is measured.
- A part that a file has is not measured again; bars are judged by the figures of their part alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build")).resolve()
RUN = ROOT / "bench" / "run.py"
sys.path.insert(0, str(ROOT / "bench"))

from driver import pages  # noqa: E402  (the path must be set first)
from pronto_costs import containers, group_commit, memory, reads, recovery, snapshots  # noqa: E402
from pronto_costs.page import PAGE  # noqa: E402


def costs(*words, binaries=BUILD / "bin"):
    return subprocess.run([sys.executable, "-B", RUN, "pronto_costs", "--binaries", binaries, "--quiet", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120)


def median(value):
    return {"median": value, "low": value, "high": value}


class QuickRuns(unittest.TestCase):
    def quick(self, *names):
        words = [word for name in names for word in ("--part", name)]
        done = costs("--quick", "--json", "-", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = json.loads(done.stdout)
        self.assertEqual(list(whole["parts"]), list(names))
        page = pages.text_of(PAGE, whole)
        for name in names:
            self.assertIn(f"## {PAGE.parts[name].TITLE}", page)
        return {name: part["result"] for name, part in whole["parts"].items()}

    def test_containers_and_the_sharded_map_have_every_side(self):
        found = self.quick("containers", "sharded")
        for cell in found["containers"]["cells"] + found["sharded"]["cells"]:
            sides = {row["name"]: row for row in cell["rows"]}
            self.assertLessEqual({"volatile", "pronto"}, set(sides), cell["left_out"])
            self.assertGreater(sides["pronto"]["counted"]["fences"], 0)
            self.assertEqual(sides["volatile"]["to_volatile"]["median"], 1)

    def test_logging_is_compared_at_each_cost_of_the_operation(self):
        cells = self.quick("logging")["logging"]["cells"]
        self.assertEqual([cell["cost_ns"] for cell in cells], [100, 1000, 10_000, 100_000])
        for cell in cells:
            self.assertEqual(set(cell["modes"]), {"async", "sync", "auto"})

    def test_snapshots_and_recovery_are_of_each_size(self):
        found = self.quick("snapshots", "recovery")
        self.assertTrue(all(row["stop_ns_max"] > 0 for cell in found["snapshots"]["stops"] for row in cell["rows"]))
        self.assertTrue(all(row["slowdown"]["median"] > 0 for cell in found["snapshots"]["slowdowns"] for row in cell["rows"]))
        for row in (row for cell in found["snapshots"]["usual"] for row in cell["rows"]):
            self.assertEqual(row["snapshots"]["without"]["median"], 0)
            self.assertGreater(row["throughput"]["median"], 0)
        for cell in found["recovery"]["cells"]:
            self.assertGreater(cell["last_page_ns"]["median"], cell["first_operation_ns"]["median"])

    def test_reads_and_memory_are_compared_with_the_same_class_in_ordinary_memory(self):
        found = self.quick("reads", "memory")
        self.assertEqual({cell["container"] for cell in found["reads"]["cells"]}, set(reads.CONTAINERS))
        for cell in found["reads"]["cells"]:
            self.assertEqual([row["name"] for row in cell["rows"]], [side.name for side in reads.SIDES], cell["left_out"])
        for cell in found["memory"]["cells"]:
            for row in cell["rows"]:
                self.assertEqual(set(row["moments"]), set(memory.MOMENTS))
                self.assertEqual(row["moments"]["filled"]["pool"] > 0, row["name"] != "volatile")

    def test_a_group_of_clients_shares_its_syncs(self):
        rows = {row["name"]: row for cell in self.quick("group_commit")["group_commit"]["cells"] for row in cell["rows"]}
        many, one = (rows[side.name]["counted"]["medium_syncs"] for side in group_commit.SIDES[:2])
        self.assertLess(many, 0.5)
        self.assertGreaterEqual(one, 0.9)


class WhatIsNotHere(unittest.TestCase):
    def test_is_left_out_by_name_and_the_rest_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("stillpoint", "pronto_sharded_volatile"):
                (Path(folder) / name).symlink_to(BUILD / "bin" / name)
            done = costs("--quick", "--part", "sharded", "--json", "-", binaries=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        cell = json.loads(done.stdout)["parts"]["sharded"]["result"]["cells"][0]
        self.assertEqual([row["name"] for row in cell["rows"]], ["volatile"])
        self.assertIn("was not built", cell["left_out"][0])

    def test_is_a_usage_error_where_a_part_does_not_exist(self):
        done = costs("--part", "nothing")
        self.assertEqual(done.returncode, 64)
        self.assertIn("--help", done.stderr)


class Files(unittest.TestCase):
    def test_a_part_that_the_file_has_is_not_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.json"
            words = ("--quick", "--part", "sharded", "--json", path, "--markdown", Path(folder) / "page.md")
            self.assertEqual(costs(*words).returncode, 0)
            before = path.read_text()
            self.assertEqual(costs(*words).returncode, 0)
            self.assertEqual(path.read_text(), before)
            refused = costs("--part", "sharded", "--json", path)
            self.assertEqual(refused.returncode, 64)
            self.assertIn("--quick", refused.stderr)

    def test_of_another_program_are_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"format": "another"}')
            file.flush()
            self.assertEqual(costs("--report", file.name).returncode, 64)


class Bars(unittest.TestCase):
    def judged(self, bars):
        return [(next(iter(bar["values"]), None), bar["met"]) for bar in bars]

    def test_of_maps_are_taken_from_values_of_4_kib(self):
        rows = [{"name": "volatile"}, {"name": "pronto", "to_volatile": median(3.0)},
                {"name": "libpmemobj", "latency_to": {"pronto": median(3.5)}}]
        cells = [{"container": "map", "value_bytes": 64, "rows": [{"name": "pronto", "to_volatile": median(99)}]},
                 {"container": "map", "value_bytes": 4096, "rows": rows}]
        self.assertEqual(self.judged(containers.bars({"cells": cells}))[:2], [(3.0, True), (3.5, False)])

    def test_of_small_insertions_are_those_of_the_vector_and_the_priority_queue(self):
        cells = [{"container": container, "value_bytes": 64, "rows": [{"name": "pronto", "to_volatile": median(value)}]}
                 for container, value in (("vector", 30.0), ("priority_queue", 5.0), ("map", 2.0))]
        self.assertEqual(self.judged(containers.bars({"cells": cells}))[2:], [(30.0, False), (5.0, True)])

    def test_of_reads_is_the_slowest_cell_of_a_container(self):
        cells = [{"container": "map", "rows": [{"name": "pronto", "to_volatile": median(value)}]} for value in (1.0, 2.0)]
        self.assertEqual(self.judged(reads.bars({"cells": cells}))[:2], [(0.5, False), (None, False)])

    def test_of_memory_are_the_highest_of_all_moments(self):
        def row(name, memory_mib, pool_mib):
            return {"name": name, "moments": {moment: {"memory": memory_mib << 20, "pool": pool_mib << 20} for moment in memory.MOMENTS}}
        cells = [{"mib": 64, "rows": [row("volatile", 100, 0), row("pronto, file", 250, 500)]},
                 {"mib": memory.SMALL, "rows": [row("volatile", 1, 0), row("pronto, file", 20, 6)]}]
        self.assertEqual(self.judged(memory.bars({"cells": cells})), [(2.5, True), (5.0, False), (6.0, True)])

    def test_of_group_commit_is_the_ratio_of_rates(self):
        rows = [{"name": group_commit.SIDES[0].name, "to_volatile": median(1 / 64)},
                {"name": group_commit.SIDES[2].name, "to_volatile": median(1 / 64)}]
        self.assertEqual(self.judged(group_commit.bars({"cells": [{"rows": rows}]})), [(64.0, True), (64.0, False)])

    def test_of_snapshots_is_the_longest_stop_of_the_largest_size(self):
        cells = [{"mib": mib, "rows": [{"stop_ns_max": stop} for stop in (1e6, 6e6)]} for mib in (2, 1024)]
        self.assertEqual(self.judged(snapshots.bars({"stops": cells})), [(6e6, False)])
        self.assertEqual(self.judged(snapshots.bars({"stops": cells[:1]})), [(None, False)])

    def test_of_recovery_is_the_last_page_without_a_log(self):
        cells = [{"mib": 1024, "logged": logged, "way": way, "rounds": 1, "last_page_ns": median(ns), "first_operation_ns": median(5e7)}
                 for logged, way, ns in ((0, "eager", 2e8), (0, "lazy", 3e8), (9, "lazy", 9e9))]
        self.assertEqual(self.judged(recovery.bars({"cells": cells})), [(3e8, True), (5e7, True)])


if __name__ == "__main__":
    if not os.access("/dev/shm", os.W_OK):
        print("skipped: no /dev/shm that can be written")
        sys.exit(77)
    unittest.main(verbosity=2)
