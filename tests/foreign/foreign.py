#!/usr/bin/env python3
"""Foreign programs as an instrument: each program of the table runs plain and under `stillpoint run`, with each tracker and engine, and
must print the same and end the same. Tools of others (debuggers, allocators, wrappers) run round a durable program of ours, which
audits itself.

Exit code 0: nothing differs; 1: something does, and the folders that are named keep both outputs and the script; or fewer programs ran
than --at-least says, and what was missing is named."""

import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]

from programs import PROGRAMS  # noqa: E402  (the path comes first)
from servers import SERVERS  # noqa: E402
from support import engines  # noqa: E402
from tools import TOOLS  # noqa: E402

POOL = ("--durability", "process", "--pool-size", "4M", "--pool-max", "64M", "--interval", "5ms")
TRACKERS = {"uffd": ("--tracker", "uffd"), "mprotect": ("--tracker", "mprotect")}
OK, DIFFERS, UNSTABLE, SKIPPED = "ok", "DIFFERS", "unstable", "skipped"


def variants_of(build):
    """The trackers that see code which was not compiled for them, and the other engines of the build."""
    return TRACKERS | {engine.name: ("--engine", engine.name) for engine in engines.engines(build)[1:]
                       if engine.programs != engines.CRITICAL_SECTIONS}


class Runner:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.variants = variants_of(build)
        self.inputs = folder / "inputs"
        self.companion = build / "lib/libforeign_companion.so"
        unpacked = [str(path) for pattern in ("*/usr/sbin", "*/usr/bin") for path in sorted((folder / "packages").glob(pattern))]
        self.path = os.pathsep.join([*unpacked, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
        self.make_inputs()

    def make_inputs(self):
        """Inputs that are equal in each run: text of words, random bytes, and lines to sort."""
        self.inputs.mkdir(parents=True, exist_ok=True)
        chance = random.Random(1)
        words = ["".join(chance.choices("abcdefghij0123456789", k=chance.randrange(2, 10))) for _ in range(3000)]
        text = "\n".join(" ".join(chance.choices(words, k=12)) for _ in range(60000))[: 4 << 20]
        for name, data in (("text", text), ("lines", text[:60000]),
                           ("many", "".join(f"{words[i * 7919 % 3000]} {i * 31337 % 400009}\n" for i in range(400_000)))):
            (self.inputs / name).write_text(data)
        (self.inputs / "random").write_bytes(chance.randbytes(1 << 20))

    def missing(self, program):
        """The commands and files that are not there."""
        return [need for need in program.needs
                if not (Path(need).exists() if need.startswith("/") else shutil.which(need, path=self.path))]

    def prepare(self, program, variant):
        folder = self.folder / "runs" / re.sub(r"\W+", "-", program.name) / variant
        shutil.rmtree(folder, ignore_errors=True)
        work = folder / "work"
        work.mkdir(parents=True)
        prefix = ""
        if variant in self.variants:
            words = [str(self.build / "bin/stillpoint"), "run", "--quiet", "--pool", str(folder / "a.pool"), *POOL,
                     *self.variants[variant], "--"]
            # Without it a program that uses no durable memory would open no pool, and nothing would be tried.
            if not program.durable:
                words += ["/bin/sh", "-c", f'LD_PRELOAD=$LD_PRELOAD:{self.companion} exec "$@"', "sh"]
            prefix = " ".join(f"'{word}'" for word in words)
        (work / "run").write_text(f'#!/bin/sh\nexec {prefix} "$@"\n')
        (work / "run").chmod(0o755)
        (folder / "script").write_text(program.script)
        return folder

    def execute(self, program, variant):
        """(exit code or "timeout", output, seconds, folder)"""
        folder = self.prepare(program, variant)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("STILLPOINT_") and name not in ("LD_PRELOAD", "MAKEFLAGS", "MFLAGS")}
        environment.update(PATH=self.path, LC_ALL="C.UTF-8", TZ="UTC", HOME=str(folder / "work"), TMPDIR=str(folder / "work"),
                           PORT=str(port), INPUTS=str(self.inputs), FILES=str(HERE / "files"), CACHE=str(self.folder / "cache"),
                           BANK=str(self.build / "bin/bank"), RUSTUP_HOME=os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
                           CARGO_HOME=os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")))
        begun = time.monotonic()
        with open(folder / "output", "wb") as output:
            process = subprocess.Popen(["sh", "-eu", str(folder / "script")], cwd=folder / "work", env=environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(program.limit_s)
            except subprocess.TimeoutExpired:
                code = "timeout"
            # The script's own session: what it left running, too.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        seconds = time.monotonic() - begun
        text = (folder / "output").read_text(errors="replace").replace(str(folder), "FOLDER").replace(str(port), "PORT")
        return code, program.canonical(text), seconds, folder

    def check_pool(self, folder, keeps):
        """The error in the pool of a run; "" where it is sound and was used."""
        if not keeps and not (folder / "a.pool").exists():
            return ""
        done = subprocess.run([self.build / "bin/stillpoint", "check", folder / "a.pool"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"check: {done.stderr.strip() or done.stdout.strip()}"
        used = re.search(r"and [1-9]\d* handles verified", done.stdout)
        return "" if used or not keeps else f"the pool was not used: {done.stdout.strip()}"


def judge_durable(program, code, text):
    missing = [pattern for pattern in program.expect if not re.search(pattern, text)]
    if code != 0:
        return f"exit code {code}"
    return f"not printed: {missing[0]}" if missing else ""


def judge(runner, program, reference, outcome):
    """(state, reason) of a run beside the reference; a difference that a second reference has too is the program's own."""
    if outcome[:2] == reference[:2]:
        return OK, ""
    again = runner.execute(program, "plain-again")
    if again[:2] != reference[:2]:
        return UNSTABLE, "two plain runs differ"
    if outcome[0] != reference[0]:
        return DIFFERS, f"exit code {outcome[0]}, plain {reference[0]}"
    return DIFFERS, "prints something else"


def run_program(runner, program, variants, say):
    row = {"name": program.name, "packages": program.packages, "states": {}, "seconds": {}, "reasons": {}}
    missing = runner.missing(program)
    if missing:
        row["states"] = dict.fromkeys(variants, SKIPPED)
        row["skipped"] = f"no {' '.join(missing)}: scripts/setup.sh foreign, or install {program.packages}"
        return row
    reference = None
    if not program.durable:
        say(f"{program.name}: plain")
        reference = runner.execute(program, "plain")
        row["seconds"]["plain"] = reference[2]
        if reference[0] != 0:
            row["reasons"]["plain"] = f"the plain run ends with {reference[0]}: {reference[3]}"
    for variant in variants:
        if variant not in (program.variants or (TRACKERS if program.durable else variants)):
            continue
        say(f"{program.name}: {variant}")
        outcome = runner.execute(program, variant)
        if program.durable:
            reason = judge_durable(program, *outcome[:2])
            state = DIFFERS if reason else OK
        else:
            state, reason = judge(runner, program, reference, outcome)
        damage = runner.check_pool(outcome[3], program.keeps)
        if damage:
            state, reason = DIFFERS, f"{reason} {damage}".strip()
        row["states"][variant], row["seconds"][variant] = state, outcome[2]
        if reason:
            row["reasons"][variant] = f"{reason}: {outcome[3]}"
        elif not reason and state == OK:
            shutil.rmtree(outcome[3], ignore_errors=True)
    return row


def check_hooks_refuses(runner):
    """The tracker `hooks` takes no program that was not instrumented."""
    pool = runner.folder / "hooks.pool"
    done = subprocess.run([runner.build / "bin/stillpoint", "run", "--pool", pool, "--open", "start", "--tracker", "hooks", "--",
                           "sort", "/dev/null"], capture_output=True, text=True, check=False)
    refused = done.returncode == 69 and not pool.exists()
    return "" if refused else f"the tracker hooks takes sort: exit code {done.returncode}, {done.stderr.strip()}"


def print_table(rows, variants):
    print(f"\n{'program':<20} {'plain':>7} " + " ".join(f"{variant:>14}" for variant in variants))
    for row in rows:
        plain = f"{row['seconds']['plain']:.1f} s" if "plain" in row["seconds"] else "-"
        cells = []
        for variant in variants:
            state = row["states"].get(variant, "-")
            seconds = f" {row['seconds'][variant]:.1f} s" if variant in row["seconds"] else ""
            cells.append(f"{state + seconds:>14}")
        print(f"{row['name']:<20} {plain:>7} " + " ".join(cells))
    for row in rows:
        for reason in filter(None, (row.get("skipped"), *[f"{v}: {r}" for v, r in row["reasons"].items()])):
            print(f"  {row['name']}: {reason}")


def too_few(rows, least):
    """Names what kept programs from running, where that leaves fewer than `least`."""
    skipped = [row for row in rows if "skipped" in row]
    if len(rows) - len(skipped) >= least:
        return False
    print(f"foreign: {len(rows) - len(skipped)} programs ran, and at least {least} should have. Missing:", file=sys.stderr)
    for row in skipped:
        print(f"  {row['name']}: {row['skipped']}", file=sys.stderr)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build")))
    parser.add_argument("--folder", type=Path, help="where everything is made (default: foreign in the build)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this program; may be repeated")
    parser.add_argument("--variants", help=f"of {','.join(TRACKERS)} and the engines besides the first (default: all)")
    parser.add_argument("--quick", action="store_true", help="a few programs that most systems have, the two trackers: half a minute")
    parser.add_argument("--json", type=Path, help="write the table to this file as well")
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="fail where fewer programs could run")
    parser.add_argument("--list", action="store_true", help="print the names of the programs")
    arguments = parser.parse_args()
    table = [*PROGRAMS, *SERVERS, *TOOLS]
    if arguments.list:
        print("\n".join(program.name for program in table))
        return 0
    unknown = set(arguments.only) - {program.name for program in table}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))} in the table; --list has the names")
    chosen = [program for program in table if (program.name in arguments.only if arguments.only else program.quick or not arguments.quick)]
    if not (arguments.build / "bin/bank").exists() or not (arguments.build / "lib/libforeign_companion.so").exists():
        parser.error(f"{arguments.build} is not built: make")
    known = variants_of(arguments.build)
    variants = list(TRACKERS) if arguments.quick else arguments.variants.split(",") if arguments.variants else list(known)
    if set(variants) - set(known):
        parser.error(f"--variants: of {','.join(known)}")
    runner = Runner(arguments.build.resolve(), (arguments.folder or arguments.build / "foreign").resolve())
    rows, begun = [], time.monotonic()
    for number, program in enumerate(chosen, 1):
        def say(what, at=f"{number}/{len(chosen)}"):
            print(f"[{at} {time.monotonic() - begun:4.0f} s] {what}", flush=True)

        rows.append(run_program(runner, program, variants, say))
    print_table(rows, variants)
    failed = [row["name"] for row in rows if row["reasons"]]
    hooks = check_hooks_refuses(runner)
    if hooks:
        failed.append("hooks")
        print(hooks)
    ran = [row for row in rows if "skipped" not in row]
    print(f"\nforeign: {len(ran)} programs ran, {len(rows) - len(ran)} skipped, {len(failed)} differ, {time.monotonic() - begun:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "hooks": hooks}, indent=1) + "\n")
    return 1 if failed or too_few(rows, arguments.at_least) else 0


if __name__ == "__main__":
    sys.exit(main())
