"""Reads: look-ups in durable containers against the same classes in ordinary memory."""

import ctypes.util
import dataclasses

from driver.errors import BenchError
from driver.pages import verdict
from driver.sides import answers_in_turn, started

from .shown import duration, of, quartiles, safe, short, table, times
from .sides import pronto, rows_of, volatile

TITLE = "Reads: look-ups in durable containers and in the same classes in ordinary memory"
SAYS = """\
Threads read the first word of the values of random keys (of random places, in the vector); keys of 32 bytes, values of 64. `volatile` is
the same class from the same header, compiled against a stand-in for `pronto.hpp` whose allocator is malloc and whose operations and read
guards do nothing ([without_pool](../../../bench/pronto_costs/without_pool)): layout, hash, and the locks of the string maps are the same.
`volatile, huge pages` is the same program with `glibc.malloc.hugetlb=1`, since an image has huge pages where the system gives them.
`volatile, jemalloc` (where that library is installed) has blocks by size class, as Stillpoint's heap has: node, key and value of an
entry do not lie beside each other, as those of glibc do when they are made one after the other.
`opened again` is a pool that was closed and opened by a new process, which has loaded its pages. No thread writes. 10,000 keys lie in the
caches, 1,000,000 do not."""

CONTAINERS = ("map", "unordered_map", "vector", "string_map", "sharded_string_map")
KEYS = (10_000, 1_000_000)
THREADS = (1, 2)
SLICE_NS = 100_000_000
BAR = 0.97
PROGRAM = "pronto_reads_durable"
LARGE_POOL = (("pool-size-mb", 1024),)
AGAIN = "pronto, opened again"
VOLATILE = volatile("pronto_reads_volatile")
HUGE = dataclasses.replace(VOLATILE, name="volatile, huge pages", is_baseline=False,
                           environment=(("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),))
JEMALLOC = ctypes.util.find_library("jemalloc")
BY_SIZE = () if JEMALLOC is None else (dataclasses.replace(HUGE, name="volatile, jemalloc", environment=(("LD_PRELOAD", JEMALLOC),)),)
SIDES = (VOLATILE, HUGE, *BY_SIZE, pronto(PROGRAM, run=LARGE_POOL), pronto(PROGRAM, AGAIN, run=LARGE_POOL))


def cells(quick):
    return [(container, keys) for container in CONTAINERS for keys in (KEYS[:1] if quick else KEYS)]


def steps(options):
    return len(cells(options.quick))


def measure(bench):
    found = []
    for container, keys in cells(bench.options.quick):
        bench.progress.step(f"{container}, {keys:,} keys")
        settings = {"container": container, "keys": keys, "value_bytes": 64}
        with started(bench, SIDES, settings) as (processes, left_out):
            open_again(bench, processes, settings)
            check_layout(container, processes)
            for threads in THREADS:
                slice_ns = SLICE_NS // (10 if bench.options.quick else 1)
                answers = answers_in_turn(bench, processes, "read", slice_ns, threads)
                found.append({"title": f"{container}, {keys:,} keys, {threads} threads", **settings, "threads": threads,
                              "rows": rows_of(processes, answers), "left_out": left_out})
    return {"cells": found}


def open_again(bench, processes, settings):
    """The process of that name ends, and another one opens its pool."""
    for place, process in enumerate(processes):
        if process.name == AGAIN:
            process.end()
            processes[place] = bench.place.start(process.side, settings, folder=process.folder)


def check_layout(container, processes):
    sizes = {process.ready["object_bytes"] for process in processes}
    if len(sizes) > 1:
        raise BenchError(f"{container}: the class has {sorted(sizes)} bytes on the sides; bench/pronto_costs/without_pool no longer stands "
                         "for include/stillpoint/pronto.hpp")


def speed(row):
    """Times the look-ups a second of volatile's: a ratio of rates, so that of the times turned round."""
    found = row["to_volatile"]
    return found and {"median": 1 / found["median"], "low": 1 / found["high"], "high": 1 / found["low"]}


def lines(result):
    rows = [[safe(cell["container"]), short(cell["keys"]), str(cell["threads"]), row["name"], quartiles(row["latency_ns"]),
             times(speed(row)), duration(of(row, "cpu_ns_per_operation", "median"))]
            for cell in result["cells"] for row in cell["rows"]]
    return table(["container", "keys", "threads", "", "time of a look-up", "look-ups, of volatile's", "CPU"], rows)


def bars(result):
    """One for each container: its slowest cell counts. The pool that was opened again is a row, and no bar."""
    found = []
    for container in CONTAINERS:
        reached = sorted(speed(row)["median"] for cell in result["cells"] if cell["container"] == container
                         for row in cell["rows"] if row["name"] == "pronto" and row["to_volatile"])
        found.append(verdict(f"{container}, look-ups: at least {BAR} of volatile's", reached, bool(reached) and reached[0] >= BAR, "x"))
    return found
