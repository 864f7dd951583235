#!/usr/bin/env python3
"""The answers of `stillpoint bench` to wrong input, to an interruption, and with its exit code."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from driver.build import can_be_made  # noqa: E402  (bench/ has no package)
from driver.engines import Installation  # noqa: E402

BUILD = Path(os.environ.get("STILLPOINT_BUILD", "build")).resolve()
COMMAND = BUILD / "bin" / "stillpoint"


def bench(*words, cwd=None):
    return subprocess.run([COMMAND, "bench", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=120, cwd=cwd)


class Holds(unittest.TestCase):
    @unittest.skipUnless(can_be_made(BUILD / "bin/bench_worker_volatile_clang"), "no Clang with the compiler plugin")
    def test_every_engine_beside_one_that_is_only_for_programs_with_hooks(self):
        for engine in Installation(BUILD / "bin", COMMAND).engines:
            if engine.kind == "engine" and engine.is_run:
                name = engine.worker if engine.needs_hooks else f"{engine.worker}_clang"
                self.assertTrue(can_be_made(BUILD / "bin" / name), f"{engine.name}: {name}")


class Refuses(unittest.TestCase):
    def refused(self, code, *words, says=()):
        done = bench(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = done.stderr.strip().split("\n")
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("stillpoint: error: "), lines[0])
        for word in says:
            self.assertIn(word, lines[0])

    def test_an_unknown_workload_and_lists_the_known_ones(self):
        self.refused(64, "--workload", "hashmap", says=["hashmap", "hash_map", "btree", "key-value", "all"])

    def test_an_unknown_engine_and_lists_the_known_ones(self):
        self.refused(64, "--engine", "pmthread", says=["pmthreads", "volatile", "lmdb", "sqlite"])

    def test_words_that_are_no_value_of_an_option(self):
        self.refused(64, "--tracker", "magic", says=["magic", "uffd", "mprotect", "hooks"])
        self.refused(64, "--durability", "none", says=["process", "power"])
        self.refused(64, "--mix", "90:20", says=["90:20", "90:10"])
        self.refused(64, "--mix", "half", says=["half"])
        self.refused(64, "--threads", "0", says=["0", "64"])
        self.refused(64, "--threads", "2,many", says=["many"])
        self.refused(64, "--value-size", "4", says=["8192"])
        self.refused(64, "--interval", "", says=["names nothing"])
        self.refused(64, "--seconds", "soon", says=["soon"])
        self.refused(64, "--nonsense", says=["--nonsense", "--help"])
        self.refused(64, "extra", says=["extra"])

    def test_a_bar_that_cannot_be_read(self):
        self.refused(64, "--bar", "pmthreads>0.8", says=["pmthreads>0.8", "ENGINE/ENGINE>=RATIO"])
        self.refused(64, "--bar", "pmthreads.happiness<=1", says=["happiness", "stop_p99"])

    def test_a_medium_that_the_folder_is_not(self):
        with tempfile.TemporaryDirectory(dir=BUILD) as disk:
            self.refused(69, "--medium", "memory", "--pool", disk, says=[disk, "--medium file"])
            self.refused(69, "--medium", "dax", "--pool", disk, says=[disk, "-o dax", "doctor"])
        self.refused(69, "--medium", "file", "--pool", "/dev/shm", says=["/dev/shm", "--medium memory"])

    def test_a_folder_that_is_not_there_before_it_measures(self):
        self.refused(73, "--pool", "/nowhere/at/all", says=["/nowhere/at/all"])
        self.refused(73, "--json", "/nowhere/run.json", says=["/nowhere"])

    def test_a_report_of_what_is_no_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.json"
            path.write_text("{\"format\": \"else\"}")
            self.refused(64, "report", str(path), "--html", folder, says=["run.json"])
            path.write_text("not JSON")
            self.refused(64, "report", str(path), "--html", folder, says=["run.json"])
        self.refused(64, "report", says=["JSON file", "--html"])


@unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no /dev/shm that can be written")
class Ends(unittest.TestCase):
    SMALL = ["--smoke", "--quiet", "--workload", "queue", "--engine", "pmthreads", "--kills", "0"]

    def test_with_success_where_every_bar_is_met(self):
        done = bench(*self.SMALL, "--bar", "pmthreads/volatile>=0.0001", "--bar", "queue:pmthreads.latency_p50<=10s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("met "), 2)

    def test_with_1_where_a_bar_fell_short_or_measures_nothing(self):
        done = bench(*self.SMALL, "--bar", "pmthreads/volatile>=1000")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FELL SHORT  pmthreads/volatile>=1000", done.stdout)
        done = bench(*self.SMALL, "--bar", "btree: pmthreads/volatile>=0.0001")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no cell of this run has it", done.stdout)

    def test_with_the_list_as_json(self):
        listed = json.loads(bench("list", "--json", "-").stdout)
        self.assertIn("hash_map", [row["name"] for row in listed["workloads"]])
        states = {row["name"]: row["state"] for row in listed["engines"]}
        self.assertEqual([states["volatile"], states["pmthreads"]], ["here", "here"])

    def test_with_a_record_of_how_the_run_was_made(self):
        document = json.loads(bench(*self.SMALL, "--json", "-").stdout)
        self.assertTrue(document["complete"])
        self.assertEqual(document["format"], "stillpoint-bench")
        for name in ("began", "command", "version", "compiler", "machine", "options"):
            self.assertTrue(document[name], name)
        self.assertGreater(document["machine"]["cpus"], 0)
        self.assertEqual(document["command"].split()[:2], ["stillpoint", "bench"])

    def test_after_an_interruption_with_a_valid_partial_result_and_nothing_left_behind(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            path = Path(folder) / "run.json"
            running = subprocess.Popen([COMMAND, "bench", "--quiet", "--workload", "queue,hash_map", "--engine", "pmthreads", "--threads",
                                        "1", "--seconds", "600", "--kills", "0", "--json", str(path), "--pool", folder],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # ignored beside a shell
            self.addCleanup(running.kill)
            while not list(Path(folder).glob("*/*")):  # the first pool
                self.assertIsNone(running.poll(), "ended before it was interrupted")
                time.sleep(0.1)
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
            self.assertEqual(running.returncode, 130, said)
            self.assertIn("interrupted", said)
            document = json.loads(path.read_text())
            self.assertFalse(document["complete"])
            rows = document["cells"][0]["configurations"] if document["cells"] else []
            self.assertEqual(len({row["rounds"] for row in rows}), 1 if rows else 0)
            self.assertEqual([one.name for one in Path(folder).iterdir()], ["run.json"])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
