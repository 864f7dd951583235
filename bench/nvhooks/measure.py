"""Workers of the NVHooks benchmark and their rounds: what paired.py is for the others, with a load phase and a mix that changes."""

import os
import random
import statistics
import subprocess
import sys

from paired import Slice, ToolError, kill

RATES_MIX = {"A": 50, "B": 5}  # YCSB: percent of updates


class YcsbWorker:
    """A process that loads a store when it is made, and then waits for run()."""

    def __init__(self, words, pool):
        self.pool = pool
        environment = {**os.environ, "PMEM_IS_PMEM_FORCE": "1", "STILLPOINT_QUIET": "1"}
        self.words = [str(word) for word in words]
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.load = Slice(*map(int, self._line("load")[1:]))
        self._line("ready")

    def _line(self, expected=None):
        words = self.process.stdout.readline().split()
        if not words or (expected is not None and words[0] != expected):
            raise ToolError(f"{self.words[-5]} ended with exit code {self.process.wait()} or said {words}")
        return words

    def run(self, mix, milliseconds):
        self.process.stdin.write(f"run {RATES_MIX[mix]} {int(milliseconds * 1e6)}\n")
        self.process.stdin.flush()
        return Slice(*map(int, self._line()))

    def end(self):
        """Ends it and removes its pool. Raises ToolError if it found its store broken."""
        self.process.stdin.close()
        self.process.stdout.close()
        code = self.process.wait()
        self.pool.unlink(missing_ok=True)
        if code != 0:
            raise ToolError(f"{self.words[-5]} ended with exit code {code}")

    def destroy(self):
        if self.process.poll() is None:
            kill(self.process)
        self.pool.unlink(missing_ok=True)


class Progress:
    """One line on a terminal, written over; nothing where there is none."""

    def __init__(self, quiet):
        self.quiet = quiet or not sys.stderr.isatty()

    def say(self, text):
        if not self.quiet:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def done(self):
        self.say("")


def ratio_facts(mine, base):
    """Median and quartiles of the rounds' ratios, and the median of those of CPU time for each operation."""
    ratios = sorted(one.rate / other.rate for one, other in zip(mine, base))
    cpu = [one.cpu_per_operation / other.cpu_per_operation for one, other in zip(mine, base)]
    return {"ratio": statistics.median(ratios), "quartiles": [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]],
            "cpu_ratio": statistics.median(cpu), "rounds": len(ratios)}


def ycsb_rounds(configurations, make, rounds, slice_ms, progress, title):
    """{configuration: {"load" | "A" | "B": [slice of each round]}}. `make(configuration)` starts a worker, which loads; in each
    round all load again, in another order; those of the last round run the mixes."""
    generator = random.Random(1)
    order = list(configurations)

    def shuffled(_number):
        generator.shuffle(order)
        return order

    return alternate(configurations, make, shuffled, (rounds, rounds), (slice_ms / 2, slice_ms), progress, title)


def pair_rounds(make, names, loads, pairs, slice_ms, progress, title):
    """Two configurations alone, in slices that alternate closely: {name: {"load" | "A" | "B": [slice of each pair]}}."""
    def there_and_back(number):
        return names if number % 2 == 0 else names[::-1]

    return alternate(names, make, there_and_back, (loads, pairs), (slice_ms, slice_ms), progress, title)


def alternate(names, make, order_of, counts, durations_ms, progress, title):
    """The rounds of both: `order_of(number)` is the order of a round, `counts` how many rounds load and how many run each mix,
    `durations_ms` how long the first, cold slice of a worker in a mix is, which is not counted, and each that is."""
    slices = {name: {"load": [], "A": [], "B": []} for name in names}
    loads, rounds = counts
    cold_ms, slice_ms = durations_ms
    workers = {}
    try:
        for number in range(loads):
            for name in order_of(number):
                progress.say(f"{title}: load, round {number + 1} of {loads}: {name}")
                if name in workers:
                    workers.pop(name).end()
                workers[name] = make(name)
                slices[name]["load"].append(workers[name].load)
        for mix in RATES_MIX:
            for worker in workers.values():
                worker.run(mix, cold_ms)
            for number in range(rounds):
                progress.say(f"{title}: workload {mix}, round {number + 1} of {rounds}")
                for name in order_of(number):
                    slices[name][mix].append(workers[name].run(mix, slice_ms))
        for name in list(workers):
            workers.pop(name).end()
        return slices
    finally:
        for worker in workers.values():
            worker.destroy()
