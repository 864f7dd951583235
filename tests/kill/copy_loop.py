#!/usr/bin/env python3
"""Copies the pool of a busy program again and again, and proves of each copy that it is one moment of the pool:

  - `stillpoint copy` has verified it, and the pool of the program goes on;
  - the program, started with the copy, finds its invariant intact, and everything that had been acknowledged before the copy began;
  - a copier that is killed leaves no file under the copy's name, and the next one goes on with what it left;
  - a program that is killed while it is copied leaves a copy that is as good, and a pool that it starts with again;
  - a copy with increments that were made after it, restored, has all that had been acknowledged before the last one began; a
    restore that is killed leaves no file under the pool's name.

The programs are those of kill_loop.py. Exit code 0: all held. 1: something did not; the line before names the seed and the round.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import kill_loop
from kill_loop import PROGRAMS, SKIPPED, Broken, Loop, run_loop, settle_engine
from pool_tool import kill

INCREMENTS_MAX = 2
KINDS = ("undisturbed", "the copier is killed", "the program is killed")


# These ledgers check what they have noted from both sides: a copy has at least what was acknowledged before it was made, and at most
# what had begun afterwards. For each, where the counts of what had begun lie in its file: (first byte, bytes between two, bytes, how many).
BEGUN = {"pronto_ledger": [(56, 120, 40, None)], "spht_ledger": [(48, 96, 32, None)],  # told.hpp
         "breeze_ledger": [(56, 16, 8, 8), (56 + 136, 16, 8, 8)]}  # of each of two pools, after its address


def told_by_both(name, before, after):
    merged = bytearray(before)
    for first, step, size, count in BEGUN[name]:
        end = len(merged) if count is None else first + count * step
        for at in range(first, end, step):
            merged[at:at + size] = after[at:at + size]
    return bytes(merged)


def files_of(path, pools):
    """The program's other pools lie beside the first one; so do their copies."""
    return [path, *(Path(f"{path}.second") for _ in range(pools - 1))]


class CopyLoop(Loop):
    def __init__(self, options):
        super().__init__(options)
        self.copy = Path(options.copy_folder or self.folder) / f"{self.pool.stem}-copy.pool"
        self.increments = [self.copy.with_suffix(f".increment-{number}") for number in range(INCREMENTS_MAX)]
        self.restored = self.copy.with_suffix(".restored")
        self.remove_copies()
        self.process = None
        self.last_copy_s = 0.3
        self.held_ms = []
        self.counts = {kind: 0 for kind in KINDS} | {"resumed": 0, "in use": 0, "increments": 0, "restores killed": 0}

    def remove_copies(self):
        for path in (self.copy, *self.increments, self.restored):
            for file in files_of(path, len(self.pools())):
                for left in (file, Path(f"{file}.partial"), Path(f"{file}.partial.changes")):
                    left.unlink(missing_ok=True)

    def remove_files(self):
        super().remove_files()
        self.remove_copies()

    def progress(self):
        return f"in round {sum(self.counts[kind] for kind in KINDS)}"

    def start(self):
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(self.words(False), stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while not self.program.judge(self.output.read_text(errors="replace")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Broken(f"the program did not get to work: {self.output.read_text(errors='replace')}")
            time.sleep(0.01)

    def copier(self, pool, new, base):
        """A copier of a pool to the file `new`: of all, or of what has changed since `base`."""
        pause = ["--pause"] if self.options.pause else []
        since = ["--incremental-since", str(base)] if base else []
        return subprocess.Popen([self.tool.program("stillpoint"), "copy", "--json", "--quiet", *pause, *since, str(pool), str(new)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finished_copy(self, copier):
        out, errors = copier.communicate(timeout=120)
        if copier.returncode != 0:
            raise Broken(f"stillpoint copy: exit code {copier.returncode}: {errors}")
        figures = json.loads(out)
        self.counts["resumed"] += figures["resumed"]
        self.counts["in use"] += figures["in_use"]
        if figures["in_use"]:
            self.held_ms.append(figures["held_ns"] / 1e6)
        self.last_copy_s = figures["elapsed_ns"] / 1e9
        return figures

    def take_copy(self, kind, new, base=None):
        """Copies each of the program's pools. Returns the acknowledgements that were there before the copy began."""
        before, pools = self.told(), self.pools()
        bases = files_of(base, len(pools)) if base else [None] * len(pools)
        disturbed = self.random.randrange(len(pools))
        for number, names in enumerate(zip(pools, files_of(new, len(pools)), bases)):
            self.take_file(kind if number == disturbed else "undisturbed", *names)
        return before

    def take_file(self, kind, pool, new, base):
        copier = self.copier(pool, new, base)
        if kind != "undisturbed":
            time.sleep(self.random.uniform(0, max(0.02, 1.2 * self.last_copy_s)))
        if kind == "the program is killed":
            kill(self.process)
        if kind == "the copier is killed":
            copier.kill()
            copier.communicate()
            if new.exists():  # The copier had ended.
                return
            copier = self.copier(pool, new, base)
        self.finished_copy(copier)

    def take_chain(self, kind):
        """A copy and up to INCREMENTS_MAX increments, each made as the program works; restored. What was acknowledged before the last."""
        before = self.take_copy("undisturbed", self.copy)
        chain = [self.copy]
        for new in self.increments[:self.random.randint(1, INCREMENTS_MAX)]:
            if self.process.poll() is not None:
                self.start()
            time.sleep(self.random.uniform(0, self.options.longest_ms / 1000))
            before = self.take_copy(kind, new, chain[-1])
            chain.append(new)
            self.counts["increments"] += 1
        self.restore(chain)
        return before

    def restore(self, chain):
        for files in zip(*(files_of(path, len(self.pools())) for path in (*chain, self.restored))):
            words = [self.tool.program("stillpoint"), "restore", "--quiet", *map(str, files)]
            restorer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0, 0.2))
            restorer.kill()
            restorer.wait()
            if files[-1].exists():
                continue
            self.counts["restores killed"] += 1
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Broken(f"stillpoint restore: exit code {done.returncode}: {done.stderr}")

    def told(self):
        path = getattr(self.program, "acknowledged", None)
        return path.read_bytes() if path is not None and path.exists() else None

    def judge_copy(self, copy, before):
        """Starts the program with the copy, until it ends by itself."""
        pool, told = self.pool, getattr(self.program, "acknowledged", None)
        try:
            self.pool = copy
            if told is not None:
                self.program.acknowledged = self.folder / "acknowledged-before"
                self.program.acknowledged.unlink(missing_ok=True)
                if before is not None:
                    self.program.acknowledged.write_bytes(before)
            self.last_run()
        finally:
            self.pool = pool
            if told is not None:
                self.program.acknowledged = told

    def round(self):
        kind = self.random.choice(KINDS)
        if self.process is None or self.process.poll() is not None:
            self.start()
        time.sleep(self.random.uniform(0, self.options.longest_ms / 1000))
        has_increments = self.random.random() < 0.5
        before = self.take_chain(kind) if has_increments else self.take_copy(kind, self.copy)
        if self.program.name in BEGUN and before:
            before = told_by_both(self.program.name, before, self.told())
        self.judge_copy(self.restored if has_increments else self.copy, before)
        self.remove_copies()
        self.counts[kind] += 1

    def run(self):
        begin = time.monotonic()
        try:
            for _ in range(self.options.rounds):
                self.round()
        finally:
            if self.process is not None:
                kill(self.process)
        for pool in self.pools():
            self.tool.check(pool)
        facts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        held = sorted(self.held_ms) or [0]
        print(f"copy_loop: {self.program.name} ({self.options.engine}, {self.options.tracker}, {self.options.medium}, "
              f"{self.options.durability}, seed {self.options.seed}): {facts}; held {held[len(held) // 2]:.1f} ms, at most {held[-1]:.1f}; "
              f"all promises kept in {time.monotonic() - begin:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", choices=list(PROGRAMS), help="default: the first that is written for the engine; bank")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--engine", help="default: the first of the build that the program is written for")
    parser.add_argument("--medium", default="auto", help="as of `stillpoint run`")
    parser.add_argument("--tracker", default="auto", help="as of `stillpoint run`")
    parser.add_argument("--durability", default="power", help="as of `stillpoint run`")
    parser.add_argument("--interval-ms", type=int, default=20)
    parser.add_argument("--longest-ms", type=int, default=200, help="a copy begins after this time at the latest")
    parser.add_argument("--directory", default="/usr/include", help="that word-index indexes")
    parser.add_argument("--pause", action="store_true", help="with stillpoint copy --pause")
    parser.add_argument("--binaries", help="folder of the programs (default build/bin)")
    parser.add_argument("--folder", help="for the pool and the output (default inside build/)")
    parser.add_argument("--pool-folder", help="for the pool alone, e.g. /dev/shm")
    parser.add_argument("--copy-folder", help="for the copies alone")
    parser.set_defaults(ceph_pool=None)  # Pools in Ceph are copied at rest only.
    options = parser.parse_args()
    if not settle_engine(options):
        print(f"copy_loop: skipped: no program for engine {options.engine or 'of ' + str(options.program)}")
        return SKIPPED
    options.folder = Path(options.folder or kill_loop.ROOT / "build" / "copy-loop")
    return run_loop(CopyLoop, options)


if __name__ == "__main__":
    sys.exit(main())
