#!/usr/bin/env python3
"""Kills a program on Tokyo Cabinet's durable tree (integrations/tokyocabinet/ledger.c) again and again. After each kill a second run of it
looks at every record; with an engine that is durable on return, what the program had acknowledged is there too.

    python3 tests/integrations/tokyocabinet/kills.py --kills 100

Exit code 0: all held; 1: not, and the pool is kept; 77: not built here.
"""

import argparse
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
EXIT_SKIPPED = 77
# Options of `stillpoint run`, and whether a put is durable when it returns.
CASES = {"unlock": (("--engine", "nvthreads", "--threads", "processes", "--acknowledge", "unlock"), True),
         "order": (("--engine", "nvthreads", "--threads", "processes", "--acknowledge", "order"), False),
         "checkpoints": (("--engine", "pmthreads", "--interval-ms", "10"), False)}
THREADS, RECORDS_MAX = 3, 30_000


class Wrong(Exception):
    """A promise that was not kept, in a sentence."""


def words(arguments, pool, case, records):
    return [str(word) for word in (arguments.binaries / "stillpoint", "run", "--quiet", "--pool", pool, *CASES[case][0], "--",
                                   arguments.binaries / "tokyocabinet_ledger", THREADS, records)]


def numbers(text, word):
    """{thread: the last number} of whole lines that begin with the word."""
    found = {}
    for line in text.rpartition("\n")[0].splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[0] == word:
            found[int(parts[1])] = int(parts[2])
    return found


def killed(arguments, pool, case, lives_s):
    """Lines that the program wrote before it was killed."""
    with subprocess.Popen(words(arguments, pool, case, RECORDS_MAX), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            said, errors = program.communicate(timeout=lives_s)
        except subprocess.TimeoutExpired:
            program.kill()
            said, errors = program.communicate()
        if program.returncode not in (0, -9):
            raise Wrong(f"exit code {program.returncode}: {errors}")
    return said


def checked(arguments, pool, case):
    done = subprocess.run(words(arguments, pool, case, 0), capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise Wrong(f"exit code {done.returncode}: {done.stderr}")
    return numbers(done.stdout, "has")


def rounds(arguments, case, kills, generator):
    pool = arguments.folder / f"{case}.pool"
    records = 0
    for _ in range(kills):
        if records > RECORDS_MAX:
            pool.unlink()
        acknowledged = numbers(killed(arguments, pool, case, generator.uniform(0.05, arguments.longest_ms / 1000)), "put")
        there = checked(arguments, pool, case) if pool.exists() else {}
        for thread, number in acknowledged.items() if CASES[case][1] else ():
            if there.get(thread, 0) <= number:
                raise Wrong(f"thread {thread} had put {number}, and {there.get(thread, 0)} are there")
        records = sum(there.values())
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="for each case (default %(default)s)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--longest-ms", type=int, default=600, help="the longest that a run may live (default %(default)s)")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/tokyocabinet-kills", help="for the pools")
    arguments = parser.parse_args()
    if not (arguments.binaries / "tokyocabinet_ledger").is_file():
        print("kills: skipped: tokyocabinet_ledger was not built: apt-get install libtokyocabinet-dev, then build again")
        return EXIT_SKIPPED
    arguments.folder = arguments.folder.resolve() / f"tokyocabinet-{arguments.seed}"
    arguments.folder.mkdir(parents=True)
    failed = 0
    for case in arguments.cases:
        began = time.monotonic()
        try:
            records = rounds(arguments, case, arguments.kills, random.Random(arguments.seed))
            print(f"{case}: {arguments.kills} kills in {time.monotonic() - began:.0f} s, {records} records at the end, nothing is wrong",
                  flush=True)
        except Wrong as wrong:
            failed += 1
            print(f"{case}: {wrong} (seed {arguments.seed}; the pool is {arguments.folder / case}.pool)", flush=True)
    if not failed:
        shutil.rmtree(arguments.folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
