"""The papers' figures (bench/papers): the scaling model on made-up machines, how rows are made of runs, and what the data must hold.

- On a machine that behaves as the model says, the model finds its costs and predicts it.
- A prediction that is more than a fifth off at two threads is marked.
- A stated number has its source and belongs to a row that exists; a system that is not here is marked, and no number made up for it.
"""

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build"))
sys.path.insert(0, str(ROOT / "bench"))

from driver import subruns  # noqa: E402  (the path must be set first)
from papers import figure, model, page, readings, rows, runs  # noqa: E402
from papers.program import PAPERS  # noqa: E402

TWO_CORES = model.Machine(2, 1e10, 1e10)
VOLATILE = figure.System("volatile", "volatile")
ENGINE = figure.System("engine", "engine", "uffd", 100)


def configuration(kind, rate, ratio, **more):
    return {"engine": kind, "kind": "volatile" if kind == "volatile" else "engine", "tracker": None, "interval_ms": None,
            "rate": {"median": rate}, "to_volatile": {"median": ratio}, **more}


def cell(threads, *configurations):
    return {"workload": "work", "threads": threads, "read_percent": 50, "value_bytes": None, "configurations": list(configurations)}


class Known:
    """A catalogue made by hand."""

    workloads = {"work": {}}
    engines_here = ["volatile", "engine"]

    def why_without(self, system):
        return system.absent or (None if system.engine in self.engines_here else "an engine that this build does not have")


class Said:
    """Measurements made by hand: the same document for each command."""

    def __init__(self, document):
        self.answer = document
        self.document = {"cpus": 2, "bandwidths": {"copy_bytes_per_s": 1e10, "medium_bytes_per_s": 1e10}}

    def of(self, _arguments, _measure=None):
        return self.answer


def made_up_figure(stated=(), systems=(VOLATILE, ENGINE), reading=readings.RATE, **more):
    return figure.Figure("Figure 1", "Made up", "a machine", "everything", stated=stated, reading=reading,
                         runs=(figure.Run("work", systems, mixes=(50,)),), **more)


class TheModelOfTheProgram(unittest.TestCase):
    def test_finds_the_serial_fraction_in_the_speed_up_of_the_second_thread(self):
        for serial in (0.0, 0.1, 0.5, 1.0):
            program = model.Program(1e6, 1e6 * 2 / (1 + serial))
            self.assertAlmostEqual(program.serial_fraction, serial)
            self.assertAlmostEqual(program.speed_up(20), 20 / (1 + 19 * serial))

    def test_takes_a_gain_above_two_for_noise(self):
        self.assertEqual(model.Program(1e6, 2.3e6).speed_up(16), 16)

    def test_expects_no_more_of_many_threads_than_of_two_where_two_are_slower_than_one(self):
        program = model.Program(1e6, 4e5)
        self.assertEqual(program.speed_up(1), 1)
        self.assertAlmostEqual(program.speed_up(2), 0.4)
        self.assertAlmostEqual(program.speed_up(64), 0.4)

    def test_grows_with_every_thread_but_never_beyond_the_reciprocal_of_the_serial_fraction(self):
        program = model.Program(1e6, 1.6e6)
        speeds = [program.speed_up(threads) for threads in range(1, 200)]
        self.assertEqual(speeds, sorted(speeds))
        self.assertLess(speeds[-1], 1 / program.serial_fraction)


class TheModelOfAnEngine(unittest.TestCase):
    def cost(self, **more):
        facts = {"operation_ns": 500.0, "first_write_ns": 1000.0, "pages_1": 2000.0, "operations_1": 180_000.0, "pages_max": 10_000.0,
                 "stop_ns_1": 1e6, "background_ns_per_page": 2000.0, "interval_ns": 1e8}
        return model.EngineCost(**{**facts, **more})

    def measured(self, cost, threads, machine=TWO_CORES):
        """The figures that a machine that follows the model would show."""
        return model.predict(machine, model.Program(2.2e6, 4.1e6), cost, threads)

    def test_finds_the_costs_of_a_machine_that_follows_it(self):
        cost = self.cost()
        one = self.measured(cost, 1)
        running_ns = 1e9 / one.rate * (1 - one.stop_ns / one.epoch_ns)
        background = cost.background_ns_per_page * one.pages / (one.rate * one.epoch_ns / 1e9)
        found = model.cost_of(2.2e6, one.rate, 1000.0, one.epoch_ns, one.pages, one.stop_ns, running_ns + background, 1e8, 10_000)
        self.assertAlmostEqual(found.operation_ns, cost.operation_ns, delta=5)
        self.assertAlmostEqual(found.background_ns_per_page, cost.background_ns_per_page, delta=20)
        two = self.measured(cost, 2)
        error = model.error_at_two(TWO_CORES, model.Program(2.2e6, 4.1e6), found, two.rate)
        self.assertLess(abs(error), 0.02)
        self.assertTrue(model.is_trusted(error))

    def test_counts_pages_as_random_writes_dirty_them(self):
        cost = self.cost(pages_1=5000.0)
        self.assertAlmostEqual(cost.pages(cost.operations_1), 5000)
        self.assertAlmostEqual(cost.pages(2 * cost.operations_1), 7500)
        self.assertLessEqual(cost.pages(1e12), 10_000)
        self.assertEqual(self.cost(pages_1=10_000.0).pages(1), 10_000)

    def test_gives_the_checkpoint_a_core_of_its_own_only_where_there_is_one(self):
        busy = self.cost(background_ns_per_page=20_000.0)
        here = self.measured(busy, 2)
        with_one_to_spare = self.measured(busy, 2, model.Machine(3, 1e10, 1e10))
        self.assertGreater(with_one_to_spare.rate, 1.2 * here.rate)

    def test_stretches_the_epoch_where_the_medium_is_slower_than_the_program(self):
        slow = self.measured(self.cost(), 2, model.Machine(2, 1e10, 2e7))
        self.assertGreater(slow.epoch_ns, 3e8)
        self.assertEqual(slow.limit, "the medium")
        self.assertEqual(self.measured(self.cost(), 2).limit, "the interval")

    def test_never_predicts_more_than_the_cores_do(self):
        machine = model.Machine(4, 1e10, 1e10)
        cost = self.cost()
        self.assertAlmostEqual(self.measured(cost, 40, machine).volatile_rate, self.measured(cost, 4, machine).volatile_rate)
        for threads in (1, 2, 4, 40):
            self.assertLess(self.measured(cost, threads, machine).ratio, 1)

    def test_does_not_charge_first_writes_with_more_than_the_engine_costs(self):
        cost = model.cost_of(1e6, 0.99e6, 9000.0, 1e8, 5000.0, 0.0, 0.0, 1e8, 10_000)
        self.assertGreaterEqual(cost.operation_ns, 1000 * 0.999)
        self.assertLess(cost.first_write_ns, 9000)

    def test_takes_an_engine_without_checkpoints_as_a_cost_of_each_operation(self):
        cost = model.cost_of(1e6, 5e5)
        self.assertFalse(cost.has_checkpoints)
        prediction = model.predict(model.Machine(20, 1e10, 1e10), model.Program(1e6, 2e6), cost, 20)
        self.assertAlmostEqual(prediction.rate, 20 * 5e5)
        self.assertAlmostEqual(prediction.ratio, 0.5)

    def test_is_not_trusted_where_it_is_more_than_a_fifth_off_or_was_not_compared(self):
        self.assertTrue(model.is_trusted(-0.2))
        self.assertFalse(model.is_trusted(0.21))
        self.assertFalse(model.is_trusted(None))

    def test_is_not_trusted_where_other_programs_had_the_core(self):
        self.assertAlmostEqual(model.share_of_a_core(1e6, 250.0), 0.25)
        self.assertEqual(model.share_of_a_core(1e6, None), 1)
        self.assertFalse(model.is_trusted(0.0, 0.25))
        self.assertTrue(model.is_trusted(0.0, 0.95))


class ARow(unittest.TestCase):
    def shown(self, document, **more):
        return rows.rows_of(made_up_figure(**more), Said(document), Known())

    def document(self, rate_at_two):
        engine = {"tracker": "uffd", "interval_ms": 100}
        return {"cells": [cell(1, configuration("volatile", 1e6, 1.0), configuration("engine", 8e5, 0.8, **engine)),
                          cell(2, configuration("volatile", 2e6, 1.0), configuration("engine", rate_at_two, 0.75, **engine))]}

    def test_has_our_figures_at_one_and_two_threads(self):
        found, remarks = self.shown(self.document(1.5e6))
        self.assertEqual([(row.system, row.ours) for row in found],
                         [("volatile", {1: "1 M/s (1.00)", 2: "2 M/s (1.00)"}), ("engine", {1: "800 k/s (0.80)", 2: "1.5 M/s (0.75)"})])
        self.assertEqual(found[1].paper, "no number")
        self.assertEqual(remarks, [])

    def test_has_the_cpu_time_beside_the_rate(self):
        document = self.document(1.5e6)
        for row, cpu_ns in zip(document["cells"][0]["configurations"], (1000.0, 1200.0)):
            row["cpu_ns_per_operation"] = {"median": cpu_ns}
        found, _ = self.shown(document)
        self.assertEqual([row.ours[1] for row in found], ["1 M/s (1.00)", "800 k/s (0.80), CPU 1.20x"])

    def test_shows_how_far_the_model_is_off_at_two_threads(self):
        found, _ = self.shown(self.document(1.5e6), model_threads=(20,), model_cores=20)
        self.assertEqual(found[1].modelled, {20: "model: 16 M/s (0.80) (+7% at 2)"})

    def test_marks_a_model_that_is_too_far_off(self):
        found, _ = self.shown(self.document(1e6), model_threads=(20,), model_cores=20)
        self.assertIn("not trustworthy", found[1].modelled[20])
        self.assertIn("+60% at 2", found[1].modelled[20])

    def test_marks_a_model_of_figures_that_a_busy_machine_has_made(self):
        document = self.document(1.5e6)
        document["cells"][0]["configurations"][0]["cpu_ns_per_operation"] = {"median": 300.0}
        found, _ = self.shown(document, model_threads=(20,), model_cores=20)
        self.assertEqual([row.modelled[20].split(":")[0] for row in found], ["model, not trustworthy"] * 2)
        self.assertIn("machine busy, 30% of a core", found[1].modelled[20])

    def test_has_the_papers_number_beside_it(self):
        stated = (figure.Stated("7x", "engine", "§6", {"system": "engine", "workload": "work", "reads": 50}),
                  figure.Stated("9x", "engine at other reads", "§6", {"system": "engine", "reads": 90}))
        found, _ = self.shown(self.document(1.5e6), stated=stated)
        self.assertEqual([row.paper for row in found], ["no number", "7x (§6)"])

    def test_says_why_a_system_has_none(self):
        systems = (ENGINE, figure.System("later", "later"), figure.System("theirs", absent="not ours"))
        stated = (figure.Stated("71x", "theirs", "§6", {"system": "theirs"}),)
        found, remarks = self.shown(self.document(1.5e6), systems=systems, stated=stated)
        self.assertEqual([(row.system, row.paper, row.note) for row in found],
                         [("engine", "no number", ""), ("theirs", "71x (§6)", "not ours")])
        self.assertEqual(remarks, ["an engine that this build does not have: later", "not ours: theirs"])

    def test_says_that_a_run_failed_and_why(self):
        found, remarks = self.shown({"failed": "no room"}, stated=(figure.Stated("7x", "engine", "§6", {"system": "engine"}),))
        self.assertEqual([(row.system, row.paper, row.note) for row in found], [("engine", "7x (§6)", "not measured")])
        self.assertEqual(remarks, ["not measured (no room): volatile, engine"])

    def test_of_restart_points_placed_badly_is_held_against_the_program_with_its_own_operations(self):
        engine = {"tracker": "uffd", "interval_ms": 100}
        document = {"cells": [cell(1, configuration("volatile", 1e6, 1.0), configuration("engine", 8e5, 0.8, **engine)),
                              {**cell(1, configuration("volatile", 5e5, 1.0), configuration("engine", 1e5, 0.2, **engine)),
                               "operation_size": 1}]}
        one = made_up_figure(reading=readings.PLACEMENT)
        run = figure.Run("work", (VOLATILE, ENGINE), mixes=(50,), operation_sizes=(None, 1), threads=(1,))
        found, _ = rows.rows_of(dataclasses.replace(one, runs=(run,)), Said(document), Known())
        self.assertEqual([(row.what, row.system, row.ours) for row in found],
                         [("work, 50:50", "volatile", {1: "1.00x"}), ("work, 50:50", "engine", {1: "1.25x"}),
                          ("work, 50:50, operations of 1", "volatile", {1: "2.00x"}),
                          ("work, 50:50, operations of 1", "engine", {1: "10.00x"})])
        self.assertIn("--operation-size 0,1", " ".join(run.commands(["volatile", "engine"])[0][1]))

    def test_of_a_group_is_the_geometric_mean_of_those_that_are_there(self):
        found, _ = self.shown(self.document(1.5e6), reading=readings.SLOWDOWN, means=(("Suite", ("work", "other")),), only_means=True)
        self.assertEqual([(row.what, row.system, row.ours) for row in found],
                         [("geometric mean, Suite", "engine", {1: "1.25x of 1", 2: "1.33x of 1"})])
        self.assertAlmostEqual(rows.geometric_mean([2, 8]), 4)


class TheReadings(unittest.TestCase):
    row = {"rate": {"median": 1e6}, "to_volatile": {"median": 0.5},
           "dirty_pages_per_checkpoint": 256, "bytes_written_per_byte_changed": 4.0,
           "stop_ns": {"p50": 1e5, "p99": 2e6, "max": 3e6}, "epoch_ms": 99.6, "disk_bytes": 1 << 20,
           "kill": {"operations_done": 1000, "operations_lost": 13, "restart_to_first_operation_ns": 2e7, "recovery_ns": 5e6}}

    def read(self, reading, threads=2):
        return reading.show(reading.value(self.row, {"threads": threads}))

    def test_show_what_a_run_says(self):
        self.assertEqual(self.read(readings.SLOWDOWN), "2.00x")
        self.assertEqual(self.read(readings.LATENCY), "2 us (2.0x)")
        self.assertEqual(self.read(readings.CHECKPOINT_BYTES), "1 MiB")
        self.assertEqual(self.read(readings.BYTES_SAVED), "-0.75 MiB")
        self.assertEqual(self.read(readings.STOPS), "100 us / 2 ms / 3 ms")
        self.assertEqual(self.read(readings.KILL), "1 k done, 1.3 % lost, restart 20 ms, pool 1 MiB")
        self.assertEqual(self.read(readings.PERIOD), "0.50; 99.6 ms")
        self.assertEqual(self.read(readings.RECOVERY), "5 ms, restart 20 ms")

    def test_have_nothing_where_the_run_has_nothing(self):
        empty = {"rate": None, "to_volatile": None, "kill": None, "stop_ns": None}
        for reading in vars(readings).values():
            if isinstance(reading, readings.Reading):
                self.assertIsNone(reading.value(empty, {"threads": 1}), reading.heading)


class TheData(unittest.TestCase):
    def figures(self):
        return [(paper, one) for paper in PAPERS.values() for one in paper.figures]

    def test_name_every_figure_and_table_that_was_asked_for(self):
        wanted = {"pmthreads": ["Figure 4a", "Figure 4b", *(f"Figure {n}" for n in range(5, 10)), *(f"Table {n}" for n in range(1, 5))],
                  "respct": [f"Figure {n}" for n in range(8, 15)],
                  "pronto": [*(f"Figure 5.{n}" for n in range(6, 12)), "Figure 5.12 a", "Figure 5.12 b"],
                  "nvhooks": ["Figure 4.10", "Figure 4.11"], "nvthreads": ["Figure 3"],
                  "spht": ["Figure 4a", "Figure 4b", "Figure 4c", *(f"Figure {n}" for n in range(5, 9)), "Table 2"]}
        there = {paper.key: {one.number for one in paper.figures} for paper in PAPERS.values()}
        for key, numbers in wanted.items():
            self.assertLessEqual(set(numbers), there[key])

    def test_have_the_source_of_every_stated_number(self):
        for paper, one in self.figures():
            for stated in one.stated:
                self.assertRegex(stated.where, r"^(§|Table )\d", f"{paper.key} {one.number}: {stated.value}")

    def test_put_stated_numbers_only_into_rows_that_exist(self):
        for paper, one in self.figures():
            facts = [run.facts(system, *place) for run in one.runs for place in run.cells() for system in run.systems]
            facts += [{"mean": name, "system": system.name} for name, _ in one.means for run in one.runs for system in run.systems]
            for stated in one.stated:
                self.assertTrue(stated.row is None or any(map(stated.belongs_to, facts)), f"{paper.key} {one.number}: {stated}")

    def test_say_what_differs_or_why_there_is_nothing(self):
        for paper, one in self.figures():
            self.assertTrue(one.differs or one.why_not, f"{paper.key} {one.number}")

    def test_keep_code_with_hooks_in_commands_of_its_own(self):
        hooks = figure.System("hooks", "engine", "hooks", 100)
        commands = figure.Run("work", (VOLATILE, ENGINE, hooks)).commands(["volatile", "engine"])
        self.assertEqual([[system.name for system in systems] for systems, _ in commands], [["volatile", "engine"], ["hooks"]])
        self.assertIn("volatile,engine", commands[1][1])


class AQuickRun(unittest.TestCase):
    def test_has_little_data_and_is_kept_under_the_same_name(self):
        self.assertEqual(subruns.sized(["--size", "8000000", "--no-kill"]), ["--size", "160000", "--no-kill"])
        self.assertEqual(subruns.sized(["--no-kill"]), ["--no-kill"])

    def test_measures_nothing_when_results_are_read_again(self):
        saved = {"runs": {"--workload work": {"cells": []}}, "quick": False}
        measurements = runs.Measurements(argparse.Namespace(quick=False, quiet=True), saved, only_saved=True)
        self.assertEqual(measurements.of(["--workload", "work"]), {"cells": []})
        self.assertIn("failed", measurements.of(["--workload", "other"]))
        self.assertIsNone(measurements.note("bandwidths", lambda: self.fail("measured")))


class AResumedRun(unittest.TestCase):
    def test_measures_what_is_missing_or_failed_once(self):
        measured = []
        measurements = runs.Measurements(argparse.Namespace(quick=False, quiet=True),
                                         {"runs": {"done": {"cells": []}, "failed": {"failed": "no room"}}, "quick": False})
        measurements.measured = lambda arguments: measured.append(arguments) or {"failed": "no room still"}
        for _ in range(2):
            for name in ("done", "failed", "new"):
                measurements.of([name])
        self.assertEqual(measured, [["failed"], ["new"]])


class ThePage(unittest.TestCase):
    def test_has_the_paper_ours_and_the_model_in_a_row(self):
        one = made_up_figure(stated=(figure.Stated("4x", "nothing in a row", "§1"),), model_threads=(20,))
        row = rows.Row("work", "engine", "7x (§6)", {1: "2x", 2: "3x"}, {20: "model: 4x"})
        text = "\n".join(page.markdown_of(one, [row], ["not ours: theirs"], ["stillpoint bench --workload work"]))
        self.assertIn("| work | engine | 7x (§6) | 2x | 3x | model: 4x |", text)
        for part in ("- 4x: nothing in a row (§1)", "Left out, not ours: theirs.", "What differs: everything."):
            self.assertIn(part, text)


class TheProgram(unittest.TestCase):
    def run_program(self, *arguments):
        command = [sys.executable, "-B", ROOT / "bench/run.py", "papers", "--paper", "respct", "--binaries", BUILD / "bin"]
        return subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def test_makes_the_page_of_saved_measurements_without_measuring(self):
        if not os.access(BUILD / "bin" / "stillpoint", os.X_OK):
            self.skipTest("the command was not built")
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "saved.json")
            measurements = {"began": "2026-01-01T00:00:00+00:00", "cpus": 2, "load_before": 0.1, "quick": False, "runs": {}}
            saved.write_text(json.dumps({"format": runs.FORMAT, "format_version": runs.FORMAT_VERSION, "measurements": measurements}))
            done = self.run_program("--from", saved, "--markdown", Path(folder, "page.md"), "--json", Path(folder, "again.json"))
            self.assertEqual(done.returncode, 0, done.stderr)
            text = Path(folder, "page.md").read_text()
            self.assertIn("### Figure 11.", text)
            self.assertIn("left for another run", text)
            self.assertTrue(math.isclose(json.loads(Path(folder, "again.json").read_text())["measurements"]["load_before"], 0.1))

    def test_refuses_files_that_are_not_its_own_and_figures_that_are_not_there(self):
        if not os.access(BUILD / "bin" / "stillpoint", os.X_OK):
            self.skipTest("the command was not built")
        done = self.run_program("--from", __file__)
        self.assertEqual(done.returncode, 64)
        self.assertIn("cannot be read as the JSON file of a run", done.stderr)
        done = self.run_program("--figure", "99", "--check")
        self.assertEqual(done.returncode, 64)
        self.assertIn("it has Figure 8", done.stderr)


if __name__ == "__main__":
    unittest.main()
