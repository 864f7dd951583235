#!/usr/bin/env python3
"""Differential fuzz of the compiler pass: random programs, instrumented at each setting of the optimisations, must call hooks
that cover exactly the bytes that they write (recorder.c says how that is told).

Usage: fuzz.py --plugin LIBRARY [--seed N] [--rounds N] [--seconds N] [--every] [--setting NAME] [--level N] [--keep FOLDER]
A round is one file of programs. Without --every it runs at each setting once, at an optimisation level that rotates; with it
at each setting and level. A failing round is reduced and printed, with the command that repeats it. Exit code 1 for a
finding, 77 where Clang is not installed.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from container_generator import ContainerProgram
from program_generator import Program

HERE = Path(__file__).resolve().parent
SKIPPED = 77
OPTIMIZATIONS = ("static-check", "coalesce-fields", "coalesce-loops", "no-extra-tracking")
GATHERED = ("pre_nvm_write_gathered", "writes_gathered")
WRITES = ("pre_nvm_write", "post_nvm_write")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-O3 -mavx512f -mavx512bw -mprefer-vector-width=512", "-Os", "-O2 -fno-builtin",
          "-O2 -flto", "-O3 -flto=thin")


def layer(optimizations, hooks=("is_nvm", *WRITES), marks="calls", track_new=True, keeps_fase="opaque", described=True):
    """The text of a layer's YAML."""
    lines = ["name: recorder", f"hooks: [{', '.join(hooks)}]", f"marks: {marks}", "window: { shift: 40, index: 0x48 }"]
    lines += ["optimizations:"]
    lines += [f"  {name}: {'yes' if name in optimizations else 'no'}" for name in OPTIMIZATIONS]
    if marks == "cards":
        lines.append("cards: { shift: 6, table: 0x470000000000, coarse-shift: 9, coarse-table: 0x471000000000 }")
    lines += [f"track-newly-allocated: {'yes' if track_new else 'no'}", "allocators: [{ function: recorder_allocate, size: arg0 }]",
              f"keeps-fase: [{keeps_fase}]"]
    lines += [f"descriptions: [{HERE}/recorder.yaml]"] if described else []
    return "\n".join(lines) + "\n"


# Name: the layer's YAML, and the recorder's options.
BOTH = ["--pre", "--post"]
SETTINGS = {
    "initial": (layer(()), BOTH),
    "static-check": (layer(OPTIMIZATIONS[:1]), BOTH),
    "coalesce-fields": (layer(OPTIMIZATIONS[1:2]), BOTH),
    "coalesce-loops": (layer(OPTIMIZATIONS[2:3]), BOTH),
    "no-extra-tracking": (layer(OPTIMIZATIONS[3:]), BOTH),
    "cumulative-2": (layer(OPTIMIZATIONS[:2]), BOTH),
    "cumulative-3": (layer(OPTIMIZATIONS[:3]), BOTH),
    "all": (layer(OPTIMIZATIONS), BOTH),
    "all-is-nvm": (layer(OPTIMIZATIONS[1:]), BOTH),
    "untracked-blocks": (layer(OPTIMIZATIONS, track_new=False), [*BOTH, "--untracked-blocks"]),
    "only-pre": (layer(OPTIMIZATIONS, hooks=("is_nvm", "pre_nvm_write")), ["--pre"]),
    "only-post": (layer(OPTIMIZATIONS, hooks=("is_nvm", "post_nvm_write")), ["--post"]),
    "cards-initial": (layer(OPTIMIZATIONS[:1], hooks=("post_nvm_write",), marks="cards"), ["--cards=6"]),
    "cards": (layer(OPTIMIZATIONS, hooks=("post_nvm_write",), marks="cards"), ["--cards=6"]),
    "every-hook": (layer(OPTIMIZATIONS, hooks=("is_nvm", *WRITES, "pre_nvm_read", "post_nvm_read", "pointer_stored")), BOTH),
    "reads-initial": (layer((), hooks=("is_nvm", "pre_nvm_read", "post_nvm_read", "pre_nvm_write")), ["--pre", "--reads"]),
    "reads": (layer(OPTIMIZATIONS, hooks=("is_nvm", "pre_nvm_read", "pre_nvm_write")), ["--pre", "--reads"]),
    "gathered": (layer(OPTIMIZATIONS, hooks=("is_nvm", *WRITES, *GATHERED)), BOTH),
    "gathered-initial": (layer((), hooks=("is_nvm", *WRITES, *GATHERED)), BOTH),
    "gathered-reads": (layer(OPTIMIZATIONS, hooks=("is_nvm", "pre_nvm_read", "pre_nvm_write", *GATHERED)), ["--pre", "--reads"]),
    "relative-initial": (layer((), hooks=("is_nvm", "to_absolute_ptr", *WRITES)), [*BOTH, "--relative"]),
    "relative": (layer(OPTIMIZATIONS, hooks=("is_nvm", "to_absolute_ptr", *WRITES)), [*BOTH, "--relative"]),
}

# Errors that must be found, within a few rounds: hooks that move across the end of a FASE, and a call without a description.
CANARIES = {
    "canary-moves-fields": (layer(OPTIMIZATIONS[1:2], keeps_fase="opaque, boundary"), BOTH),
    "canary-moves-loops": (layer(OPTIMIZATIONS[2:3], keeps_fase="opaque, boundary"), BOTH),
    "canary-moves-extra": (layer(OPTIMIZATIONS[3:], keeps_fase="opaque, boundary"), BOTH),
    "canary-moves-marks": (layer(OPTIMIZATIONS, hooks=("post_nvm_write",), marks="cards", keeps_fase="opaque, boundary"),
                           ["--cards=6"]),
    "canary-undescribed": (layer((), described=False), BOTH),
    "canary-reads": (layer((), hooks=("is_nvm", "pre_nvm_write")), ["--pre", "--reads"]),
    "canary-moves-reads": (layer(OPTIMIZATIONS, hooks=("is_nvm", "pre_nvm_read", "pre_nvm_write"), keeps_fase="opaque, boundary"),
                           ["--reads"]),
    "canary-new-blocks": (layer(OPTIMIZATIONS, track_new=False), BOTH),
}
CANARY_ROUNDS = 60


class Finding(Exception):
    """The error, in words."""


class Fuzz:
    def __init__(self, plugin, folder, clang):
        self.plugin = plugin
        self.folder = Path(folder)
        self.clang = clang
        self.recorder = self.folder / "recorder.o"
        includes = ["-I", str(HERE.parents[1] / "src")]
        self.run([self.clang, "-O1", "-w", *includes, "-c", str(HERE / "recorder.c"), "-o", str(self.recorder)], 120)
        for name, (text, _) in {**SETTINGS, **CANARIES}.items():
            (self.folder / f"{name}.yaml").write_text(text)

    def run(self, command, limit_s):
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, cwd=self.folder, check=False)
        except subprocess.TimeoutExpired as error:
            raise Finding(f"no end after {limit_s} s: {' '.join(command)}") from error

    def test(self, program, setting, level, keep=None):
        """Compiles and runs; raises Finding."""
        suffix = "cpp" if program.cplusplus else "c"
        source = self.folder / f"program.{suffix}"
        source.write_text(program.text(keep))
        options = level.split()
        if program.cplusplus:
            options += ["-x", "c++", *getattr(program, "options", ("-std=c++20",))]
        instrumented = self.run(
            [self.clang, "-w", "-g1", *options, "-I", str(HERE), f"-fplugin={self.plugin}", f"-fpass-plugin={self.plugin}", "-mllvm",
             f"-stillpoint-runtime={self.folder / (setting + '.yaml')}", "-c", str(source), "-o", "program.o"], 120)
        if instrumented.returncode != 0:
            raise Finding(f"the compiler failed with {instrumented.returncode}:\n{tail(instrumented.stderr)}")
        link = [word for word in options if word.startswith("-flto")]
        link += ["-O2", "-fuse-ld=lld"] if link else []
        linked = self.run([self.clang, *link, "program.o", str(self.recorder), "-lstdc++", "-lm", "-o", "program"], 120)
        if linked.returncode != 0:
            raise Finding(f"the linker failed:\n{tail(linked.stderr)}")
        parameters = ",".join(str(value) for value in program.parameters)
        ran = self.run([str(self.folder / "program"), *{**SETTINGS, **CANARIES}[setting][1], f"--parameters={parameters}"], 60)
        if ran.returncode != 0:
            raise Finding(f"exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")

    def reduce(self, program, setting, level):
        """The fewest statements that still fail: whole runs of statements are left out, then shorter ones."""
        keep = [(number, place) for number, (_, body) in enumerate(program.bodies) for place in range(len(body))]
        length = len(keep) // 2
        while length >= 1:
            start = 0
            while start < len(keep):
                fewer = keep[:start] + keep[start + length:]
                try:
                    self.test(program, setting, level, set(fewer))
                    start += length
                except Finding:
                    keep = fewer
            length //= 2
        return set(keep)


def tail(text, lines=25):
    return "\n".join(text.split("\n")[-lines:])


def report(fuzz, program, setting, level, seed, finding, options):
    print(f"FAIL setting {setting}, {level}, {'C++' if program.cplusplus else 'C'}, seed {seed}: {finding}")
    keep = fuzz.reduce(program, setting, level)
    try:
        fuzz.test(program, setting, level, keep)
    except Finding as again:
        print(f"reduced: {again}")
    text = program.text(keep)
    print(text)
    if options.keep:
        name = f"{setting}-{level.replace(' ', '')}-{seed}.{'cpp' if program.cplusplus else 'c'}"
        (Path(options.keep) / name).write_text(text)
    print(f"repeat: tests/nvhooks/fuzz.py --plugin {options.plugin} --seed {seed} --rounds 1 --setting {setting} '--level={level}'")


def supported(levels):
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    lacking = [] if "avx512f" in flags and "avx512bw" in flags else ["avx512"]
    lacking += [] if shutil.which("ld.lld-19") or Path("/usr/lib/llvm-19/bin/ld.lld").exists() else ["-flto"]
    return [level for level in levels if not any(word in level for word in lacking)]


def sing(fuzz, seed):
    """Whether each canary is found, and when."""
    silent = 0
    for setting in CANARIES:
        for round_number in range(CANARY_ROUNDS):
            try:
                fuzz.test(Program(seed + round_number, cplusplus=False), setting, "-O1")
            except Finding:
                print(f"{setting}: found in round {round_number + 1}")
                break
        else:
            print(f"FAIL {setting}: not found in {CANARY_ROUNDS} rounds")
            silent += 1
    return 1 if silent else 0


def program_of(seed):
    """Each third round is of containers; the others are C and C++ in turns."""
    return ContainerProgram(seed) if seed % 3 == 0 else Program(seed, cplusplus=seed % 2 == 0)


def rounds(options):
    """Yields seeds until the number or the time is up."""
    begin = time.monotonic()
    seed = options.seed
    while not options.rounds or seed < options.seed + options.rounds:
        if options.seconds and time.monotonic() - begin >= options.seconds:
            return
        yield seed
        seed += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--setting", choices=SETTINGS)
    parser.add_argument("--canaries", action="store_true", help="break the pass on purpose: each must be found")
    parser.add_argument("--level", choices=LEVELS)
    parser.add_argument("--keep", help="folder for reduced programs")
    parser.add_argument("--findings", type=int, default=1, help="how many to report before it ends")
    options = parser.parse_args()
    if not options.rounds and not options.seconds:
        options.rounds = 1
    if shutil.which(options.clang) is None or not Path(options.plugin).exists():
        print(f"skipped: {options.clang} or {options.plugin} is not there")
        return SKIPPED
    levels = [options.level] if options.level else supported(LEVELS)
    settings = [options.setting] if options.setting else list(SETTINGS)
    findings = tests = 0
    with tempfile.TemporaryDirectory() as folder:
        fuzz = Fuzz(str(Path(options.plugin).resolve()), folder, options.clang)
        if options.canaries:
            return sing(fuzz, options.seed)
        for seed in rounds(options):
            program = program_of(seed)
            for number, setting in enumerate(settings):
                for level in levels if options.every or options.level else [levels[(seed + number) % len(levels)]]:
                    tests += 1
                    try:
                        fuzz.test(program, setting, level)
                    except Finding as finding:
                        report(fuzz, program, setting, level, seed, finding, options)
                        findings += 1
                        if findings >= options.findings:
                            return 1
    print(f"fuzz: {tests} tests from seed {options.seed} on, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
