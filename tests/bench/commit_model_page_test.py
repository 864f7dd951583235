#!/usr/bin/env python3
"""The benchmark commit_model and the program of that name, with few transactions. What the model computes: commit_model_test.cpp.

Invariants:
- A quick run has every system at every number of threads, on each workload and machine, and a page with each of them.
- A run that is shown again gives the same page; the page that the documents have names the same systems.
- Wrong words end the program with a sentence that says what it knows.
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
PROGRAM = BUILD / "bin" / "commit_model"
sys.path.insert(0, str(ROOT / "bench"))

from model import page, program  # noqa: E402  (the path must be set first)
from model.claims import CLAIMS, Runs  # noqa: E402

SYSTEMS = ["SPHT-NL", "SPHT-FL", "SPHT-BL", "NV-HTM", "DudeTM", "Crafty", "cc-HTM", "PSTM"]


def run(*words):
    command = [str(word) for word in words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120)


class Benchmark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            saved, document = Path(folder) / "run.json", Path(folder) / "page.md"
            command = [sys.executable, "-B", ROOT / "bench" / "run.py", "commit_model", "--quiet", "--binaries", BUILD / "bin"]
            cls.first = run(*command, "--quick", "--json", saved, "--markdown", document, "--no-plots")
            cls.text = document.read_text(encoding="utf-8") if document.is_file() else ""
            cls.again = run(*command, "--from", saved)
            cls.document = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else {}

    def test_every_system_runs_everywhere(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        self.assertEqual(len(self.document["models"]), len(program.MACHINES) * len(program.WORKLOADS))
        for model in self.document["models"]:
            runs = Runs(model)
            self.assertEqual(runs.systems, SYSTEMS)
            self.assertEqual(runs.threads, list(program.THREADS))
            for one in model["runs"]:
                self.assertGreater(one["transactions_per_s"], 0)
                self.assertAlmostEqual(sum(one["shares"].values()), 1, places=4)

    def test_the_page_has_all_of_it_and_can_be_made_again(self):
        self.assertEqual(self.again.stdout.strip().partition("\n")[0], self.text.strip().partition("\n")[0])
        for claim in CLAIMS:
            self.assertIn(claim.text, self.text)
        for plot in page.plots_of(self.document):
            self.assertEqual(plot.names, SYSTEMS)
            self.assertIn(f"{plot.key}.svg", self.text)
            self.assertTrue((ROOT / "docs/measured/tables/figures" / f"commit-model-plot-{plot.key}.svg").is_file())

    def test_sequential_markers_stop_before_spht_does(self):
        for model in self.document["models"]:
            if model["machine"] == page.PAPER_MACHINE:
                runs = Runs(model)
                self.assertGreater(runs.rate("SPHT-NL", 64), runs.rate("NV-HTM", 64), model["workload"])


class Words(unittest.TestCase):
    def test_help_has_examples(self):
        self.assertIn("examples:", run(PROGRAM, "--help").stdout)

    def test_wrong_names_are_refused(self):
        for words, says in ((("--system", "SPHT"), "SPHT-NL"), (("--machine", "abacus"), "cannot be read"),
                            (("--set", "flush=1"), "machine.inc"), (("--validate", ROOT / "README.md"), "not JSON")):
            done = run(PROGRAM, *words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(says, done.stderr)

    def test_table_1_of_the_paper_is_shown(self):
        rows = {line.split()[0]: line.split()[1:] for line in run(PROGRAM, "--limits").stdout.splitlines()[2:]}
        self.assertEqual(rows["SPHT-NL"], ["no"] * 4)
        self.assertEqual(rows["Crafty"], ["yes", "yes", "yes", "no"])
        self.assertEqual(rows["DudeTM"], ["yes", "no", "no", "yes"])


if __name__ == "__main__":
    unittest.main()
