#!/usr/bin/env python3
"""Cost of intercepted locks, with a pool open or with --no-pool, against libc's own functions in the same process.

Runs bench_locks: slices of both alternate, and a ratio is the median over the pairs of slices. "ratio of bests" compares
the fastest slice of each. Columns are nanoseconds for one lock and one unlock.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBERS = ("plain_ns", "intercepted_ns", "median_ratio", "ratio_of_bests", "quartile_low", "quartile_high")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="accepted like everywhere; the number of slices is fixed")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    parser.add_argument("--binaries", default=ROOT / "build/bin", type=pathlib.Path,
                        help="folder of the programs (default build/bin)")
    parser.add_argument("--no-pool", action="store_true", help="open no pool: the cost of being linked with libstillpoint")
    arguments = parser.parse_args()
    program = arguments.binaries / "bench_locks"
    if not program.exists():
        sys.exit(f"locks: {program} is missing: build first (make)")
    outcome = subprocess.run([program] + ["--no-pool"] * arguments.no_pool, stdout=subprocess.PIPE, text=True, check=False)
    if not arguments.json:
        print(outcome.stdout, end="")
        return outcome.returncode
    rows = {}
    for line in outcome.stdout.splitlines():
        found = re.match(r"(.*?)\s{2,}([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+) to ([\d.]+)$", line)
        if found:
            rows[found[1].strip()] = dict(zip(NUMBERS, map(float, found.groups()[1:])))
    print(json.dumps({"benchmark": "locks", "pool": not arguments.no_pool, "rows": rows}))
    return outcome.returncode


if __name__ == "__main__":
    sys.exit(main())
