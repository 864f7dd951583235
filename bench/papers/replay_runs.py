"""Runs of bench_replay_cell (bench/parts): replay of logs that are made up, or that a killed program has left, and its cache misses."""

import dataclasses
import json
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from driver.build import make_sure_of
from driver.errors import UNAVAILABLE, BenchError
from driver.figures import spread
from driver.process import Process

from . import model, readings
from .figure import OtherRun

PROGRAM = "bench_replay_cell"
WRITES, QUICK_WRITES = 2_000_000, 50_000
ROUNDS = 7
CAPTURE_THREADS = 8
CAPTURE_S, QUICK_CAPTURE_S = 2.0, 0.2
POOL_MIB = 1024
SHARDS = (1, 2, 4, 8, 16)
CACHE = "32768,8,64"  # of one core: bytes, ways, bytes of a line


def program(options):
    path = options.binaries / PROGRAM
    make_sure_of([path])
    if not path.is_file():
        raise BenchError(f"{path} was not built: make build-bench", UNAVAILABLE)
    return path


def output_of(words, what):
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{what} failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def per_second(count, ns):
    return [1e9 * count / one for one in ns]


def ratios(ns, other_ns):
    """How many times faster than the other, by round."""
    return spread([other / one for one, other in zip(ns, other_ns)])


class Sides:
    """The answer of bench_replay_cell, by order of records, filter and number of replayers."""

    def __init__(self, found):
        self.writes = found["writes"]
        self.ns = {(side["links"], side["filter"], side["replayers"]): side["ns"] for side in found["sides"]}
        self.shards = {(one["filter"], one["replayers"]): one["ns"] for one in found["shards"]}

    def configuration(self, name, links, filtered, replayers):
        ns = self.ns[links, filtered, replayers]
        alone = min(self.ns[links, filtered, 1])  # a part's time is its shortest too
        parts = {count: alone / slowest for (kind, count), slowest in self.shards.items() if kind == filtered and links}
        return {"engine": name, "kind": "engine", "rate": spread(per_second(self.writes, ns)), "to_volatile": None,
                "to_sorting": ratios(ns, self.ns[False, filtered, replayers]), "to_one_sorting": ratios(ns, self.ns[False, filtered, 1]),
                "to_one": ratios(ns, self.ns[links, filtered, 1]), "to_one_if_apart": parts}


# The systems of these runs: (along links, filtered).
WAYS = {"sorting": (False, False), "links": (True, False), "sorting, filter": (False, True), "links, filter": (True, True)}


@dataclasses.dataclass(frozen=True)
class ReplayRun(OtherRun):
    """Logs that are made up. `duplicates`: percent; None: words are drawn at random."""

    heap_mib: int = 1
    writes_each: int = 1
    duplicates: int = None
    logs: int = 64

    def facts(self, system, reads, value_bytes, operation_size):
        return {**super().facts(system, reads, value_bytes, operation_size), "heap_mib": self.heap_mib, "writes_each": self.writes_each,
                "duplicates": self.duplicates, "engine": system.engine}

    def title(self, reads, value_bytes, operation_size):
        duplicates = "" if self.duplicates is None else f", {self.duplicates} % duplicates"
        return f"heap of {self.heap_mib} MiB, {self.writes_each} write{'s' if self.writes_each > 1 else ''} each{duplicates}"

    def commands(self, engines_here):
        words = [PROGRAM, f"heap_mib={self.heap_mib}", f"writes_each={self.writes_each}", f"logs={self.logs}"]
        return [(self.systems, words if self.duplicates is None else [*words, f"duplicates={self.duplicates}"])]

    def command(self, arguments):
        return " ".join(["build/bin/" + arguments[0], *arguments[1:], f"writes={WRITES}", f"rounds={ROUNDS}"])

    def document(self, measurements, arguments):
        def run(options):
            words = [program(options), *arguments[1:], f"writes={QUICK_WRITES if options.quick else WRITES}",
                     f"rounds={1 if options.quick else ROUNDS}"]
            return json.loads(output_of(words, PROGRAM))

        found = measurements.of(arguments, run)
        return found if "failed" in found else {"cells": self.cells_from(Sides(found))}

    def cells_from(self, sides):
        return [{"workload": self.workload, "threads": replayers, "configurations": [
            sides.configuration(system.engine, *WAYS[system.engine], replayers) for system in self.systems
            if (*WAYS[system.engine], replayers) in sides.ns]} for replayers in self.threads]


def kill_amid_work(options, workload, folder):
    """A pool whose logs have what the workload's transactions wrote with forward links; nothing of it is replayed in time."""
    pool = folder / "pool"
    words = [options.binaries / "stillpoint", "run", "--quiet", "--pool", pool, "--engine", "spht", "--durability", "power", "--medium",
             "memory", "--pool-size-mb", POOL_MIB, "--interval-ms", 3_600_000, "--linking", "forward", "--",
             options.binaries / "bench_worker_spht", workload, f"threads={CAPTURE_THREADS}", f"smoke={int(options.quick)}"]
    make_sure_of([options.binaries / "bench_worker_spht"])
    with Process(workload, words) as process:
        process.ask("mortal", int(600e9), folder / "progress")
        time.sleep(QUICK_CAPTURE_S if options.quick else CAPTURE_S)
        process.kill()
    return pool


def missed(options, pool, shards):
    """Accesses to the first data cache and its misses, of one of so many replayers: counted by the processor, otherwise simulated."""
    words = [program(options), f"pool={pool}", "shard=0", f"shards={shards}"]
    counted = json.loads(output_of(words, PROGRAM))
    if counted:
        return {"accesses": counted["loads"], "misses": counted["misses"], "by": "counters"}
    if shutil.which("valgrind") is None:
        raise BenchError("no counters of cache misses here, and no valgrind to simulate a cache (apt-get install valgrind)", UNAVAILABLE)
    with tempfile.NamedTemporaryFile(prefix="stillpoint-callgrind-") as out:
        output_of(["valgrind", "--tool=callgrind", "--cache-sim=yes", f"--D1={CACHE}", "--collect-atstart=no",
                   "--toggle-collect=*replay_one_shard*", f"--callgrind-out-file={out.name}", *words], "valgrind")
        return simulated_misses(Path(out.name).read_text(encoding="utf-8"))


def all_missed(options, pool):
    """By the number of replayers; or why there is nothing, which takes the times of the same logs nothing away."""
    try:
        return {"misses": {str(shards): missed(options, pool, shards) for shards in (SHARDS[:2] if options.quick else SHARDS)}}
    except BenchError as failure:
        return {"no_misses": str(failure)}


def simulated_misses(text):
    """Reads and writes together, of callgrind's file."""
    events = re.search(r"^events: (.*)$", text, re.MULTILINE).group(1).split()
    totals = re.search(r"^(?:totals|summary): (.*)$", text, re.MULTILINE).group(1).split()
    counts = dict(zip(events, map(int, totals)))
    return {"accesses": counts.get("Dr", 0) + counts.get("Dw", 0), "misses": counts.get("D1mr", 0) + counts.get("D1mw", 0),
            "by": "simulation"}


@dataclasses.dataclass(frozen=True)
class ProgramReplayRun(ReplayRun):
    """The logs of a transactional program that was killed. `misses`: those of the cache instead of times."""

    misses: bool = False

    def title(self, reads, value_bytes, operation_size):
        return self.workload

    def commands(self, engines_here):
        return [(self.systems, [PROGRAM, f"logs of {self.workload}"])]

    def command(self, arguments):
        return "python3 bench/run.py papers --paper spht --figure " + ("'table 2'" if self.misses else "8")

    def document(self, measurements, arguments):
        def run(options):
            folder = Path(tempfile.mkdtemp(prefix="stillpoint-bench-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
            try:
                pool = kill_amid_work(options, self.workload, folder)
                found = json.loads(output_of([program(options), f"pool={pool}", f"rounds={1 if options.quick else ROUNDS}"], PROGRAM))
                return {**found, **all_missed(options, pool)}
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        found = measurements.of(arguments, run)
        if "failed" in found or (self.misses and "misses" not in found):
            return {"failed": found.get("failed") or found["no_misses"]}
        return {"cells": self.cells_of_misses(found) if self.misses else self.cells_from(Sides(found))}

    def cells_of_misses(self, found):
        every = {int(shards): one for shards, one in found["misses"].items()}
        return [{"workload": self.workload, "threads": replayers, "configurations": [
            {"engine": self.systems[0].engine, "kind": "engine", "misses": every[replayers], "misses_of_all": every}]}
            for replayers in self.threads if replayers in every]


def configuration_of(document, row, replayers):
    cells = [cell for cell in document.get("cells", []) if cell["threads"] == replayers]
    return next((one for cell in cells for one in cell["configurations"] if one["engine"] == row.facts["engine"]), None) or {}


def if_apart(figure, _measurements, row, document):
    """For Figure.simulated: each replayer's part measured without the others, so the machine has a core and a memory for each."""
    parts = {int(count): ratio for count, ratio in configuration_of(document, row, 1).get("to_one_if_apart", {}).items()}
    measured = configuration_of(document, row, 2).get("to_one")
    error = parts[2] / measured["median"] - 1 if measured and 2 in parts else None
    kind = "model" if model.is_trusted(error) else "model, not trustworthy"
    return {threads: f"{kind}: {parts[threads]:.2f}x of one" + ("" if error is None else f" ({error:+.0%} at 2)")
            for threads in figure.model_threads if threads in parts}


def more_misses(figure, _measurements, row, document):
    """For Figure.simulated: numbers of replayers beyond this machine's cores, whose caches can be simulated like those of the first two."""
    found = configuration_of(document, row, 1).get("misses_of_all", {})
    return {threads: show_misses(share_of_misses(found[threads])) for threads in figure.model_threads if threads in found}


def share_of_misses(one):
    return one["misses"] / one["accesses"], one["by"]


def show_misses(value):
    return f"{100 * value[0]:.2f} %" + (" (simulated)" if value[1] == "simulation" else "")


MISSES = readings.Reading("accesses to the first data cache of a core that miss, of one of so many replayers",
                          lambda row, _cell: share_of_misses(row["misses"]) if row.get("misses") else None, show_misses)
