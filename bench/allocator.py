#!/usr/bin/env python3
"""The durable heap against glibc malloc, on the patterns of glibc's own benchmarks; then the pages that frees dirty.

"heap" is the allocator alone, "+FASE" adds the FASE that sp_malloc and sp_free begin and end. Ratios are of the time of one
allocate-free pair, each taken between neighbouring slices; the median of the rounds is printed.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CELLS = 44  # rows of heap_bench's table
CONTENDERS = 3
ROUNDS = 5


def rows(text):
    """heap_bench's table as dictionaries; the columns are at the end of each line, the workload's name has blanks."""
    names = ("threads", "glibc_cpu_ns", "heap_cpu_ns", "heap_ratio", "fase_ratio", "fase_elapsed_ratio")
    for line in text.split("\n\n", maxsplit=1)[0].splitlines()[2:]:
        name, *figures = line.rsplit(maxsplit=len(names))
        yield {"name": name.strip(), **dict(zip(names, map(float, figures)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=66, help="measured time (default 66: slices of 100 ms)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build" / "bin", help="folder of the programs")
    arguments = parser.parse_args()
    slice_ms = max(20, round(arguments.seconds * 1000 / (CELLS * CONTENDERS * ROUNDS)))
    command = [arguments.binaries / "heap_bench", str(ROUNDS), str(slice_ms)]
    if not command[0].is_file():
        print(f"{command[0]} is missing: build first (make)", file=sys.stderr)
        return 1
    if not arguments.json:
        subprocess.run(command, check=True)
        print(flush=True)
        subprocess.run([arguments.binaries / "heap_pages"], check=True)
        return 0
    for row in rows(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout):
        print(json.dumps({"benchmark": "allocator", **row}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
