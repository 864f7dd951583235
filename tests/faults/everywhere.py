"""Every call that can fail, made to fail: everywhere.py [--seconds N] [--seed N] [--engine NAME]. Without --seconds, all; else some.

A whole life (creation, epochs, growth, end) and a second one on the same pool are run with one fault each: the n-th read, write,
sync or allocation of space fails or does half of its work, once or from then on, for each n until no call is left; and the n-th
allocation of memory by the runtime. After each: no signal, no hang; an error is an exit code with a message, or a value; the pool
opens without the fault, with every acknowledged epoch and nothing half-done, and `stillpoint check` finds it sound."""

import argparse
import collections
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import engines  # noqa: E402  (the path must be set first)

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))
TOOL = BUILD / "bin/stillpoint"
Engine = collections.namedtuple("Engine", "name program commits")  # commits: of one life
# By how the engine's programs say what is failure-atomic: the program, and its commits.
PROGRAMS = {engines.LOCKS: ("faults_files", 3), engines.RESTART_POINTS: ("faults_lines", 3), engines.OPERATIONS: ("faults_objects", 4),
            engines.TRANSACTIONS: ("faults_transactions", 4)}
MEDIA = (("file", "power"), ("file", "process"), ("memory", "power"), ("memory", "process"))
CALLS = (("read", "EIO"), ("read", "short"), ("write", "EIO"), ("write", "ENOSPC"), ("write", "short"), ("sync", "EIO"),
         ("fallocate", "ENOSPC"), ("fallocate", "EIO"), ("memory", "ENOMEM"))
DOCUMENTED = {64, 65, 66, 69, 70, 71, 73, 74, 75, 77}
MOST = 400   # of one point: more calls than a life has
USUAL_MOST = 100  # about as many as the life with the most has

Series = collections.namedtuple("Series", "engine medium durability point what always reopened")
Outcome = collections.namedtuple("Outcome", "met refused")


class Wrong(Exception):
    """A promise that was broken."""


class Driver:
    def __init__(self, folder):
        self.folder = folder
        self.pool = folder / "a.pool"
        self.grown = {}

    def run(self, series, *arguments, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_") and name != "LD_PRELOAD"}
        settings = {"POOL": self.pool, "POOL_SIZE_MB": 4, "POOL_MAX_MB": 32, "INTERVAL_MS": 3600000, "RECOVERY": "eager",
                    "ENGINE": series.engine.name, "MEDIUM": series.medium, "DURABILITY": series.durability}
        preload = [BUILD / "lib/libfaults_memory.so"] if "FAULTS_MEMORY" in environment else []
        chosen = {**clean, **{f"STILLPOINT_{name}": str(value) for name, value in settings.items()},
                  "LD_PRELOAD": " ".join(map(str, [*preload, BUILD / "lib/libstillpoint.so"])), **environment}
        try:
            return subprocess.run([str(BUILD / "bin" / series.engine.program), *arguments], cwd=self.folder, env=chosen, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired as late:
            raise Wrong(f"it hangs: {late.stdout} {late.stderr}") from late

    def prepare(self, series):
        """Returns how many commits the pool has."""
        self.pool.unlink(missing_ok=True)
        if not series.reopened:
            return 0
        key = (series.engine.name, series.medium, series.durability)
        if key not in self.grown:
            done = self.run(series, "live")
            if done.returncode != 0:
                raise Wrong(f"without a fault: {done.stderr}")
            self.grown[key] = self.folder / f"{'.'.join(key)}.whole"
            shutil.copyfile(self.pool, self.grown[key])
        shutil.copyfile(self.grown[key], self.pool)
        return series.engine.commits

    def one(self, series, number):
        before = self.prepare(series)
        met = self.folder / "met"
        met.unlink(missing_ok=True)
        rule = f"{number}:always" if series.always else f"{number}"
        if series.point == "memory":
            done = self.run(series, "live", FAULTS_MEMORY=rule, FAULTS_MEMORY_MET=str(met))
        else:
            done = self.run(series, "live", STILLPOINT_FAULT=f"{series.point}:{series.what}@{rule}", STILLPOINT_FAULT_MET=str(met))
        if done.returncode < 0:
            raise Wrong(f"ended by signal {-done.returncode}: {done.stdout}{done.stderr}")
        commits = [(int(count), int(result)) for count, result in re.findall(r"^commit (\d+) result (\d+)$", done.stdout, re.M)]
        started = done.stdout.startswith("start ")
        if done.returncode not in (0, 4):
            if done.returncode not in DOCUMENTED and not (done.returncode == 3 and f"{series.engine.program}: " in done.stderr):
                raise Wrong(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
            if "stillpoint: error: " not in done.stderr and done.returncode != 3:
                raise Wrong(f"exit code {done.returncode} without a message: {done.stderr}")
        if not started and done.returncode == 0:
            raise Wrong("it says nothing")
        acknowledged = max([count for count, result in commits if result == 0], default=before)
        self.look_again(series, acknowledged, max([count for count, _ in commits], default=before))
        return Outcome(met.exists(), done.returncode not in (0, 4))

    def look_again(self, series, least, most):
        done = self.run(series)
        found = re.match(r"start (\d) count (-?\d+)$", done.stdout.strip())
        if done.returncode != 0 or found is None:
            raise Wrong(f"afterwards: {done.returncode} {done.stdout}{done.stderr}")
        if not least <= int(found.group(2)) <= most:
            raise Wrong(f"afterwards the count is {found.group(2)}, acknowledged were {least}, begun {most}")
        checked = subprocess.run([str(TOOL), "check", str(self.pool)], capture_output=True, text=True, check=False, timeout=600)
        if checked.returncode != 0:
            raise Wrong(f"afterwards check says {checked.stdout}{checked.stderr}")


def engines_of_the_build():
    return {engine.name: Engine(engine.name, *PROGRAMS[engine.programs]) for engine in engines.engines(BUILD)
            if engine.programs in PROGRAMS}


def all_series(engines):
    for engine, (medium, durability), (point, what), always, reopened in itertools.product(engines, MEDIA, CALLS, (False, True),
                                                                                           (False, True)):
        yield Series(engine, medium, durability, point, what, always, reopened)


def every_run(engines, outcomes):
    """Each call of each series, until one is not met any more. `outcomes` has the newest one."""
    for series in all_series(engines):
        for number in range(1, MOST + 1):
            yield series, number
            if not outcomes[-1].met:
                break


def kind_of(series):
    return series.engine.name, series.medium, series.point, series.reopened


def some_runs(engines, outcomes, seed):
    """Forever, each run as likely as another. How many calls a life has is the same for all faults of a kind, nearly, and is
    learnt on the way."""
    random_source = random.Random(seed)
    every = list(all_series(engines))
    calls = collections.defaultdict(lambda: USUAL_MOST)
    while True:
        series, = random_source.choices(every, [calls[kind_of(one)] for one in every])
        number = random_source.randint(1, calls[kind_of(series)])
        yield series, number
        if not outcomes[-1].met:
            calls[kind_of(series)] = max(1, number - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    known = engines_of_the_build()
    parser.add_argument("--engine", choices=list(known), help="of this one alone")
    arguments = parser.parse_args()
    engines = [known[arguments.engine]] if arguments.engine else list(known.values())
    folder = Path(tempfile.mkdtemp(prefix="everywhere-", dir=BUILD))
    deadline = time.monotonic() + arguments.seconds if arguments.seconds else None
    driver = Driver(folder)
    figures = collections.defaultdict(collections.Counter)
    outcomes = collections.deque(maxlen=1)
    wrong = 0
    total = 0
    try:
        for series, number in some_runs(engines, outcomes, arguments.seed) if deadline else every_run(engines, outcomes):
            row = figures[series.point]
            try:
                outcome = driver.one(series, number)
            except Wrong as reason:
                wrong += 1
                print(f"wrong: {series} call {number}: {reason}", flush=True)
                outcome = Outcome(True, False)
            outcomes.append(outcome)
            row["runs"] += 1
            row["met"] += outcome.met
            row["refused"] += outcome.met and outcome.refused
            total += 1
            if deadline and time.monotonic() >= deadline and total >= 10:
                break
    finally:
        shutil.rmtree(folder, True)
    print(f"{'point':10} {'runs':>6} {'fault met':>10} {'ended with a message':>21} {'went on':>8}")
    for point, row in figures.items():
        print(f"{point:10} {row['runs']:6} {row['met']:10} {row['refused']:21} {row['met'] - row['refused']:8}")
    print(f"{wrong} wrong; " + (f"some runs, seed {arguments.seed}" if deadline else "every run"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
