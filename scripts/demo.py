#!/usr/bin/env python3
"""The demo: word-index builds an index, is killed with SIGKILL at random moments, and still finishes.

First it runs word-index in ordinary memory, for comparison. Then it runs the same program under `stillpoint run`,
kills it at random moments, starts it again each time, and lets the last run finish. At the end the index must be, byte
for byte, the one that the undisturbed program built. How each column of the table is measured:

  epoch recovered  what `stillpoint info` says of the pool after the kill, before the restart
  at start         files done when the run began: the durable counter, printed by the program in its first line
  at kill          files done when it was killed. For each finished file the program appends a line with the time to an
                   ordinary file, which outlives it
  files lost       files done at the kill, and not done when the next run began
  work lost        from the moment at which the recovered count of files was reached, to the kill
  recovery         from opening the pool to the program's first operation, by the runtime's own statistics
  ready            from starting the process to the program's first line: also loading and listing the directory

Exit code 0: the indexes are identical. 1: they are not, or a run failed.
"""

import argparse
import dataclasses
import filecmp
import os
import random
import re
import shutil
import sys
import time
from pathlib import Path

from pool_tool import ROOT, Program, Tool, ToolError, kill, table

START = re.compile(r"start: (.*); (\d+) of (\d+) files done, (\d+) interrupted")
INDEXED = re.compile(r"indexed (\d+) files in ([\d.]+) s")
DIGEST = re.compile(r"digest ([0-9a-f]{16})")
HEADINGS = ["run", "began", "epoch recovered", "at start", "at kill", "files lost", "work lost", "recovery", "ready", "ran"]


@dataclasses.dataclass
class Row:
    """One run in the table."""

    number: int
    began: str
    epoch: object            # recovered; "-" for the first run
    done_at_start: int
    done_at_end: int = 0
    recovery_ms: object = None
    ready_ms: float = 0.0
    ran_s: float = 0.0
    killed_ns: object = None  # monotonic; None: it finished
    progress: list = dataclasses.field(default_factory=list)
    ready_ns: int = 0
    lost_files: object = None
    lost_ms: object = None

    def settle(self, recovered):
        """The loss by the kill is known when the next run has said where it begins."""
        self.lost_files = max(0, self.done_at_end - recovered)
        reached = [moment for moment, done in self.progress if done <= recovered]
        since_ns = max(reached) if reached else self.ready_ns
        self.lost_ms = (self.killed_ns - since_ns) / 1e6 if self.lost_files else 0.0

    def cells(self):
        def text(value, form="{}"):
            return "-" if value is None else form.format(value)

        end = str(self.done_at_end) if self.killed_ns else f"finished: {self.done_at_end}"
        return [self.number, self.began, self.epoch, self.done_at_start, end, text(self.lost_files),
                text(self.lost_ms, "{:.0f} ms"), text(self.recovery_ms, "{:.1f} ms"), f"{self.ready_ms:.0f} ms",
                f"{self.ran_s:.2f} s"]


def read_progress(path):
    """[(monotonic ns, files done)], in order of files done; a line cut off by the kill is left out."""
    lines = []
    if path.exists():
        for line in path.read_text().splitlines(keepends=True):
            words = line.split()
            if len(words) == 2 and line.endswith("\n"):
                lines.append((int(words[0]), int(words[1])))
    return sorted(lines, key=lambda entry: entry[1])


def results(output, program):
    """(seconds of indexing, digest) of a run that ended normally."""
    indexed, digest = INDEXED.search(output), DIGEST.search(output)
    if program.process.returncode != 0 or not indexed or not digest:
        raise ToolError(f"word-index failed (exit code {program.process.returncode}): {output}")
    return float(indexed.group(2)), digest.group(1)


class Demo:
    def __init__(self, arguments):
        self.arguments = arguments
        self.tool = Tool(arguments.binaries)
        self.random = random.Random(arguments.seed)
        self.folder = Path(arguments.folder)
        self.pool = self.folder / "word-index.pool"
        self.rows = []

    def program_arguments(self, name):
        return ["--threads", self.arguments.threads, "--dump", self.folder / f"{name}.txt",
                "--progress", self.folder / f"{name}.progress", self.arguments.directory]

    def volatile_run(self):
        words = [self.tool.program("word-index"), *map(str, self.program_arguments("volatile"))]
        program = Program(words, START)
        seconds, digest = results(program.rest(), program)
        files = int(program.first.group(3))
        print(f"   {files} files in {seconds:.2f} s with {self.arguments.threads} threads; digest {digest}\n")
        return files, seconds, digest

    def interval_ms(self, seconds):
        """The default, unless the whole work takes but a few of them: then there would be little to keep."""
        return self.arguments.interval_ms or max(5, min(100, int(seconds * 1000 / 40)))

    def start(self, interval_ms, epoch):
        """Starts the next run; returns its program and its row of the table."""
        options = {"interval_ms": interval_ms, "durability": self.arguments.durability}
        number = len(self.rows) + 1
        program = Program(self.tool.run_words(self.pool, options, "word-index", self.program_arguments(f"run-{number}")),
                          START)
        row = Row(number, program.first.group(1), epoch, int(program.first.group(2)), ready_ns=program.ready_ns,
                  ready_ms=(program.ready_ns - program.began_ns) / 1e6)
        if self.rows:
            self.rows[-1].settle(row.done_at_start)
            try:
                row.recovery_ms = self.tool.stats(self.pool)["recovery_ns"] / 1e6
            except ToolError:
                pass  # the run ended before it could be asked
        self.rows.append(row)
        return program, row

    def kill_at_random(self, program, row, share_s):
        """True if the program was killed while it worked."""
        # Around the share of the remaining work that is this run's, so that the last run has some left.
        deadline = program.ready_ns / 1e9 + self.random.uniform(0.2, 1.5) * share_s
        while time.monotonic() < deadline and program.process.poll() is None:
            time.sleep(min(0.01, max(0.0, deadline - time.monotonic())))
        killed_ns, was_killed = kill(program.process)
        row.ran_s = (killed_ns - program.ready_ns) / 1e9
        row.progress = read_progress(self.folder / f"run-{row.number}.progress")
        row.done_at_end = row.progress[-1][1] if row.progress else row.done_at_start
        if was_killed:
            row.killed_ns = killed_ns
            program.process.stdout.close()
        return was_killed

    def durable_runs(self, files, seconds):
        """Runs, kills and restarts until the index is finished. Returns (kills, digest)."""
        interval_ms = self.interval_ms(seconds)
        print(f"2. The same under `stillpoint run`, a checkpoint every {interval_ms} ms, durability "
              f"{self.arguments.durability}, with {self.arguments.kills} kills (seed {self.arguments.seed})")
        epoch = "-"
        for kills_left in range(self.arguments.kills, -1, -1):
            program, row = self.start(interval_ms, epoch)
            print(f"   run {row.number}: {row.began}, {row.done_at_start} of {files} files done", end="")
            share_s = seconds * (1 - row.done_at_start / files) / (kills_left + 1)
            if kills_left == 0 or not self.kill_at_random(program, row, share_s):
                break
            print(f"; SIGKILL after {row.ran_s * 1000:.0f} ms at {row.done_at_end} files")
            self.tool.check(self.pool)
            epoch = self.tool.info(self.pool)["durable_epoch"]
        row.ran_s, digest = results(program.rest(), program)
        row.done_at_end = files
        print("; it finished")
        return len(self.rows) - 1, digest

    def run(self):
        print(f"1. word-index of {self.arguments.directory} in ordinary memory")
        files, seconds, digest = self.volatile_run()
        if files == 0:
            raise ToolError(f"{self.arguments.directory} holds no files")
        kills, durable_digest = self.durable_runs(files, seconds)
        print()
        for line in table(HEADINGS, [row.cells() for row in self.rows]):
            print("   " + line)
        volatile_dump = self.folder / "volatile.txt"
        identical = digest == durable_digest and filecmp.cmp(
            volatile_dump, self.folder / f"run-{len(self.rows)}.txt", shallow=False)
        print(f"\n3. The two indexes as sorted text of {volatile_dump.stat().st_size / 1e6:.1f} MB: digest {digest} "
              f"without Stillpoint, {durable_digest} with it and {kills} kills: "
              f"{'identical' if identical else 'DIFFERENT'}")
        if kills < self.arguments.kills:
            print(f"   Only {kills} of {self.arguments.kills} kills came in time: the directory is too small for more.")
        return 0 if identical else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", default="/usr/include", help="directory to index (default /usr/include)")
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None, help="of the random moments; printed, to repeat a run")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--interval-ms", type=int, help="default: 100, less where the whole work takes under 4 s")
    parser.add_argument("--durability", choices=["power", "process"], default="power")
    parser.add_argument("--binaries", help="folder of the programs (default build/bin)")
    parser.add_argument("--folder", default=str(ROOT / "build" / "demo"), help="for the pool and the dumps")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    arguments = parser.parse_args()
    if arguments.kills < 1:
        parser.error("--kills takes a number from 1")
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 32)
    shutil.rmtree(arguments.folder, ignore_errors=True)
    Path(arguments.folder).mkdir(parents=True)
    sys.stdout.reconfigure(line_buffering=True)
    try:
        return Demo(arguments).run()
    except ToolError as failure:
        print(f"demo: {failure}", file=sys.stderr)
        return 1
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
