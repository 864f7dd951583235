#!/usr/bin/env python3
"""Random multi-threaded programs on durable memory, killed at random, each with its own model: what a restart finds must be
one moment of the program's own history, and nothing that was acknowledged may be missing.

program_generator.py and, with restart points, respct_generator.py write the programs; program.h and respct_program.h say what they
consist of and how they verify themselves. A round is one
program in one combination of engine, medium, durability and tracker, and a few lives of it: killed while it works, while it
begins, at a persist point, or ended by itself, also through exec; started directly or through a wrapper.

Examples:
  programs.py --seconds 60                                   all combinations, seeds from 1
  programs.py --seed 77 --rounds 1 --only file-power-uffd    one program
  programs.py --tracker mprotect --seconds 600 --go-on       collect findings
  programs.py --seed 77 --show --tracker uffd                print the program

A program that fails is reduced: threads, steps and operations are left out while it still fails. It is kept with its pool and its
output, and the command that repeats it is printed. Exit code 0: nothing found. 1: a finding. 2: could not run. 77: no compiler.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from program_generator import Features, Program
from program_life import COMBINATIONS, ROOT, WRAPPERS, Builder, Finding, Life, ToolError
from respct_generator import RespctProgram
from support import engines

SKIPPED = 77


class Rounds:
    def __init__(self, options):
        self.options = options
        self.folder = Path(options.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.builder = Builder(options.binaries, self.folder)
        self.source = self.folder / "source"
        self.begin = time.monotonic()
        self.figures = {"programs": 0, "lives": 0, "kills": 0, "verified": 0, "checks": 0}
        self.findings = []
        self.skipped = {}
        self.probed = set()
        self.names = [name for name, (engine, _, _, tracker, _) in COMBINATIONS.items()
                      if (not options.only or name in options.only.split(",")) and (not options.engine or engine.name == options.engine)
                      and (not options.tracker or (len(engine.trackers) > 1 and tracker == options.tracker))]
        if not self.names:
            raise ToolError(f"no combination is left; there are {', '.join(COMBINATIONS)}")

    def features(self, name):
        engine, _, _, tracker, _ = COMBINATIONS[name]
        return Features(engine, tracker, [word for word in self.options.avoid.split(",") if word],
                        self.options.defect)

    def program(self, seed, name):
        kind = RespctProgram if COMBINATIONS[name][0].programs == engines.RESTART_POINTS else Program
        return kind(seed, self.features(name))

    # -- One program

    def test(self, seed, name, keep, folder, lives, limit_s=0):
        """Raises Finding. `limit_s`: lives go on until then."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program = self.program(seed, name)
        engine, _, _, tracker, _ = COMBINATIONS[name]
        self.builder.build(program.text(keep), folder / "program", engine, tracker)
        wrappers = tuple(WRAPPERS) if self.features(name).allow("wrappers") else ("none",)
        life = Life(self.builder, name, folder, seed, self.source, wrappers)
        if name not in self.probed:
            life.probe()
            self.probed.add(name)
        begin = time.monotonic()
        number = 0
        try:
            while number < lives or time.monotonic() - begin < limit_s:
                life.live(number)
                number += 1
            life.finish()
        except Finding as finding:
            life.keep_pool()
            (folder / "finding").write_text(f"{finding}\nthe last start: {' '.join(map(str, life.last_words))}\n")
            raise
        finally:
            for figure, value in life.figures.items():
                self.figures[figure] += value
        life.remove_pool()

    def round(self, number):
        """Seed and combination follow from the number."""
        seed, name = self.options.seed + number // len(self.names), self.names[number % len(self.names)]
        folder = self.folder / f"seed-{seed}-{name}"
        if name in self.skipped:
            return
        begin = time.monotonic()
        try:
            self.test(seed, name, None, folder, self.options.lives)
            self.figures["programs"] += 1
            shutil.rmtree(folder)
        except Finding as finding:
            self.found(seed, name, folder, finding, time.monotonic() - begin)
        except ToolError as failure:
            self.skipped[name] = str(failure).strip().split("\n")[-1]
            shutil.rmtree(folder, ignore_errors=True)

    # -- Failures

    def found(self, seed, name, folder, finding, seconds):
        record = {"seed": seed, "combination": name, "finding": str(finding), "after_s": round(time.monotonic() - self.begin, 1),
                  "program": str(folder / "program.c"), "command": self.command(seed, name)}
        print(f"programs: FOUND seed {seed}, {name}, after {record['after_s']} s: {finding}\n  {folder}\n  {record['command']}", flush=True)
        self.findings.append(record)
        if self.options.minimise:
            record["minimal"] = str(self.minimise(seed, name, seconds))
            print(f"programs: the reduced program: {record['minimal']}", flush=True)

    def command(self, seed, name):
        return (f"python3 tests/programs/programs.py --seed {seed} --rounds 1 --only {name} --lives {max(self.options.lives, 20)}"
                + (f" --avoid {self.options.avoid}" if self.options.avoid else "")
                + (f" --defect {self.options.defect}" if self.options.defect != "none" else ""))

    def fails(self, seed, name, keep, folder, limit_s):
        try:
            self.test(seed, name, keep, folder, 4, limit_s)
        except Finding:
            return True
        return False

    def minimise(self, seed, name, seconds):
        """Leaves out runs of elements, ever shorter ones, while the program still fails within a few times the time it took."""
        limit_s = min(max(3.0, 4 * seconds), 30.0)
        folder = self.folder / f"reduced-{seed}-{name}"
        trial = self.folder / f"trial-{seed}-{name}"
        give_up = time.monotonic() + self.options.minimise_s
        keep = self.program(seed, name).elements()
        length = len(keep) // 2
        while length >= 1 and time.monotonic() < give_up:
            start = 0
            while start < len(keep) and time.monotonic() < give_up:
                fewer = keep[:start] + keep[start + length:]
                kept = set(fewer)
                if self.program(seed, name).kept_threads(kept) and self.fails(seed, name, kept, trial, limit_s):
                    keep = fewer
                    shutil.rmtree(folder, ignore_errors=True)
                    trial.rename(folder)
                else:
                    start += length
            length //= 2
        shutil.rmtree(trial, ignore_errors=True)
        return folder / "program.c" if folder.exists() else self.folder / f"seed-{seed}-{name}" / "program.c"

    # -- All

    def is_over(self, number):
        options = self.options
        if self.findings and not options.go_on:
            return True
        if options.seconds and time.monotonic() - self.begin >= options.seconds:
            return True
        return bool(options.rounds) and number >= options.rounds * len(self.names)

    def work(self, numbers):
        while True:
            number = next(numbers)
            if self.is_over(number):
                return
            self.round(number)
            self.tell()

    def tell(self):
        now = time.monotonic()
        if now - getattr(self, "told", self.begin) > 10:
            self.told = now
            print(f"programs: {self.figures['programs']} programs, {self.figures['kills']} kills, {len(self.findings)} findings, "
                  f"{now - self.begin:.0f} s", flush=True)

    def run(self):
        for engine in {COMBINATIONS[name][0] for name in self.names}:
            self.builder.linked_with(engine, "uffd")
        for tracker in {COMBINATIONS[name][3] for name in self.names}:
            try:
                self.builder.objects(tracker)
            except (ToolError, OSError) as failure:
                if tracker != "hooks":
                    raise
                for name in [name for name in self.names if COMBINATIONS[name][3] == tracker]:
                    self.skipped[name] = str(failure).strip().split("\n")[-1]
        numbers = iter(range(1 << 30))
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for done in [pool.submit(self.work, numbers) for _ in range(self.options.jobs)]:
                done.result()
        self.report()
        return 1 if self.findings else 0

    def report(self):
        kinds = Counter(re.sub(r"[0-9]+|0x[0-9a-f]+", "N", record["finding"].split("\n")[0])[:150] for record in self.findings)
        for kind, count in kinds.most_common():
            first = next(record for record in self.findings if re.sub(r"[0-9]+|0x[0-9a-f]+", "N", record["finding"]).startswith(kind))
            print(f"programs: {count} times: {kind} (first: seed {first['seed']}, {first['combination']}, after {first['after_s']} s)")
        for name, reason in self.skipped.items():
            print(f"programs: left out: {name}: {reason}")
        figures = self.figures
        print(f"programs: from seed {self.options.seed} on: {figures['programs']} programs, {figures['lives']} lives, "
              f"{figures['kills']} kills, {figures['verified']} starts verified, {figures['checks']} pools checked, "
              f"{len(self.findings)} findings, {time.monotonic() - self.begin:.0f} s")
        if self.options.json:
            told = {"figures": figures, "skipped": self.skipped, "findings": self.findings}
            Path(self.options.json).write_text(json.dumps(told, indent=1))
        if not self.findings and not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--seconds", type=float, default=0, help="begin no round after this time")
    parser.add_argument("--rounds", type=int, default=0, help="seeds, each in every combination; default 1 without --seconds")
    parser.add_argument("--lives", type=int, default=6, help="of each program, before it is only verified")
    parser.add_argument("--engine", help="one of the build")
    parser.add_argument("--tracker", help="of an engine that has several: uffd, mprotect, hooks")
    parser.add_argument("--only", default="", help=f"some of: {', '.join(COMBINATIONS)}")
    parser.add_argument("--avoid", default="", help="what programs shall not do: a part, direct, uring, durable-locks, globals, fork, signals, mappings, "
                                                    "robust-ends, abandon, ignored-locks; wrappers: of starts")
    parser.add_argument("--defect", default="none", choices=("none", "torn", "early", "untold"),
                        help="programs break a rule on purpose: store after a section, acknowledge too early, respct: do not tell a store")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--go-on", action="store_true", help="after a finding, too")
    parser.add_argument("--minimise", action=argparse.BooleanOptionalAction, default=True, help="reduce programs that fail")
    parser.add_argument("--minimise-s", type=float, default=180, help="time for that, each")
    parser.add_argument("--json", help="file for figures and findings")
    parser.add_argument("--keep", action="store_true", help="keep the folder also where nothing was found")
    parser.add_argument("--show", action="store_true", help="print the program of the seed, and end")
    parser.add_argument("--binaries", default=None, help="folder of the tool (default build/bin)")
    parser.add_argument("--folder", default=str(ROOT / "build" / "programs"), help="for programs, pools and notes")
    options = parser.parse_args()
    if not options.rounds and not options.seconds:
        options.rounds = 1
    if shutil.which("cc") is None:
        print("skipped: there is no C compiler")
        return SKIPPED
    try:
        rounds = Rounds(options)
        if options.show:
            print(rounds.program(options.seed, rounds.names[0]).text())
            return 0
        return rounds.run()
    except (ToolError, OSError) as failure:
        print(f"programs: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
