#!/usr/bin/env python3
"""The door for peers (bench/peer/stillpoint_peer.h): libraries that are built as a rival would build them, good ones and bad ones.

Invariants:
- The example and a peer in plain C, each built by one compiler command, are rows of the run under their own names, with ratio, latency
  and memory; what a peer does not offer is left out with the reason.
- The glue of systems that Debian packages compiles without a warning, and a kill loses nothing of what it promises.
- A library that is not a peer is refused before anything is measured, by one line that names it, with exit code 64.
- A peer that fails leaves its cell, which says why; the others are measured, the results are written, and the exit code is 70.
- Neither output nor threads of a peer disturb the bench.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STILLPOINT_BUILD", "build")).resolve()
COMMAND = BUILD / "bin" / "stillpoint"
DOOR = ROOT / "bench/peer"
GLUE = {"leveldb": "leveldb/db.h", "tkrzw": "tkrzw_dbm_hash.h", "wiredtiger": "wiredtiger.h"}
IN_C = ROOT / "tests/bench/peers/mapped_table.c"
FAILED = 70


class Peer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="stillpoint-peer-")
        cls.addClassCleanup(cls.place.cleanup)
        cls.folder = Path(cls.place.name)
        cls.mapped = cls.built("mapped.so")

    @classmethod
    def built(cls, name, *options):
        library = cls.folder / name
        subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-fPIC", "-shared", "-pthread",
                        f"-I{DOOR}", *options, IN_C, "-o", library], check=True, timeout=60)
        return library

    def bench(self, *words, fault=""):
        return subprocess.run([COMMAND, "bench", "--quiet", "--smoke", "--threads", "2", "--engine", "volatile", *map(str, words)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                              env={**os.environ, "PEER_FAULT": fault})

    def measured(self, *words, fault="", code=0):
        """{workload: (rows by name, what is left out)}"""
        done = self.bench("--json", "-", *words, fault=fault)
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        return {cell["workload"]: ({row["name"]: row for row in cell["configurations"]}, cell["left_out"])
                for cell in json.loads(done.stdout)["cells"]}


class IsMeasured(Peer):
    def test_the_example_as_its_head_says(self):
        library = self.folder / "libstd_maps.so"
        subprocess.run(["c++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", DOOR / "std_maps.cpp", "-o",
                        library], check=True, timeout=60)
        cells = self.measured("--peer", library, "--workload", "key-value,queue", "--no-kill")
        self.assertIn("queue", cells)
        for workload, (rows, _) in cells.items():
            row = rows["std-maps"]
            self.assertEqual((row["kind"], row["loses"]), ("peer", "everything"), workload)
            for figure in ("rate", "to_volatile", "latency_ns", "memory_bytes", "memory_to_volatile"):
                self.assertTrue(row[figure], f"{workload}: {figure}")

    def test_systems_of_debian_and_they_lose_nothing(self):
        here = [name for name, header in GLUE.items() if (Path("/usr/include") / header).exists()]
        if not here:
            self.skipTest(f"none of {', '.join(GLUE)} is installed")
        libraries = [self.folder / f"lib{name}.so" for name in here]
        for name, library in zip(here, libraries):
            subprocess.run(["c++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", DOOR / f"{name}.cpp", "-o",
                            library, f"-l{name}"], check=True, timeout=120)
        rows, _ = self.measured("--durability", "power", "--peer", ",".join(map(str, libraries)), "--workload", "hash_map")["hash_map"]
        self.assertEqual({name: rows[name]["kill"]["operations_lost"] for name in here}, dict.fromkeys(here, 0))

    def test_one_in_c_beside_another_and_is_killed_without_loss(self):
        second = self.built("second.so", '-DNAME="second"', "-DWITHOUT_QUEUE", "-DWITHOUT_REMOVE")
        cells = self.measured("--peer", f"{self.mapped},{second}", "--workload", "hash_map,ycsb_a,queue,list")
        rows, left_out = cells["queue"]
        self.assertEqual(rows["mapped-table"]["kill"]["operations_lost"], 0)
        self.assertEqual(left_out, ["second: not offered: the peer has no enqueue and dequeue"])
        rows, left_out = cells["hash_map"]
        self.assertEqual(rows["mapped-table"]["kill"]["operations_lost"], 0)
        self.assertGreater(rows["mapped-table"]["bytes_written"], 0)
        self.assertEqual(left_out, ["second: not offered: the peer has no remove"])
        self.assertEqual(cells["ycsb_a"][0]["second"]["kill"]["operations_lost"], 0)
        self.assertEqual([one.split(":")[0] for one in cells["list"][1]][-2:], ["mapped-table", "second"])

    def test_while_it_prints_and_leaks_threads(self):
        for fault in ("prints", "leaks"):
            rows, _ = self.measured("--peer", self.mapped, "--workload", "queue", "--no-kill", fault=fault)["queue"]
            self.assertIn("mapped-table", rows, fault)

    def test_in_the_list(self):
        done = subprocess.run([COMMAND, "bench", "list", "--json", "-", "--peer", self.mapped], stdout=subprocess.PIPE, check=True)
        self.assertIn(("mapped-table", "peer", "here"),
                      [(row["name"], row["kind"], row["state"]) for row in json.loads(done.stdout)["engines"]])


class IsRefused(Peer):
    def refused(self, library, *says, code=64):
        done = self.bench("--peer", library, "--workload", "queue")
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
        for word in says:
            self.assertIn(word, done.stderr)

    def test_a_file_that_is_not_there_or_not_a_library(self):
        self.refused(self.folder / "nowhere.so", "nowhere.so", "no such file")
        text = self.folder / "text.so"
        text.write_text("not a library")
        self.refused(text, "text.so", "cannot be loaded")

    def test_a_library_without_the_symbol(self):
        self.refused(self.built("nothing.so", "-DWITHOUT_SYMBOL"), "nothing.so", "no symbol stillpoint_peer")

    def test_a_library_that_needs_another_one(self):
        self.refused(self.built("needy.so", "-DNEEDS_ANOTHER"), "not_defined_anywhere")

    def test_a_library_that_ends_the_process_when_it_is_loaded(self):
        self.refused(self.built("exits.so", "-DEXITS_WHEN_LOADED=0"), "exits.so", "ended with exit code 0", code=FAILED)
        self.refused(self.built("exits64.so", "-DEXITS_WHEN_LOADED=64"), "exits64.so", "ended with exit code 64", code=FAILED)

    def test_another_version(self):
        self.refused(self.built("newer.so", "-DVERSION=2"), "newer.so", "version 2", "version 1")

    def test_a_name_that_is_taken_or_no_name(self):
        self.refused(self.built("taken.so", '-DNAME="volatile"'), "taken.so", "\"volatile\"", "taken")
        self.refused(self.built("odd.so", '-DNAME="a b"'), "odd.so", "name")
        self.refused(f"{self.mapped},{self.mapped}", "mapped-table", "taken")


class LeavesItsCell(Peer):
    def fails(self, fault, *says, words=()):
        words = words or ["--no-kill"]
        rows, left_out = self.measured("--peer", self.mapped, "--workload", "hash_map", *words, fault=fault, code=FAILED)["hash_map"]
        self.assertEqual(list(rows), ["volatile", "volatile-words"], fault)
        self.assertEqual(len(left_out), 1, fault)
        for word in ("mapped-table: failed: ", *says):
            self.assertIn(word, left_out[0], fault)
            self.assertIn(word, self.said, fault)

    def test_that_cannot_open(self):
        self.fails("open", "open returned -1", "the file of the table cannot be mapped")
        self.fails("", "open returned -2", "values must have 8 bytes", words=["--value-size", "64", "--no-kill"])

    def test_that_returns_an_error_now_and_then(self):
        self.fails("random", "put returned -5", "bad luck")

    def test_that_returns_what_is_no_status(self):
        self.fails("undefined status", "put returned 7", "not a status")

    def test_that_crashes(self):
        self.fails("crash", "signal SIGABRT")

    def test_that_cannot_close(self):
        self.fails("close", "close returned -5")

    def test_that_gives_wrong_values(self):
        self.fails("wrong", "values were missing, torn or of another key")

    def test_that_loses_what_it_promises_to_keep(self):
        self.fails("forgets", "a kill lost ", "none may be lost", words=["--kills", "1"])


if __name__ == "__main__":
    if not os.access("/dev/shm", os.W_OK):
        print("skipped: no /dev/shm that can be written")
        sys.exit(77)
    unittest.main(verbosity=2)
