"""Checkpoints while a thread sleeps forever, computes forever, or is blocked in a read: outside every FASE."""

import time

from driver.benchmark import table
from driver.sides import Side, started
from driver.tables import duration

DESCRIPTION = """\
Checkpoints while a thread sleeps forever, computes forever, or is blocked in a read: outside every FASE.

One thread writes durable memory throughout. A system that waits for all threads takes no checkpoint at all then; here
there should be one for each interval, as many as without the other thread."""
SECONDS = 15


def add_options(parser):
    parser.add_argument("--interval-ms", type=int, default=100)


def measure(bench):
    options, kinds = bench.options, []
    side = Side("quiescence", "quiescence_worker", (("interval-ms", options.interval_ms), ("durability", "process")),
                "memory" if bench.place.folders["memory"] else "file")
    for kind in ("none", "sleep", "compute", "read"):
        with started(bench, [side], {"other": kind}) as (processes, _):
            process = processes[0]
            before, begin = bench.place.tool.stats(process.pool), time.monotonic()
            process.slice((1 if options.quick else options.seconds) * 1000 / 4)
            after, end = bench.place.tool.stats(process.pool), time.monotonic()
            process.kill()  # its other thread may never end
            processes.clear()
        kinds.append({"name": kind, "checkpoints": after["checkpoints"] - before["checkpoints"],
                      "intervals": (end - begin) * 1000 / options.interval_ms, "withdrawn_attempts": after["withdrawn_attempts"],
                      "stop_ns_p50": after["stop_ns_p50"], "stop_ns_max": after["stop_ns_max"]})
    return {"configurations": kinds}


def lines(result):
    rows = [[one["name"], one["checkpoints"], f"{one['intervals']:.0f}", one["withdrawn_attempts"], duration(one["stop_ns_p50"]),
             duration(one["stop_ns_max"])] for one in result["configurations"]]
    return [f"quiescence: one thread writes; another is outside every FASE; interval {result['options']['interval_ms']} ms",
            *table(["other thread", "checkpoints", "intervals", "withdrawn", "stop p50", "stop max"], rows)]
