#!/usr/bin/env python3
"""Golden counts of fixed runs: what noise cannot fool.

Invariants:
- The lines written back, fences, syncs, bytes and pages of a fixed run of one thread are those of golden.json, exactly.
- The instructions that the program's thread executes are those of golden.json, within a fiftieth: they depend on the compiler and on the
  C library, and are compared only where both are those of the golden file.

A changed number is to be seen in a diff: `golden_test.py --update` writes the file again.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FILE = Path(__file__).resolve().parent / "golden.json"
COUNTED = ["checkpoints", "dirty_pages_total", "bytes_written", "lines_written_back", "fences", "medium_syncs"]
# For respct: between two checkpoints the program's thread waits for no line.
COUNTED_OF_RESPCT = [*COUNTED, "fences_in_operations"]
OPERATIONS, PARTS = 20_000, 4
STEPPED_OPERATIONS = 25  # A step takes more than 100 us on a virtual machine.
TOLERANCE = 0.02
# Every CPU must run the same code: string functions of the C library are chosen by what the CPU has.
TUNABLES = "glibc.cpu.hwcaps=-AVX2_Usable,-AVX_Fast_Unaligned_Load,-AVX512F_Usable,-AVX512VL,-AVX2,-ERMS,-FSRM,-RTM"

RUNS = {
    "hash_map memory power": ("hash_map", "memory", ["--durability", "power"], []),
    "hash_map memory process": ("hash_map", "memory", ["--durability", "process"], []),
    "hash_map 256 B memory power": ("hash_map", "memory", ["--durability", "power"], ["value_bytes=256"]),
    "hash_map file power": ("hash_map", "file", ["--durability", "power"], []),
    "btree memory power": ("btree", "memory", ["--durability", "power"], []),
    "btree mprotect memory power": ("btree", "memory", ["--durability", "power", "--tracker", "mprotect"], []),
    "btree reads memory power": ("btree", "memory", ["--durability", "power"], ["reads=100"]),
    "queue memory power": ("queue", "memory", ["--durability", "power"], []),
    "queue file power": ("queue", "file", ["--durability", "power"], []),
}
RESPCT = ["--engine", "respct", "--durability", "power"]
RUNS_OF_RESPCT = {
    "respct hash_map 1:9 memory power": ("hash_map", "memory", RESPCT, ["reads=90"]),
    "respct hash_map 1:1 memory power": ("hash_map", "memory", RESPCT, []),
    "respct hash_map 9:1 memory power": ("hash_map", "memory", RESPCT, ["reads=10"]),
    "respct queue memory power": ("queue", "memory", RESPCT, []),
    "respct list memory power": ("list", "memory", RESPCT, []),
}
# Which logging the engine would choose by itself is a matter of time.
PRONTO = ["--engine", "pronto", "--pronto-logging", "sync"]
RUNS_OF_PRONTO = {
    "pronto hash_map memory power": ("hash_map", "memory", [*PRONTO, "--durability", "power"], []),
    "pronto hash_map 256 B memory power": ("hash_map", "memory", [*PRONTO, "--durability", "power"], ["value_bytes=256"]),
    "pronto hash_map memory process": ("hash_map", "memory", [*PRONTO, "--durability", "process"], []),
    "pronto btree memory power": ("btree", "memory", [*PRONTO, "--durability", "power"], []),
    "pronto queue memory power": ("queue", "memory", [*PRONTO, "--durability", "power"], []),
    "pronto queue file power": ("queue", "file", [*PRONTO, "--durability", "power"], []),
}
RUNS |= RUNS_OF_RESPCT | RUNS_OF_PRONTO
ENGINES = ("volatile", "pmthreads", "respct", "pronto")
OPTIONS = {"pronto": PRONTO}
STEPPED = ["hash_map", "btree", "queue"]


class Skipped(Exception):
    pass


class Bench:
    def __init__(self, build):
        self.binaries = Path(build) / "bin"
        self.disk = Path(tempfile.mkdtemp(prefix="golden-", dir=build))
        self.memory = Path(tempfile.mkdtemp(prefix="stillpoint-golden-", dir="/dev/shm"))

    def close(self):
        shutil.rmtree(self.disk, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)

    def durable(self, engine, workload, medium, options, settings):
        """The words of a run whose only checkpoints are those that it asks for."""
        pool = (self.memory if medium == "memory" else self.disk) / "pool"
        pool.unlink(missing_ok=True)
        emulated = ["--medium", "memory"] if medium == "memory" else []
        return [self.binaries / "stillpoint", "run", "--quiet", "--pool", pool, *emulated, "--interval-ms", "3600000", *options, "--",
                self.binaries / f"bench_worker_{engine}", workload, "threads=1", "smoke=1", *settings]

    def answers(self, words, commands, environment=None):
        done = subprocess.run(list(map(str, words)), input="".join(f"{command}\n" for command in commands), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}, check=False)
        if done.returncode == 77:
            raise Skipped(done.stderr.strip())
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}\nended with exit code {done.returncode}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def counts(self, name):
        engine = engine_of(name)
        _, exact = self.answers(self.durable(engine, *RUNS[name]), [f"exact {OPERATIONS} {PARTS}"])
        return {counter: exact[counter] for counter in counted_in(name)}

    def instructions(self, engine, workload):
        """Instructions of one operation of the program's thread: the second of two runs of the same length, the first warms up."""
        steps = self.disk / "steps"
        words = ([self.binaries / "bench_worker_volatile", workload, "threads=1", "smoke=1"] if engine == "volatile"
                 else self.durable(engine, workload, "memory", [*OPTIONS.get(engine, ["--engine", engine]), "--durability", "process"], []))
        command = f"exact {STEPPED_OPERATIONS} 1"
        self.answers([self.binaries / "step_counter", steps, *words], [command], {"GLIBC_TUNABLES": TUNABLES})
        return round(int(steps.read_text().split()[-1]) / STEPPED_OPERATIONS, 1)

    def compiler(self):
        listed = subprocess.run([self.binaries / "bench_worker_volatile", "--list"], stdout=subprocess.PIPE, text=True, check=True)
        return f"{json.loads(listed.stdout)['compiler']}, glibc {platform.libc_ver()[1]}, {platform.machine()}"


def engine_of(name):
    return "respct" if name in RUNS_OF_RESPCT else "pronto" if name in RUNS_OF_PRONTO else "pmthreads"


def counted_in(name):
    return COUNTED_OF_RESPCT if name in RUNS_OF_RESPCT else COUNTED


def measure(bench, golden):
    """The document as it should be, and what is not compared here."""
    found = {"counts": {name: bench.counts(name) for name in RUNS}, "compiler": bench.compiler(), "instructions": {}}
    notes = []
    if golden and golden["compiler"] != found["compiler"]:
        notes.append(f"instructions are not compared: the golden file is of {golden['compiler']}, this is {found['compiler']}")
        return found, notes
    try:
        found["instructions"] = {f"{engine} {workload}": bench.instructions(engine, workload)
                                 for workload in STEPPED for engine in ENGINES if (engine, workload) != ("respct", "btree")}
    except Skipped as reason:
        notes.append(f"instructions are not counted: {reason}")
    return found, notes


def differences(golden, found):
    for name in sorted(golden["counts"].keys() | found["counts"].keys()):
        before, now = golden["counts"].get(name, {}), found["counts"].get(name, {})
        for counter in counted_in(name):
            if before.get(counter) != now.get(counter):
                yield f"{name}: {counter} was {before.get(counter)}, is {now.get(counter)}"
    for name, now in found["instructions"].items():
        before = golden["instructions"].get(name)
        if before is None or abs(now - before) > TOLERANCE * before:
            yield f"{name}: instructions an operation were {before}, are {now}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the golden file again")
    parser.add_argument("--build", default=os.environ.get("STILLPOINT_BUILD", "build"))
    arguments = parser.parse_args()
    if not os.access("/dev/shm", os.W_OK):
        print("skipped: no /dev/shm that can be written")
        return 77
    golden = json.loads(FILE.read_text()) if FILE.is_file() else None
    bench = Bench(Path(arguments.build).resolve())
    try:
        found, notes = measure(bench, None if arguments.update else golden)
    finally:
        bench.close()
    for note in notes:
        print(note)
    if arguments.update:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    changed = list(differences(golden, found))
    for line in changed:
        print(line)
    if changed:
        print(f"If that is meant, run {Path(__file__).name} --update and let the diff be reviewed.")
    print(f"{len(RUNS)} runs counted, {len(found['instructions'])} stepped, {len(changed)} numbers differ")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
