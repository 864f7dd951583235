#!/usr/bin/env python3
"""Lays out the project's C and C++ as .clang-format says; with --check only tells which files are not. Exit code 1: some are not, 77: there
is not clang-format 19."""

import argparse
import concurrent.futures
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "clang-format-19"
SKIPPED = 77
SUFFIXES = {".c", ".cpp", ".h", ".hpp"}
FOLDERS = ("bench", "examples", "fuzz", "include", "integrations", "layers", "src", "tests", "tools")
# Lines that tests name by number, and bytes that are data.
LEFT_ALONE = ("tests/nvhooks", "fuzz/corpus")
FILES_AT_A_TIME = 40


def files(root):
    found = (path.relative_to(root) for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)
    return sorted(path for path in found if not path.as_posix().startswith(LEFT_ALONE) and "build" not in path.parts)


def unformatted(program, names):
    done = subprocess.run([program, "--dry-run", *names], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    program = shutil.which(PROGRAM)
    if program is None:
        print(f"format: there is no {PROGRAM}; run sh scripts/setup.sh test, or apt-get install {PROGRAM}", file=sys.stderr)
        return SKIPPED
    names = files(ROOT)
    parts = [names[at:at + FILES_AT_A_TIME] for at in range(0, len(names), FILES_AT_A_TIME)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        if not options.check:
            list(pool.map(lambda part: subprocess.run([program, "-i", *part], cwd=ROOT, check=True), parts))
            print(f"format: {len(names)} files")
            return 0
        wrong = [name for found in pool.map(lambda part: unformatted(program, part), parts) for name in found]
    for name in wrong:
        print(f"{name}:1: error: not laid out as .clang-format says; run make format", file=sys.stderr)
    if not wrong:
        print(f"format: {len(names)} files, all laid out as .clang-format says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
