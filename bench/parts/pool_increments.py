"""The size and the time of an increment after a part of a pool has changed, against a full copy."""

import json
import subprocess
import time

from driver.benchmark import table
from driver.errors import WorkerFailed
from driver.sides import Side
from driver.tables import duration

DESCRIPTION = """\
The size and the time of an increment after a part of a pool has changed, against a full copy.

The worker is that of stop_time: it fills the heap, and then writes a word in pages at random, until the wished part of them has been
written; then it waits, with its pool open, while a full copy is made, or an increment after that copy, or after an increment. Times are
those of the whole command, its verification and the sync of the disk included. The pool is restored from the chain at the end."""
SECONDS = 20
PAGES_PER_MIB = 256
SLICE_MS = 250


def add_options(parser):
    parser.add_argument("--heap-mib", type=int, default=1024)
    parser.add_argument("--part", type=float, default=1.0, help="percent of the heap's pages written between two copies")
    parser.add_argument("--interval-ms", type=int, default=100)


def command(bench, *words):
    began_ns = time.monotonic_ns()
    done = subprocess.run([bench.place.tool.program("stillpoint"), *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WorkerFailed(f"stillpoint {words[0]}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout) | {"command_ns": time.monotonic_ns() - began_ns}


def row(kind, figures, path):
    facts = path.stat()
    return {"kind": kind, "command_ns": figures["command_ns"], "held_ns": figures["held_ns"], "disk_bytes": facts.st_blocks * 512,
            "changed_pages": figures.get("changed_pages", 0)}


def write_pages(process, pages):
    """On a busy machine the worker falls short of its pace."""
    written = 0
    while written < pages:
        written += process.slice(SLICE_MS)["operations"]
    time.sleep(0.5)  # for the checkpoint


def measure_side(bench, side, settings, pages):
    quiet = ("--json", "--quiet", "--hold-max", "4500ms")
    process, folder, made = None, bench.place.folder(side), []
    copies = [folder / f"pool_increments.{name}" for name in ("full", "first", "second", "restored")]
    full, first, second, restored = copies
    try:
        process = bench.place.start(side, settings, folder=folder)
        process.slice(SLICE_MS)  # not counted: the checkpoints that follow the filling
        made.append(row("full copy", command(bench, "copy", *quiet, process.pool, full), full))
        for kind, new, base in (("increment after the copy", first, full), ("increment after that", second, first)):
            write_pages(process, pages)
            figures = command(bench, "copy", *quiet, "--incremental-since", base, process.pool, new)
            made.append(row(kind, figures, new))
        process.kill()
        made.append(row("restore of the three", command(bench, "restore", "--json", "--quiet", full, first, second, restored), restored))
    finally:
        for path in copies:
            path.unlink(missing_ok=True)
        if process:
            process.destroy()
            bench.place.remove(process)
    return {"name": side.name, "made": made}


def measure(bench):
    options = bench.options
    heap_mib = 64 if options.quick else options.heap_mib
    pages = int(heap_mib * PAGES_PER_MIB * options.part / 100)
    run = (("interval-ms", options.interval_ms), ("pool-size-mb", heap_mib + 128))
    found = []
    for where, medium, durability in (("shared memory", "memory", "process"), ("disk", "file", "power")):
        if bench.place.folders[medium]:
            bench.progress.step(where)
            side = Side(where, "stop_time_worker", (*run, ("durability", durability)), medium=medium)
            found.append(measure_side(bench, side, {"heap_mib": heap_mib, "pages_per_second": pages}, pages))
    return {"heap_mib": heap_mib, "part": options.part, "configurations": found}


def lines(result):
    rows = [[one["name"], made["kind"], duration(made["command_ns"]), duration(made["held_ns"]), f"{made['disk_bytes'] / 2**20:.1f} MiB",
             made["changed_pages"]] for one in result["configurations"] for made in one["made"]]
    return [f"increments of a pool with a heap of {result['heap_mib']} MiB, {result['part']:g} % of its pages written between two",
            *table(["pool", "what", "command", "writes held", "size on the disk", "changed pages"], rows)]
