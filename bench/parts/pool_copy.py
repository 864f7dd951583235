"""The cost of `stillpoint copy` to a program whose pool of 1 GiB it copies, and its time."""

import dataclasses
import json
import subprocess

from driver.benchmark import table
from driver.errors import WorkerFailed
from driver.sides import Side
from driver.tables import duration

DESCRIPTION = """\
The cost of `stillpoint copy` to a program whose pool of 1 GiB it copies, and its time.

The worker is that of stop_time: it fills the heap, then writes a word in a page at random, each time under a lock. It does
so as fast as it can, and in a second row paced, so that the wished part of the pages is written in each interval. Slices without a
copy and slices during one take turns. Latency is what the program itself saw of an operation. The time of a copy is given without its
verification; the hold is the time for which the program's writes to its pool were held back."""
SECONDS = 10
PAGES_PER_MIB = 256
SLICE_MS = 250
AS_FAST_AS_IT_CAN = 10_000_000  # pages a second: more than there is time for


def add_options(parser):
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--heap-mib", type=int, default=1024)
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--part", type=float, default=1.0, help="percent of the heap's pages written in each interval, when paced")


def middle(values):
    return sorted(values)[len(values) // 2]


def copy_during(bench, process, new):
    """A copy, and the slices that the program worked meanwhile."""
    copier = subprocess.Popen([bench.place.tool.program("stillpoint"), "copy", "--json", "--quiet", str(process.pool), str(new)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    slices = [process.slice(SLICE_MS)]
    while copier.poll() is None:
        slices.append(process.slice(SLICE_MS))
    out, errors = copier.communicate()
    new.unlink(missing_ok=True)
    if copier.returncode != 0:
        raise WorkerFailed(f"stillpoint copy: exit code {copier.returncode}: {errors}")
    return json.loads(out), slices[:-1] or slices  # The last one went on after the copy.


def figures_of(slices):
    return {"operations_per_s": sum(one["operations"] for one in slices) / sum(one["wall_ns"] for one in slices) * 1e9,
            "latency_ns_p99": middle([one["latency_ns_p99"] for one in slices]),
            "latency_ns_max": max(one["latency_ns_max"] for one in slices)}


def measure_side(bench, side, settings, copies):
    process, folder, alone, during, made = None, bench.place.folder(side), [], [], []
    try:
        process = bench.place.start(side, settings, folder=folder)
        process.slice(1000)  # not counted: the checkpoints that follow the filling
        for _ in range(copies):
            alone += [process.slice(SLICE_MS) for _ in range(4)]
            figures, slices = copy_during(bench, process, process.pool.with_suffix(".copied"))
            made.append(figures)
            during += slices
        process.kill()
    finally:
        if process:
            process.destroy()
            bench.place.remove(process)
    before, meanwhile = figures_of(alone), figures_of(during)
    return {"name": side.name, "copies": copies, "without": before, "during": meanwhile,
            "speed": meanwhile["operations_per_s"] / before["operations_per_s"],
            "copy_ns": middle([one["elapsed_ns"] for one in made]), "held_ns": middle([one["held_ns"] for one in made]),
            "held_ns_max": max(one["held_ns"] for one in made), "passes": middle([one["passes"] for one in made]),
            "bytes_read": middle([one["bytes_read"] for one in made])}


def measure(bench):
    options = bench.options
    heap_mib, copies = (64, 1) if options.quick else (options.heap_mib, options.copies)
    paced = int(heap_mib * PAGES_PER_MIB * options.part / 100 * 1000 / options.interval_ms)
    usual = Side("", "stop_time_worker", (("interval-ms", options.interval_ms), ("pool-size-mb", heap_mib + 128)))
    found = []
    for where, medium, durability in (("shared memory, process", "memory", "process"), ("disk, power", "file", "power")):
        for load, rate in (("as fast as it can", AS_FAST_AS_IT_CAN), ("paced", paced)) if bench.place.folders[medium] else ():
            bench.progress.step(f"{where}, {load}")
            side = dataclasses.replace(usual, name=f"{where}, {load}", medium=medium, run=(*usual.run, ("durability", durability)))
            found.append(measure_side(bench, side, {"heap_mib": heap_mib, "pages_per_second": rate}, copies))
    return {"heap_mib": heap_mib, "configurations": found}


def lines(result):
    rows = [[one["name"], f"{one['copy_ns'] / 1e9:.1f} s", one["passes"], f"{one['speed']:.2f}",
             *(duration(one[when][name]) for name in ("latency_ns_p99", "latency_ns_max") for when in ("without", "during")),
             duration(one["held_ns"]), duration(one["held_ns_max"])] for one in result["configurations"]]
    return [f"copies of a running program's pool: heap of {result['heap_mib']} MiB",
            *table(["pool, load", "copy", "passes", "speed", "latency p99", "during", "max", "during", "hold", "longest"], rows)]
