#!/usr/bin/env python3
"""The syntax of `stillpoint bench --bar`, and where a bar holds. No measurement.

Invariants:
- A bar with a mix is held against the cells of that mix only; without one, against all.
- A bar that no cell has is not met.
- What an engine is run with (its options, its usual interval) is in the worker's command line.
- A program that the build knows is made when it is asked for.
"""

import contextlib
import io
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))

from driver import bars, build, command_line, engines, plan  # noqa: E402


def cell(mix, ratio, recovery_ns=None):
    rows = [{"name": "volatile", "engine": "volatile", "kind": "volatile", "to_volatile": {"median": 1.0}},
            {"name": "respct", "engine": "respct", "kind": "engine", "to_volatile": {"median": ratio},
             "kill": recovery_ns and {"recovery_ns": recovery_ns}}]
    return {"title": f"hash_map, {mix}", "workload": "hash_map", "mix": mix, "configurations": rows}


def met(text, *cells):
    return bars.judge([bars.parse_bar(text)], cells)[0]["met"]


class ABar(unittest.TestCase):
    def test_with_a_mix_is_of_its_cells_only(self):
        cells = cell("90:10", 0.96), cell("10:90", 0.92)
        self.assertTrue(met("hash_map 90:10: respct/volatile>=0.95", *cells))
        self.assertTrue(met("hash_map 10:90: respct/volatile>=0.91", *cells))
        self.assertFalse(met("hash_map 10:90: respct/volatile>=0.95", *cells))
        self.assertFalse(met("hash_map: respct/volatile>=0.95", *cells))

    def test_of_the_baseline_is_the_median_of_the_rounds_ratios(self):
        for baseline in ("volatile", "stock"):
            measured = cell("90:10", 0.96)
            measured["configurations"][0].update(name=baseline, rate={"median": 100})
            measured["configurations"][1].update(rate={"median": 90})
            self.assertTrue(met(f"respct/{baseline}>=0.95", measured))

    def test_that_no_cell_has_is_not_met(self):
        self.assertFalse(met("hash_map 50:50: respct/volatile>=0.1", cell("90:10", 0.96)))
        self.assertFalse(met("hash_map: respct.recovery_alone<=240ms", cell("90:10", 0.96)))

    def test_can_ask_for_the_engines_own_recovery(self):
        self.assertTrue(met("hash_map: respct.recovery_alone<=240ms", cell("10:90", 0.9, 239e6)))
        self.assertFalse(met("hash_map: respct.recovery_alone<=240ms", cell("10:90", 0.9, 241e6)))

    def test_can_ask_for_the_best_volatile_and_the_best_peer(self):
        measured = cell("90:10", 0.9)
        measured["configurations"][1].update(to_best_volatile={"median": 0.7}, to_best_peer={"median": 1.2, "peer": "pmemobj"})
        self.assertTrue(met("hash_map 90:10: respct.best_volatile>=0.70", measured))
        self.assertFalse(met("hash_map 90:10: respct.best_volatile>=0.71", measured))
        self.assertTrue(met("respct.best_peer>=1", measured))


class AnEngine(unittest.TestCase):
    class Here(engines.Installation):
        def __init__(self):
            super().__init__("/bin", "/bin/stillpoint")

        def worker(self, engine, name=None):
            return Path("/bin") / (name or engine.worker)

        def product(self):
            return {"pmthreads": (100, "locks", ("uffd", "hooks")), "respct": (64, "restart-points", ()), "wholecopy": (100, "locks", ())}

    def words(self, *options):
        parsed = command_line.parse(["--pool", "/dev/shm", *options])
        configurations, _ = plan.configurations_of(parsed, self.Here())
        return {one.name: " ".join(self.Here().words(one, "queue", {}, "pool")[0]) for one in configurations}

    def test_has_an_interval_of_its_own(self):
        found = self.words("--engine", "pmthreads,respct")
        self.assertIn("--interval-ms 100 ", found["pmthreads"])
        self.assertIn("--engine respct ", found["respct"])
        self.assertIn("--interval-ms 64 ", found["respct"])

    def test_that_only_the_product_lists_runs_the_programs_under_locks(self):
        words = self.words("--engine", "wholecopy")["wholecopy"]
        self.assertIn("--engine wholecopy ", words)
        self.assertIn("--interval-ms 100 -- /bin/bench_worker_pmthreads ", words)

    def test_takes_every_interval_that_is_asked_for(self):
        self.assertEqual(set(self.words("--engine", "respct", "--interval", "4,64")),
                         {"volatile", "volatile-words", "respct 4 ms", "respct 64 ms"})

    def test_may_be_another_one_with_options(self):
        found = self.words("--engine", "respct-stop,respct-noflush,respct-tracking", "--durability", "power")
        for name, option in (("respct-stop", "--respct-flush stop"), ("respct-noflush", "--durability process"),
                             ("respct-tracking", "--interval-ms 3600000")):
            self.assertIn("--engine respct ", found[name])
            self.assertIn(option, found[name])


class AMeasuredProgram(unittest.TestCase):
    def test_is_built_when_it_is_asked_for(self):
        if not shutil.which("ninja"):
            self.skipTest("no ninja")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "build.ninja").write_text("rule make\n  command = echo > $out && echo > bin/too\nbuild bin/worker | bin/too: make\n")
            program, unknown = Path(folder) / "bin/worker", Path(folder) / "bin/unknown"
            self.assertTrue(build.can_be_made(program))
            self.assertFalse(build.can_be_made(unknown))
            with contextlib.redirect_stderr(io.StringIO()) as said:
                build.make_sure_of([program, unknown])
            self.assertEqual((program.is_file(), unknown.is_file()), (True, False))
            self.assertIn("building worker", said.getvalue())


if __name__ == "__main__":
    unittest.main()
