"""Four containers of the standard library, volatile and durable, by the size of what is inserted; two maps of libpmemobj beside them."""

from driver.sides import answers_in_turn, started

from .shown import at_least, at_most, counted, duration, of, quartiles, safe, table, times
from .sides import COLD_ROUNDS, libpmemobj, pronto, rows_of, volatile

TITLE = "Containers: mean latency of an insertion (Figures 5.6 and 5.8)"
SAYS = """\
One thread inserts into an empty container, 128 MB of values and at most 200,000 elements; keys of the maps have 32 bytes. Then the
container is emptied, outside of the measured time, and the next round begins. `durable::` containers commit each insertion before it
returns. Memory that was freed stays with malloc, as a pool's stays with the pool. libpmemobj has the tree of which an insertion changes
the least (a crit-bit tree) for the map, and a hash map that has all its buckets from the start; each insertion is a transaction. The
log has room for a round: `pronto, small pool` begins with 64 MiB, so that its log fills up and snapshots are taken while it works. CPU
includes the other threads of the process, and the snapshot after each round, which a program takes every ten seconds."""

SMALL_BYTES, SMALL_BAR = 64, 6
CONTAINERS = ("map", "unordered_map", "vector", "priority_queue")
VALUE_BYTES = (64, 256, 1024, 4096)
BYTES_INSERTED, INSERTS_MAX = 128 << 20, 200_000
LARGE_POOL = (("pool-size-mb", 1024),)
PROGRAM, SMALL_POOL = "pronto_containers_durable", "pronto, small pool"
SIDES = (volatile("pronto_containers_volatile"), pronto(PROGRAM, run=LARGE_POOL), pronto(PROGRAM, SMALL_POOL),
         libpmemobj("pronto_containers_pmemobj"))
MAPS = ("map", "unordered_map")


def cells(quick):
    return [(container, value_bytes) for container in CONTAINERS for value_bytes in (VALUE_BYTES[::3] if quick else VALUE_BYTES)]


def steps(options):
    return len(cells(options.quick))


def measure(bench):
    found = []
    for container, value_bytes in cells(bench.options.quick):
        bench.progress.step(f"{container}, {value_bytes} B")
        inserts = 2000 if bench.options.quick else min(INSERTS_MAX, BYTES_INSERTED // value_bytes)
        sides = [side for side in SIDES if container in MAPS or side.package is None and side.name != SMALL_POOL]
        settings = {"container": container, "value_bytes": value_bytes, "inserts": inserts}
        with started(bench, sides, settings) as (processes, left_out):
            answers = answers_in_turn(bench, processes, "fill", cold_rounds=COLD_ROUNDS)
            found.append({"title": f"{container}, {value_bytes} B", **settings, "rows": rows_of(processes, answers), "left_out": left_out})
    return {"cells": found}


def row_of(cell, name):
    return next((row for row in cell["rows"] if row["name"] == name), None)


def lines(result):
    rows = []
    for cell in result["cells"]:
        for row in cell["rows"]:
            to_peer = of(row_of(cell, "libpmemobj"), "latency_to", row["name"])
            rows.append([safe(cell["container"]), str(cell["value_bytes"]), row["name"], quartiles(row["latency_ns"]),
                         times(row["to_volatile"]), times(to_peer) if row["name"].startswith("pronto") else "-",
                         duration(of(row, "cpu_ns_per_operation", "median")), counted(row, "fences"), snapshots_in_a_round(cell, row)])
    return table(["container", "value, bytes", "", "latency of an insertion", "times volatile's", "times faster than libpmemobj", "CPU",
                  "fences", "snapshots a round"], rows)


def snapshots_in_a_round(cell, row):
    taken = of(row, "counted", "checkpoints")
    return "-" if taken is None else f"{taken * cell['inserts']:.2g}"


def bars(result):
    cell = next((cell for cell in result["cells"] if (cell["container"], cell["value_bytes"]) == ("map", 4096)), {"rows": []})
    return [at_most("map, insertions of 4 KiB values on memory: latency at most 3.2 times volatile's", 3.2,
                    of(row_of(cell, "pronto"), "to_volatile", "median")),
            at_least("map, insertions of 4 KiB values on memory: at least 3.8 times faster than the libpmemobj tree map", 3.8,
                     of(row_of(cell, "libpmemobj"), "latency_to", "pronto", "median")),
            *(at_most(f"{container}, insertions of {SMALL_BYTES} bytes on memory: latency at most {SMALL_BAR} times volatile's", SMALL_BAR,
                      of(next((row_of(cell, "pronto") for cell in result["cells"]
                               if (cell["container"], cell["value_bytes"]) == (container, SMALL_BYTES)), None), "to_volatile", "median"))
              for container in ("vector", "priority_queue"))]
