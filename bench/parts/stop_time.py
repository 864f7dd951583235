"""Stop time of a large heap of which a small part is written in each interval; then its recovery after a kill."""

import dataclasses

from driver.benchmark import table
from driver.errors import WorkerFailed
from driver.sides import Side, Watch
from driver.tables import duration

DESCRIPTION = """\
Stop time of a large heap of which a small part is written in each interval; then its recovery after a kill.

The worker fills the heap, then writes single pages at random, paced so that the wished part of the heap is written in
each interval. Stop times are the runtime's statistics, sampled for each checkpoint; latency is what the program itself saw of its
operations (lock, write a word, unlock), stops included. Then the process is killed with SIGKILL and started
again. Recovery is given twice: by the runtime's statistics (from opening the pool to the program's first
operation) and by the clock on the wall (from starting the process, so with exec and loading, to the end of its
first operation on the recovered heap)."""
SECONDS = 15
PAGES_PER_MIB = 256
SLICE_MS = 2000  # long: the handing over would otherwise be a part of what is measured
GROWING = ("checkpoints", "stretched_intervals", "withdrawn_attempts", "bytes_written", "dirty_pages_total")


def add_options(parser):
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--heap-mib", type=int, default=1024)
    parser.add_argument("--trackers", default="uffd,hooks", help="comma-separated (default %(default)s)")
    parser.add_argument("--part", type=float, default=1.0, help="percent of the heap's pages written in each interval")


def stops_of(samples):
    """The stop time of each checkpoint among the samples, and how many there were. The runtime's own percentiles are of the whole run:
    the filling of the heap would be in them."""
    # The last sample of each epoch shows the stop that began the epoch; the first epoch began before the watch.
    times = sorted(list({sample["epoch"]: sample["stop_ns_last"] for sample in samples}.values())[1:])
    if not times:
        raise WorkerFailed("there was no checkpoint while the program worked")
    return {"stop_ns_p50": times[len(times) // 2], "stop_ns_p99": times[min(len(times) - 1, len(times) * 99 // 100)],
            "stop_ns_max": times[-1], "stops": len(times), **{name: samples[-1][name] - samples[0][name] for name in GROWING}}


def measure_side(bench, side, settings, seconds):
    tool, process = bench.place.tool, None
    folder = bench.place.folder(side)
    try:
        process = bench.place.start(side, settings, folder=folder)
        process.slice(1000)  # not counted: the checkpoints that follow the filling
        watch = Watch(tool, process.pool)
        try:
            slices = [process.slice(SLICE_MS) for _ in range(max(1, int(seconds * 1000 / SLICE_MS)))]
        finally:
            samples = watch.end()
        stopped = stops_of(samples)
        process.kill()
        process = bench.place.start(side, settings, folder=folder)
        recovery_ns = tool.stats(process.pool)["recovery_ns"]
        process.end()
    finally:
        if process:
            process.destroy()
            bench.place.remove(process)
    return {"name": side.name, **stopped,
            "dirty_pages_per_checkpoint": stopped["dirty_pages_total"] / max(1, stopped["checkpoints"]),
            "latency_ns_p50": sorted(one["latency_ns_p50"] for one in slices)[len(slices) // 2],
            "latency_ns_p99": max(one["latency_ns_p99"] for one in slices),
            "latency_ns_max": max(one["latency_ns_max"] for one in slices),
            "recovery_ns": recovery_ns, "first_operation_ns": process.first_operation_ns}


def measure(bench):
    options = bench.options
    heap_mib, seconds = (64, 2) if options.quick else (options.heap_mib, options.seconds)
    settings = {"heap_mib": heap_mib,
                "pages_per_second": int(heap_mib * PAGES_PER_MIB * options.part / 100 * 1000 / options.interval_ms)}
    usual = Side("", "stop_time_worker", (("interval-ms", options.interval_ms), ("pool-size-mb", heap_mib + 128)))
    found = []
    for where, medium, durability in (("shared memory, process", "memory", "process"), ("disk, power", "file", "power")):
        for tracker in options.trackers.split(",") if bench.place.folders[medium] else ():
            bench.progress.step(f"{where}, {tracker}")
            side = dataclasses.replace(usual, name=f"{where}, {tracker}", medium=medium,
                                       run=(*usual.run, ("durability", durability), ("tracker", tracker)))
            found.append(measure_side(bench, side, settings, seconds))
    return {"heap_mib": heap_mib, "configurations": found}


def lines(result):
    options = result["options"]
    rows = [[one["name"], one["checkpoints"], f"{one['dirty_pages_per_checkpoint']:.0f}",
             *(duration(one[name]) for name in ("stop_ns_p50", "stop_ns_p99", "stop_ns_max", "latency_ns_p50", "latency_ns_p99",
                                                "latency_ns_max", "recovery_ns", "first_operation_ns"))]
            for one in result["configurations"]]
    return [f"stop time: heap of {result['heap_mib']} MiB, {options['part']} % of its pages written per interval of "
            f"{options['interval_ms']} ms",
            *table(["pool", "checkpoints", "pages each", "stop p50", "p99", "max", "latency p50", "p99", "max", "recovery",
                    "exec to first operation"], rows)]
