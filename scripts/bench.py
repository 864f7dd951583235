#!/usr/bin/env python3
"""Runs every benchmark and prints their ratios: `make bench`. Use an idle machine; nothing here is a test.

Each benchmark is a program of bench/ that can be run alone, with --help.
"""

import argparse
import subprocess
import sys
import time

from pool_tool import ROOT

BENCHMARKS = [
    ["run.py"],
    ["stop_time.py"],
    ["quiescence.py"],
    ["allocator.py"],
    ["locks.py"],
    ["marks.py"],
    ["nvhooks.py"],
]


def options_for(program, arguments):
    """run.py is `stillpoint bench`, whose --seconds are of each configuration and whose --json names a file."""
    options = ["--binaries", arguments.binaries] if arguments.binaries else []
    if program == "run.py":
        return options + (["--json", "-"] if arguments.json else [])
    return options + ["--seconds", str(arguments.seconds)] + (["--json"] if arguments.json else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15, help="measured time of each benchmark (default 15)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for each benchmark")
    parser.add_argument("--binaries", help="folder of the programs (default build/bin)")
    arguments = parser.parse_args()
    failures = 0
    for number, words in enumerate(BENCHMARKS, start=1):
        if not arguments.json:
            print(f"{number} of {len(BENCHMARKS)}: bench/{' '.join(words)}", flush=True)
        begin = time.monotonic()
        options = options_for(words[0], arguments)
        failed = subprocess.run([sys.executable, str(ROOT / "bench" / words[0]), *words[1:], *options],
                                check=False).returncode != 0
        failures += failed
        if not arguments.json:
            print(f"  {'failed' if failed else 'done'} in {time.monotonic() - begin:.0f} s\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
