#!/usr/bin/env python3
"""Kills a program that reads into durable memory, and counts pages that are not what was read.

For each way (tests/io/io_ways.cpp) and tracker: a pool, and so many kills. After each the program verifies, in every epoch,
that each chunk holds what the file has at the noted place. With --calls it makes so many calls, takes a checkpoint and is killed.

Exit code 0: none. 1: some. 2: could not run.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "scripts"), str(Path(__file__).resolve().parents[1])]

from pool_tool import ROOT, Tool  # noqa: E402  (the path must be set first)
from support import engines  # noqa: E402

FILE_BYTES = 16 << 20


class Finding(Exception):
    """Pages are stale, or a call failed."""


class Reader:
    """One way with one tracker (or engine) on one medium."""

    def __init__(self, tool, folder, way, tracker, options):
        self.tool, self.folder, self.way, self.options = tool, folder, way, options
        self.pool = folder / "io.pool"
        self.file = folder / "io.bytes"
        if not self.file.exists():
            self.file.write_bytes(random.Random(5).randbytes(FILE_BYTES))
        words = {"pool_size_mb": 64, "pool_max_mb": 256, "interval_ms": options.interval_ms, "durability": "process"}
        is_engine = tracker in (engine.name for engine in engines.listed_by(tool.command))
        words.update({"engine": tracker} if is_engine else {"tracker": tracker})
        self.words = words

    def run(self, way, *arguments):
        return subprocess.Popen(self.tool.run_words(self.pool, self.words, "io_program", [way, self.file, *arguments]),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def verify(self):
        done = self.run("verify")
        output, _ = done.communicate(timeout=120)
        if done.returncode == 3:
            raise Finding(output.strip())
        if done.returncode != 0:
            raise RuntimeError(f"the verifying run ended with {done.returncode}: {output.strip()}")
        return output.strip()

    def kill_once(self, dice):
        process = self.run(self.way, "--threads", str(self.options.threads), "--megabytes", str(self.options.megabytes))
        first = process.stdout.readline()
        time.sleep(dice.uniform(0.02, self.options.longest_ms / 1000))
        if process.poll() is None:
            process.kill()
        rest = process.stdout.read()
        process.wait()
        if process.returncode == 5:
            raise Finding((first + rest).strip())
        if process.returncode == 3:
            raise Finding(first.strip())
        if process.returncode != -9:
            raise RuntimeError(f"{self.way}: exit code {process.returncode}: {(first + rest).strip()}")

    def kills(self):
        """Returns what was found, or ""."""
        dice = random.Random(self.options.seed)
        self.pool.unlink(missing_ok=True)
        told = ""
        try:
            for _ in range(self.options.kills):
                self.kill_once(dice)
                told = self.verify()
        except Finding as finding:
            if self.options.keep:
                shutil.copy(self.pool, self.options.keep)
            return str(finding), told
        return "", told

    def calls(self):
        """So many calls, a checkpoint, and a kill."""
        self.pool.unlink(missing_ok=True)
        process = self.run(self.way, "--threads", str(self.options.threads), "--megabytes", str(self.options.megabytes), "--calls",
                           str(self.options.calls), "--then-kill", "1")
        output, _ = process.communicate(timeout=600)
        if process.returncode != -9:
            return output.strip() or f"exit code {process.returncode}", ""
        try:
            return "", self.verify()
        except Finding as finding:
            return str(finding), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", default="pread-direct")
    parser.add_argument("--trackers", default="uffd,mprotect", help="trackers of the first engine, or other engines")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--calls", type=int, default=0, help="instead of kills: so many calls in each thread")
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=8, help="of each thread's chunks")
    parser.add_argument("--interval-ms", type=int, default=5)
    parser.add_argument("--longest-ms", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="", help="where a pool that fails is copied to")
    parser.add_argument("--binaries", default=None)
    parser.add_argument("--folder", default=str(ROOT / "build"))
    options = parser.parse_args()
    failures = 0
    folder = Path(tempfile.mkdtemp(prefix="io-", dir=options.folder))
    try:
        for way in options.ways.split(","):
            for tracker in options.trackers.split(","):
                reader = Reader(Tool(options.binaries), folder, way, tracker, options)
                found, told = reader.calls() if options.calls else reader.kills()
                failures += 1 if found else 0
                print(f"{way:20} {tracker:10} {'FAILED: ' + found if found else 'whole: ' + told}", flush=True)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as failure:
        print(f"io_kills: {failure}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
