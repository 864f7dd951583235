#!/usr/bin/env python3
"""Differential fuzz of transactional clones: the random programs of tests/nvhooks/fuzz.py run as bodies of transactions, and must leave
what they leave outside of one, also after a kill (layer/random_programs.c).

Usage: layer_fuzz.py [--seed N] [--rounds N]. A round is one file of programs, at a level that rotates. Exit code 1 for a finding, which is
printed with the program; 77 where there is no compiler plugin.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NVHOOKS = HERE.parent / "nvhooks"
sys.path.insert(0, str(NVHOOKS))
from compiler_case import CC, CLANG, PLUGINS, TOOL  # noqa: E402  (the path must be set first)
from fuzz import supported  # noqa: E402
from program_generator import Program  # noqa: E402

SKIPPED = 77
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-O3 -mavx512f -mavx512bw -mprefer-vector-width=512", "-O3 -mavx2", "-Os", "-O2 -fno-builtin")
QUIET = ["--quiet", "--engine=spht", "--medium=memory", "--durability=process", "--pool=pool", "--pool-size=32"]


def run(folder, *words):
    return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False, timeout=120,
                          env={name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")})


def finding(folder, program, level):
    """The difference, in words; empty: there is none."""
    suffix = "cpp" if program.cplusplus else "c"
    (folder / f"program.{suffix}").write_text(program.text())
    options = ["--runtime=spht", "-w", "-g", *level.split(), "-I", NVHOOKS, "-Wno-stillpoint-unknown-call"]
    steps = [[CC, *options, *(["-std=c++20"] if program.cplusplus else []), "-c", f"program.{suffix}", "-o", "program.o"],
             [CC, *options, "-std=gnu11", "-D_GNU_SOURCE", "-c", HERE / "layer/random_programs.c", "-o", "driver.o"],
             [CC, *options, "program.o", "driver.o", "-lstdc++", "-lm", "-o", "program"]]
    for words in steps:
        done = run(folder, *words)
        if done.returncode != 0:
            return f"the compiler failed: {done.stderr[-2000:]}"
    (folder / "pool").unlink(missing_ok=True)
    parameters = ",".join(str(value) for value in program.parameters)
    done = run(folder, TOOL, "run", *QUIET, "--", "./program", parameters)
    if (done.returncode, done.stdout) != (-9, "alike\n"):
        return f"{done.returncode}: {done.stdout}{done.stderr}"
    done = run(folder, TOOL, "run", *QUIET, "--", "./program", parameters, "check")
    return "" if (done.returncode, done.stdout) == (0, "alike\n") else f"after a kill: {done.returncode}: {done.stdout}{done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if CLANG is None or not PLUGINS:
        return SKIPPED
    levels = supported(LEVELS)
    with tempfile.TemporaryDirectory() as name:
        for seed in range(options.seed, options.seed + options.rounds):
            program = Program(seed, cplusplus=seed % 2 == 0)
            level = levels[seed % len(levels)]
            found = finding(Path(name), program, level)
            if found:
                print(f"{program.text()}\nseed {seed}, {level}: {found}")
                return 1
    print(f"{options.rounds} rounds, none differs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
