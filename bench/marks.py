#!/usr/bin/env python3
"""What the mark behind a store costs, and what a look over the marks costs, for cards of 64 bytes, 512 bytes and 4 KiB.

The upper table: nanoseconds of a store without a mark, and the ratio with one. "set": the card is marked already; "clear": nothing
is marked yet. The lower: microseconds of one look over 1 GiB, with one page in a hundred written, and with none.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUND_S = 1.0  # about


def rows(text):
    """bench_marks' two tables as dictionaries: the figures are at the end of each line."""
    upper, lower = text.split("\n\n")
    for line in upper.splitlines()[1:]:
        name, cards, *figures = line.rsplit(maxsplit=5)
        yield {"stores": name.strip(), "cards": cards,
               **dict(zip(("plain_ns", "ratio_64", "ratio_512", "ratio_4096"), map(float, figures)))}
    for line in lower.splitlines()[1:]:
        name, written, clean = line.rsplit(maxsplit=2)
        yield {"look": name.strip(), "one_percent_us": float(written), "clean_us": float(clean)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15, help="about (default 15)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build" / "bin", help="folder of the programs")
    arguments = parser.parse_args()
    command = [arguments.binaries / "bench_marks", "--rounds", str(max(3, round(arguments.seconds / ROUND_S))), "--stores", "1000000"]
    if not command[0].is_file():
        print(f"{command[0]} is missing: build first (make)", file=sys.stderr)
        return 1
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    if not arguments.json:
        print(done.stdout, end="")
        return 0
    for row in rows(done.stdout):
        print(json.dumps({"benchmark": "marks", **row}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
