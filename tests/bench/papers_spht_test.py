"""The figures of SPHT's paper (bench/papers/spht.py): what is read out of runs of transactions, of replay and of the simulations.

- Shares of attempts and phases are sums over all slices, and there is nothing where no transaction was watched.
- A ratio is taken within a round; one replayer's part alone stands for as many cores.
- Columns beyond the measured ones come from a simulation, and say so.
"""

import argparse
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from driver.figures import transactions_of  # noqa: E402  (the path must be set first)
from papers import page, readings, replay_runs, rows, runs, spht  # noqa: E402

SLICE = {"transactions": 100, "attempts": 125, "transactions_alone": 1, "alone_ns": 10, "committed_ns": 40, "aborted_ns": 20,
         "commit_phase_ns": 30}
REPLAY = {"writes": 1000, "sides": [{"links": links, "filter": False, "replayers": replayers, "ns": ns} for links, replayers, ns in (
    (False, 1, [2000, 4000, 4000]), (False, 2, [1000, 2000, 2000]), (True, 1, [1000, 1000, 1000]), (True, 2, [500, 800, 500]))],
    "shards": [{"filter": False, "replayers": 2, "ns": 500}, {"filter": False, "replayers": 4, "ns": 250}],
    "misses": {"1": {"accesses": 1000, "misses": 80, "by": "simulation"}, "2": {"accesses": 1000, "misses": 60, "by": "simulation"},
               "4": {"accesses": 1000, "misses": 50, "by": "simulation"}}}


class Known:
    workloads = {}
    engines_here = []


def shown(figure, document):
    saved = {"runs": document, "quick": False, "cpus": 2, "bandwidths": None}
    return rows.rows_of(figure, runs.Measurements(argparse.Namespace(quick=False, quiet=True), saved, only_saved=True), Known())


def logs_of(name):
    return f"bench_replay_cell 'logs of {name}'"


class TransactionsOfSlices(unittest.TestCase):
    def test_are_shares_of_all_slices(self):
        found = transactions_of([{}, SLICE, SLICE])
        self.assertEqual(found["count"], 200)
        self.assertAlmostEqual(found["attempts_aborted"], 0.2)
        self.assertAlmostEqual(found["ran_alone"], 0.01)
        self.assertEqual(found["phases"], {"alone": 0.1, "committed": 0.4, "aborted": 0.2, "commit_phase": 0.3})

    def test_are_none_where_none_were_watched(self):
        self.assertIsNone(transactions_of([{}, {"operations": 5}]))

    def test_are_shown_as_attempts_and_phases(self):
        row = {"transactions": transactions_of([SLICE])}
        self.assertEqual(readings.ATTEMPTS.show(readings.ATTEMPTS.value(row, {})), "20 % aborted, 1 % alone")
        self.assertEqual(readings.PHASES.show(readings.PHASES.value(row, {})), "10 / 40 / 20 / 30 %")


class ReplayOfLogs(unittest.TestCase):
    def test_has_ratios_of_rounds_and_the_slowest_part_of_more_replayers(self):
        found = replay_runs.Sides(REPLAY).configuration("links", True, False, 2)
        self.assertEqual(found["to_sorting"]["median"], 2.5)
        self.assertEqual((found["to_one"]["median"], found["to_one"]["low"]), (2, 1.25))
        self.assertEqual(found["to_one_if_apart"], {2: 2, 4: 4})

    def test_of_a_program_stands_beside_the_paper_and_the_parts_alone(self):
        found, remarks = shown(spht.FIGURE_8, {logs_of("stamp_genome"): REPLAY})
        self.assertEqual([(row.what, row.system) for row in found if row.ours], [("stamp_genome", "sorting"), ("stamp_genome", "links")])
        links = found[-1]
        self.assertEqual(links.ours[2], "2 G/s (5.00, 4.00 to 8.00)")
        self.assertEqual(links.modelled, {4: "model: 4.00x of one (+0% at 2)"})
        self.assertIn("left for another run", remarks[0])

    def test_shows_the_misses_of_one_of_so_many_replayers(self):
        found, _ = shown(spht.TABLE_2, {logs_of("stamp_genome"): REPLAY})
        row = found[-1]
        self.assertEqual(row.ours, {1: "8.00 % (simulated)", 2: "6.00 % (simulated)"})
        self.assertEqual(row.modelled, {4: "5.00 % (simulated)"})
        self.assertEqual(page.headings(spht.TABLE_2)[-4:], ["here, 2 replayers", "at 4 replayers", "at 8 replayers", "at 16 replayers"])

    def test_says_why_there_are_no_misses(self):
        without = {name: value for name, value in REPLAY.items() if name != "misses"} | {"no_misses": "no valgrind"}
        document = {logs_of("stamp_genome"): without}
        self.assertIn("not measured (no valgrind): links", shown(spht.TABLE_2, document)[1])
        self.assertEqual(len([row for row in shown(spht.FIGURE_8, document)[0] if row.ours]), 2)


class TheCacheSimulation(unittest.TestCase):
    def test_counts_reads_and_writes(self):
        text = "version: 1\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\nfn=x\n1 2 3\ntotals: 900 300 100 1 20 12 0 5 4\n"
        self.assertEqual(replay_runs.simulated_misses(text), {"accesses": 400, "misses": 32, "by": "simulation"})


class SimulatedThreads(unittest.TestCase):
    def test_are_marked_as_a_model_and_stand_beside_the_first_engine(self):
        rate = {"to_first_engine": {"median": 0.5, "low": 0.4, "high": 0.6}, "rate": {"median": 1e6}}
        cells = [{"workload": "tpcc_payments", "threads": threads, "configurations": [
            {"engine": system.engine, "kind": "engine", **rate} for system in spht.SYSTEMS]} for threads in (1, 2)]
        run = spht.PAYMENTS
        words = run.commands([system.engine for system in spht.SYSTEMS])[0][1]
        model = {"runs": [{"system": system, "threads": threads, "transactions_per_s": value * threads, "abort_rate": 0.1, "fallbacks": 1,
                           "committed": 50} for threads in (2, *spht.THREADS) for system, value in (("SPHT-NL", 4e5), ("NV-HTM", 1e5))]}
        measurements = runs.Measurements(argparse.Namespace(quick=False, quiet=True), {
            "runs": {}, "quick": False, "cpus": 2, "bandwidths": None}, only_saved=True)
        measurements.of = lambda arguments, measure=None: {"cells": cells} if arguments == words else (
            model if arguments[0] == "commit_model" else {"failed": "other"})

        class All(Known):
            workloads = {run.workload: {}, "tpcc_standard": {}}
            engines_here = [system.engine for system in spht.SYSTEMS]

            def why_without(self, _system):
                return None

        found, _ = rows.rows_of(spht.FIGURE_5, measurements, All())
        mine = next(row for row in found if row.system == "NV-HTM")
        self.assertEqual(mine.ours[2], "1 M/s (0.50, 0.40 to 0.60)")
        self.assertEqual(mine.modelled, {16: "model, not trustworthy: 1.6 M/s (0.25) (-50% at 2)",
                                         64: "model, not trustworthy: 6.4 M/s (0.25) (-50% at 2)"})
        self.assertEqual(mine.paper, "stops at 8 threads (§4.1.2)")


if __name__ == "__main__":
    unittest.main()
