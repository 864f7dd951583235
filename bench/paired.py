"""The paired harness: one worker process per configuration, working in turn, in slices of 100 to 500 ms.

A process has one pool, so configurations that are to be compared are processes (harness/worker.hpp has their
commands). Machines drift, by a quarter within minutes; so a ratio is taken between two slices of the same round, some
hundred milliseconds apart, and the median of the rounds' ratios is what counts. In each round the order is shuffled.
While one worker works the others wait for a command, and before it hands over it waits until what it wrote is
durable: no worker's checkpoint runs in another's slice. Nothing is pinned to a CPU.
"""

import argparse
import dataclasses
import os
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from pool_tool import ROOT, Tool, ToolError, Watch, kill, table  # noqa: E402  (the path must be set first)

__all__ = ["ROOT", "Configuration", "StopTimes", "Tool", "ToolError", "Watch", "Worker", "common_arguments", "kill", "pool_folders",
           "run_rounds", "table"]


@dataclasses.dataclass
class Configuration:
    """What to start, and how: `options` are those of `stillpoint run`, None where it runs without Stillpoint."""

    name: str
    program: str
    pool: Path = None
    options: dict = None


@dataclasses.dataclass
class Slice:
    operations: int
    wall_ns: int
    cpu_ns: int
    settle_cpu_ns: int

    @property
    def rate(self):
        """Operations per second of wall time, the wait at the end left out."""
        return self.operations / self.wall_ns * 1e9

    @property
    def cpu_per_operation(self):
        """CPU time of the whole process, what it still had to write included."""
        return (self.cpu_ns + self.settle_cpu_ns) / max(1, self.operations)


class Worker:
    """A worker process that has built its data."""

    def __init__(self, tool, configuration, arguments, environment=None):
        self.configuration = configuration
        if configuration.options is None:
            words = [tool.program(configuration.program), *map(str, arguments)]
        else:
            words = tool.run_words(configuration.pool, configuration.options, configuration.program, arguments)
        self.notes = {}
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self._answer("ready")

    def _answer(self, expected=None):
        """The next answer; lines that begin with another word are notes: kept by that word."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise ToolError(f"the worker of \"{self.configuration.name}\" ended with exit code {self.process.wait()}")
            words = line.split()
            if words == [expected] or (expected is None and words[0].isdigit()):
                return [int(word) for word in words] if expected is None else words
            self.notes.setdefault(words[0], []).append([int(word) for word in words[1:]])

    def slice(self, milliseconds):
        self.process.stdin.write(f"run {int(milliseconds * 1e6)}\n")
        self.process.stdin.flush()
        return Slice(*self._answer())

    def end(self):
        """Ends it normally; raises ToolError if it found its data broken."""
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise ToolError(f"the worker of \"{self.configuration.name}\" ended with exit code {self.process.returncode}")

    def destroy(self):
        """After a failure: no process is left behind."""
        if self.process.poll() is None:
            kill(self.process)


class StopTimes:
    """The stop time of each checkpoint while the object lives, and how many checkpoints there were. The runtime's
    own percentiles are of the whole run: the filling of the workload's data would be in them."""

    def __init__(self, tool, pool):
        self.watch = Watch(tool, pool)

    def end(self):
        samples = self.watch.end()
        # The last sample of each epoch shows the stop that began the epoch; the first epoch began before the watch.
        stops = {sample["epoch"]: sample["stop_ns_last"] for sample in samples}
        times = sorted(list(stops.values())[1:])
        if not times:
            return {}
        first, last = samples[0], samples[-1]
        grown = {name: last[name] - first[name] for name in
                 ("checkpoints", "stretched_intervals", "withdrawn_attempts", "bytes_written", "dirty_pages_total")}
        return {"stop_ns_p50": times[len(times) // 2], "stop_ns_p99": times[min(len(times) - 1, len(times) * 99 // 100)],
                "stop_ns_max": times[-1], "stops": len(times), **grown}


@dataclasses.dataclass
class Outcome:
    """One configuration in all rounds, and against the baseline of the same round."""

    name: str
    slices: list
    baseline: list

    def ratios(self):
        return [mine.rate / base.rate for mine, base in zip(self.slices, self.baseline)]

    def cpu_ratios(self):
        return [mine.cpu_per_operation / base.cpu_per_operation for mine, base in zip(self.slices, self.baseline)]

    def facts(self):
        ratios = sorted(self.ratios())
        return {
            "name": self.name,
            "operations_per_second": statistics.median(one.rate for one in self.slices),
            "ratio": statistics.median(ratios),
            "ratio_quartiles": [ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]],
            "cpu_ratio": statistics.median(self.cpu_ratios()),
            "rounds": len(ratios),
        }


def run_rounds(workers, slice_ms, seconds, seed=1):
    """Slices in turn for about `seconds`, at least five rounds. The first worker is the baseline."""
    rounds = max(5, int(seconds * 1000 / (slice_ms * len(workers))))
    order = list(range(len(workers)))
    generator = random.Random(seed)
    slices = [[] for _ in workers]
    for worker in workers:
        worker.slice(slice_ms)  # not counted: caches and branch predictors of a new process are cold
    for _ in range(rounds):
        generator.shuffle(order)
        for index in order:
            slices[index].append(workers[index].slice(slice_ms))
    return [Outcome(worker.configuration.name, slices[i], slices[0]) for i, worker in enumerate(workers)]


def common_arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15, help="for the measured slices of each benchmark (default 15)")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    parser.add_argument("--binaries", help="folder of the programs (default build/bin)")
    parser.add_argument("--interval-ms", type=int, default=100)
    return parser


def shared_memory_folder():
    """tmpfs, where it can be written: a pool there costs no disk. None where there is none."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None


class pool_folders:
    """Folders for pools on disk and in shared memory, removed at the end; (disk, shared memory or None)."""

    def __init__(self, name):
        self.disk = ROOT / "build" / "bench" / f"{name}-{os.getpid()}"
        parent = shared_memory_folder()
        self.shared = parent / f"stillpoint-bench-{name}-{os.getpid()}" if parent else None

    def __enter__(self):
        for folder in filter(None, (self.disk, self.shared)):
            folder.mkdir(parents=True, mode=0o700)
        return self.disk, self.shared

    def __exit__(self, *_):
        for folder in filter(None, (self.disk, self.shared)):
            shutil.rmtree(folder, ignore_errors=True)
