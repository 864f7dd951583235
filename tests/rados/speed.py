#!/usr/bin/env python3
"""One program on a file, in Ceph, and on a file with a replica in Ceph (async and sync), in turn: operations a second, and how
long a checkpoint takes to be durable.

    CEPH_CONF=… python3 tests/rados/speed.py --build build --ceph-pool stillpoint --slices 6 --seconds 4 btree threads=2 reads=50

The words after the options are those of `bench_worker_ENGINE`: a workload and its settings. Each program stands still while the other one
works.
"""

import argparse
import json
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path


class Side:
    def __init__(self, options, name, pool, *more):
        self.name, self.pool, self.tool = name, str(pool), str(options.build / "bin" / "stillpoint")
        worker = str(options.build / "bin" / f"bench_worker_{options.engine}")
        words = [self.tool, "run", "--quiet", "--pool", self.pool, "--engine", options.engine, "--interval", options.interval,
                 "--medium", "file", *more, "--", worker, *options.workload]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.read()
        self.rates = []

    def read(self):
        answer = json.loads(self.process.stdout.readline())
        if answer.get("fault"):
            raise SystemExit(f"{self.name}: {answer['fault']}")
        return answer

    def slice(self, seconds):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"slice {int(seconds * 1e9)}\n")
        self.process.stdin.flush()
        answer = self.read()
        self.rates.append(answer["operations"] / answer["wall_ns"] * 1e9)
        self.process.send_signal(signal.SIGSTOP)

    def figures(self):
        self.process.send_signal(signal.SIGCONT)
        done = subprocess.run([self.tool, "stats", "--json", self.pool], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait(60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--engine", required=True)
    parser.add_argument("--ceph-pool", default="stillpoint")
    parser.add_argument("--interval", default="500ms")
    parser.add_argument("--slices", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("workload", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.build) as folder:
        sides = [Side(options, "file", f"{folder}/speed.pool")]
        sides[0].process.send_signal(signal.SIGSTOP)
        there = f"rados://{options.ceph_pool}/speed.{int(time.time())}"
        for name, pool, *more in (("ceph", there),
                                  ("async", f"{folder}/async.pool", "--replica", f"{there}.async", "--replicate", "async"),
                                  ("sync", f"{folder}/sync.pool", "--replica", f"{there}.sync", "--replicate", "sync")):
            sides.append(Side(options, name, pool, *more))
            sides[-1].process.send_signal(signal.SIGSTOP)
        for _ in range(options.slices):
            for side in sides:
                side.slice(options.seconds)
        for side in sides:
            rate = statistics.median(side.rates)
            figures = side.figures()
            print(f"{side.name}: {rate:,.0f} operations a second, {rate / statistics.median(sides[0].rates):.2f} of the file's")
            print(json.dumps({name: value for name, value in figures.items() if value and any(
                word in name for word in ("checkpoint", "replica", "bytes_written", "write", "pages", "sync"))}))
            side.end()


if __name__ == "__main__":
    main()
