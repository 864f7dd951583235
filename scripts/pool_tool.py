"""The stillpoint command, for programs that start, kill and examine others: the demo, the kill loop and the benchmarks."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ToolError(Exception):
    """A command of stillpoint failed where it should not have."""


class Tool:
    """build/bin/stillpoint, and the programs built beside it."""

    def __init__(self, binaries=None):
        self.binaries = Path(binaries) if binaries else ROOT / "build" / "bin"
        self.command = self.binaries / "stillpoint"

    def program(self, name):
        path = self.binaries / name
        if not path.is_file():
            raise ToolError(f"{path} is missing: build first (make)")
        return str(path)

    def run_words(self, pool, options, program, arguments):
        """The words of `stillpoint run`; options maps names (interval_ms) to values."""
        words = [self.program("stillpoint"), "run", "--quiet", "--pool", str(pool)]
        for name, value in options.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        return words + ["--", self.program(program), *map(str, arguments)]

    def _json(self, *words):
        done = subprocess.run([self.program("stillpoint"), *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"stillpoint {' '.join(map(str, words))}: exit code {done.returncode}: "
                            f"{(done.stderr or done.stdout).strip()}")
        return json.loads(done.stdout)

    def info(self, pool):
        return self._json("info", "--json", pool)

    def check(self, pool):
        """Verifies the whole pool; raises ToolError with the finding if it is not sound."""
        return self._json("check", "--json", pool)

    def stats(self, pool):
        return self._json("stats", "--json", pool)


class Watch:
    """Samples of the statistics of a running program, taken by `stillpoint stats --watch` until end()."""

    def __init__(self, tool, pool, seconds=0.025):
        self.lines = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([tool.program("stillpoint"), "stats", "--json", "--watch", str(seconds), str(pool)],
                                        stdout=self.lines, stderr=subprocess.DEVNULL)

    def end(self):
        """Stops the sampling. Returns the samples, oldest first."""
        kill(self.process)
        self.lines.seek(0)
        samples = [json.loads(line) for line in self.lines if line.endswith("\n")]
        self.lines.close()
        return samples


class Program:
    """A running program whose first lines say how it begins. Its output and errors are read together."""

    def __init__(self, words, first_line):
        """Returns when a line has matched `first_line`, a compiled pattern. Raises ToolError if none ever does."""
        self.began_ns = time.monotonic_ns()
        # Unbuffered: what follows the first line is left for finish(), and nothing is read ahead of a kill.
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
        self.output = ""
        self.first = None
        while self.first is None:
            line = self.process.stdout.readline().decode(errors="replace")
            self.output += line
            self.first = first_line.search(line)
            if not line:
                self.process.wait()
                self.process.stdout.close()
                raise ToolError(f"{Path(words[0]).name} did not get to work (exit code {self.process.returncode}): "
                                f"{self.output}")
        self.ready_ns = time.monotonic_ns()

    def rest(self):
        """The output to its end; the process has ended when this returns."""
        self.output += self.process.stdout.read().decode(errors="replace")
        self.process.stdout.close()
        self.process.wait()
        return self.output


def kill(process):
    """SIGKILL, as a power cut comes: no warning, no handler. `stillpoint run` has become the program itself, so
    there is no other process. Returns the monotonic time in ns just before, and whether it was still running."""
    running = process.poll() is None
    moment_ns = time.monotonic_ns()
    if running:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return moment_ns, running and process.returncode == -signal.SIGKILL


def table(headings, rows):
    """Right-aligned columns under their headings, as lines."""
    cells = [list(headings)] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in cells]
