#!/usr/bin/env python3
"""The benchmark memcached with few keys and short slices, and its client: against the servers that are built, or Debian's memcached.

Invariants:
- Each part gives a figure for each server, the result is complete, and a document can be made of it.
- The client refuses wrong replies and keys that are missing, and gives its result when it is interrupted.
- A rate that the server cannot do is said, not waited for.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STILLPOINT_BUILD", "build")).resolve()
SERVERS = BUILD / "integrations/memcached"
CLIENT = BUILD / "bin/memcached_load_generator"
sys.path.insert(0, str(ROOT / "bench"))

from memcached import document, servers  # its folder is known from here on


def bench(*words):
    programs = ["--binaries", BUILD / "bin", "--stock", SERVERS / "stock/memcached", "--durable", SERVERS / "durable/memcached-durable",
                "--hooks", SERVERS / "hooks/memcached-durable"]
    done = subprocess.run([sys.executable, "-B", ROOT / "bench/run.py", "memcached", "--quick", "--quiet", *programs, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=100)
    if done.returncode != 0:
        raise AssertionError(f"memcached {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


class EachPart(unittest.TestCase):
    def test_gives_figures_for_each_server(self):
        result = json.loads(bench("--mix", "50", "--rounds", "1", "--slice", "0.1", "--interval", "20", "--json", "-"))
        self.assertTrue(result["complete"])
        names = [row["name"] for row in result["servers"]]
        for cell in result["cells"]:
            self.assertEqual(cell["configurations"][0]["name"], "stock", cell["title"])
            for row in cell["configurations"]:
                self.assertGreater(row["rate"]["median"], 0, f"{cell['title']}: {row['name']}")
                if cell["part"].startswith("latency"):
                    self.assertLessEqual(row["latency_ns"]["p50"], row["latency_ns"]["p99"])
                if row["kind"] == "engine" and cell["part"] != "memaslap":
                    self.assertGreater(row["bytes_written"], 0, f"{cell['title']}: {row['name']}")
        self.assertEqual({row["name"] for row in result["memory"]}, set(names))
        if "durable" in names:
            self.assertEqual({cell["part"] for cell in result["cells"]} - {"memaslap"},
                             {"throughput", "pipelined", "latency", "intervals", "throughput-power", "latency-power"})
            self.assertTrue(any(bar["reached"] for bar in result["bars"]) or result["options"]["mix"] == [50])
        text = document.text_of(result, "memcached")
        self.assertIn("A quick run", text)
        self.assertIn("| stock |", text)


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        program = servers.stock_program(SERVERS / "stock/memcached")
        cls.server = servers.Server(servers.Kind("stock", program), Path(cls.folder.name), None)

    @classmethod
    def tearDownClass(cls):
        cls.server.end()
        cls.folder.cleanup()

    def client(self, *words, keys=5000):
        return subprocess.run([CLIENT, f"port={self.server.port}", f"keys={keys}", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=30)

    def test_loads_and_finds_every_key_in_both_protocols(self):
        for protocol in ("text", "meta"):
            for mode in ("load", "check"):
                done = self.client(f"mode={mode}", f"protocol={protocol}", "pipeline=4")
                self.assertEqual((done.returncode, json.loads(done.stdout)["operations"]), (0, 5000), done.stderr)

    def test_ends_when_a_key_is_missing_and_counts_it_where_that_is_allowed(self):
        self.client("mode=load")
        self.assertEqual(self.client("mode=check", keys=5100).returncode, 70)
        allowed = self.client("mode=check", "allow_misses=1", keys=5100)
        self.assertEqual(json.loads(allowed.stdout)["misses"], 100)

    def test_ends_at_a_value_of_another_length(self):
        self.client("mode=load")
        done = self.client("mode=check", "value_bytes=99")
        self.assertEqual(done.returncode, 70)
        self.assertIn("a wrong reply", done.stderr)

    def test_says_that_a_rate_is_more_than_the_server_does(self):
        self.client("mode=load")
        done = self.client("mode=open", "rate=50000000", "seconds=0.2", "warm_up=0", "drain=0.2")
        self.assertEqual(done.returncode, 69)
        self.assertTrue(json.loads(done.stdout)["behind"])

    def test_gives_what_there_was_when_it_is_interrupted(self):
        self.client("mode=load")
        words = [CLIENT, f"port={self.server.port}", "keys=5000", "seconds=60", "warm_up=0"]
        running = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=10)
        self.assertEqual(running.returncode, 130)
        self.assertTrue(json.loads(out)["interrupted"])

    def test_says_where_no_server_answers(self):
        done = subprocess.run([CLIENT, f"port={servers.free_port()}"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 70)
        self.assertIn("no memcached answers", done.stderr)


if __name__ == "__main__":
    if not os.access("/dev/shm", os.W_OK):
        print("skipped: no /dev/shm that can be written")
        sys.exit(77)
    if not (SERVERS / "stock/memcached").is_file() and not shutil.which("memcached"):
        print("skipped: memcached is neither built nor installed (apt-get install memcached)")
        sys.exit(77)
    unittest.main(verbosity=2)
