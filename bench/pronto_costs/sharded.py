"""A concurrent hash map: 32 unordered maps with a lock each."""

from driver.sides import answers_in_turn, started

from .shown import counted, duration, of, quartiles, short, table, times
from .sides import COLD_ROUNDS, pronto, rows_of, volatile

TITLE = "Concurrent hash map: insertions a second by threads (Figure 5.7)"
SAYS = """\
32 `std::unordered_map`s with a mutex each; values of 1 KiB, keys of 32 bytes. The durable one commits inside the lock of its shard, as
equation 5.1 demands. The last column is the throughput against the same side's with one thread, in this run."""

THREADS = (1, 2)
INSERTS = 130_000
SIDES = (volatile("pronto_sharded_volatile"), pronto("pronto_sharded_durable", run=(("pool-size-mb", 1024),)))


def steps(_options):
    return len(THREADS)


def measure(bench):
    found = []
    for threads in THREADS:
        bench.progress.step(f"sharded map, {threads} thread{'s' if threads > 1 else ''}")
        settings = {"threads": threads, "value_bytes": 1024, "inserts": 2000 if bench.options.quick else INSERTS}
        with started(bench, SIDES, settings) as (processes, left_out):
            answers = answers_in_turn(bench, processes, "fill", cold_rounds=COLD_ROUNDS)
            found.append({"title": f"{threads} threads", **settings, "rows": rows_of(processes, answers), "left_out": left_out})
    return {"cells": found}


def lines(result):
    rows, alone = [], {}
    for cell in result["cells"]:
        for row in cell["rows"]:
            rate = of(row, "rate", "median")
            alone.setdefault(row["name"], rate)
            rows.append([str(cell["threads"]), row["name"], quartiles(row["rate"], lambda value: f"{short(value)}/s"),
                         times(row["to_volatile"]), duration(of(row, "cpu_ns_per_operation", "median")), counted(row, "fences"),
                         f"{rate / alone[row['name']]:.2f}"])
    return table(["threads", "", "insertions", "time, of volatile's", "CPU of an insertion", "fences", "of one thread's"], rows)


def bars(_result):
    return []
