#!/usr/bin/env python3
"""Runs the fuzzers of a build and prints a table: fuzz.py [--seconds 60] [--build build-fuzz] [NAME...].

Starts from the seeds in fuzz/corpus/NAME and from what earlier runs found (build-fuzz/fuzz/NAME). An input that breaks something is
kept in build-fuzz/fuzz and named. Exit code 1: there is one."""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def figure(text, pattern):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(program, seconds):
    name = program.name
    work = program.parents[1] / "fuzz"
    grown = work / name
    grown.mkdir(parents=True, exist_ok=True)
    before = set(work.glob(f"{name}-*"))
    command = [program, f"-max_total_time={seconds}", "-print_final_stats=1", "-timeout=60", "-rss_limit_mb=4096",
               "-max_len=2048", f"-artifact_prefix={work}/{name}-"]
    words = ROOT / "fuzz" / f"{name}.dict"
    if words.exists():
        command.append(f"-dict={words}")
    # Leaks are the unit tests' concern; looking for them takes ptrace, which not every container grants.
    environment = {"ASAN_OPTIONS": "detect_leaks=0", **os.environ}
    done = subprocess.run([*command, grown, ROOT / "fuzz/corpus" / name], env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False, timeout=600 + 4 * seconds)
    broken = sorted(set(work.glob(f"{name}-*")) - before)
    row = (name, figure(done.stderr, r"number_of_executed_units: (\d+)"), figure(done.stderr, r"cov: (\d+)"),
           figure(done.stderr, r"new_units_added: (\d+)"), len(broken))
    return row, done, broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("FUZZ_SECONDS", "60")))
    parser.add_argument("--build", type=Path, default=ROOT / "build-fuzz")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or sorted(source.stem for source in (ROOT / "fuzz").glob("*_fuzz.cpp"))
    programs = [arguments.build / "bin" / name for name in names]
    print(f"{'fuzzer':20} {'executions':>11} {'coverage':>9} {'new inputs':>11} {'crashes':>8}", flush=True)
    failed = False
    with ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
        for row, done, broken in pool.map(lambda program: run(program, arguments.seconds), programs):
            print("{:20} {:11} {:9} {:11} {:8}".format(*row), flush=True)
            if done.returncode != 0:
                failed = True
                print(done.stderr[-4000:])
                for path in broken:
                    print(f"fails with {path}: {path.read_bytes()[:64].hex()}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
