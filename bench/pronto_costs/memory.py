"""Memory and disk: what durable objects take, by the size of the data, against the same class in ordinary memory."""

import time

from driver.pages import verdict
from driver.sides import Side, bytes_on_medium, started

from .shown import mebibytes, table
from .sides import volatile

IDLE_S = 12  # longer than the usual interval
SMALL = 0  # MiB: one value of 10 bytes
SIZES_MIB = (SMALL, 64, 512)
VALUE_BYTES = (256, 4096)
KEY_BYTES, SMALL_BYTES = 32, 10
UPDATED_PART, UPDATES_MIN = 4, 50_000
MEMORY_BAR, DISK_BAR, SMALL_BAR_MIB = 3, 4, 8
MOMENTS = ("filled", "snapshot", "updated", "idle")

TITLE = "Memory and disk by the size of the data"
SAYS = f"""\
A `durable::string_map` in a pool that is made with the usual size and options, and the same class in ordinary memory
([without_pool](../../../bench/pronto_costs/without_pool)). It is filled; a snapshot is taken; a quarter as many puts as keys give
random ones values of the same size (50,000 at least); then nothing is done for {IDLE_S} seconds, in which the usual interval takes a
snapshot too. `memory` is anonymous memory of the process: the image, staging memory of snapshots, tables, and on a file what the log's
chunks have in memory. `pool` are the blocks of the pool's folder: pages in memory where it lies in shared memory, and blocks on the disk
where it is a file. Both are shown as multiples of the volatile process's anonymous memory at the same moment. `small` is one value of
{SMALL_BYTES} bytes. In shared memory the pool stands for persistent memory, and counts as disk."""


def usual(name, medium):
    return Side(name, "pronto_reads_durable", (("engine", "pronto"), ("durability", "power"), ("medium", medium)), medium)


SIDES = (volatile("pronto_reads_volatile"), usual("pronto, memory", "memory"), usual("pronto, file", "file"))


def cells(quick):
    return [(mib, value_bytes) for mib in (SIZES_MIB[:1] if quick else SIZES_MIB)
            for value_bytes in (VALUE_BYTES if mib != SMALL else (SMALL_BYTES,))]


def steps(options):
    return len(cells(options.quick))


def measure(bench):
    found = []
    for mib, value_bytes in cells(bench.options.quick):
        bench.progress.step(f"memory of {size_name(mib)}, values of {value_bytes} B")
        keys = max(1, (mib << 20) // (KEY_BYTES + value_bytes))
        settings = {"container": "string_map", "keys": keys, "value_bytes": value_bytes, "settles": 0}
        rows, left_out = [], []
        for side in SIDES:  # one after the other: the largest takes gigabytes
            with started(bench, [side], settings) as (processes, why):
                left_out += why
                rows += [{"name": process.name, "medium": side.medium, "moments": moments_of(bench, process, keys)}
                         for process in processes]
        found.append({"title": size_name(mib), "mib": mib, "value_bytes": value_bytes, "rows": rows, "left_out": left_out})
    return {"cells": found}


def size_name(mib):
    return mebibytes(mib) if mib else "small"


def moments_of(bench, process, keys):
    found = {"filled": taken_by(process)}
    process.ask("snapshot")
    found["snapshot"] = taken_by(process)
    process.ask("update", max(UPDATES_MIN, keys // UPDATED_PART))
    found["updated"] = taken_by(process)
    if process.side.run is not None:
        time.sleep(0 if bench.options.quick else IDLE_S)
    found["idle"] = taken_by(process)
    return found


def taken_by(process):
    with open(f"/proc/{process.process.pid}/smaps_rollup", encoding="ascii") as lines_of_kernel:
        kib = next(int(line.split()[1]) for line in lines_of_kernel if line.startswith("Anonymous:"))
    return {"memory": kib << 10, "pool": bytes_on_medium(process.folder)}


def base_of(cell):
    return next((row for row in cell["rows"] if row["name"] == "volatile"), None)


def ratio(cell, row, moment, what):
    base = base_of(cell)
    return row["moments"][moment][what] / base["moments"][moment]["memory"] if base and cell["mib"] != SMALL else None


def shown(cell, row, moment, what):
    share = ratio(cell, row, moment, what)
    return f"{row['moments'][moment][what] / (1 << 20):.3g} MiB" + ("" if share is None else f" ({share:.2f})")


def lines(result):
    rows = [[cell["title"], str(cell["value_bytes"]), row["name"],
             *(shown(cell, row, moment, what) for moment in MOMENTS for what in ("memory", "pool"))]
            for cell in result["cells"] for row in cell["rows"]]
    return table(["data", "value, bytes", "", *(f"{moment}: {what}" for moment in MOMENTS for what in ("memory", "pool"))], rows)


def bars(result):
    pools = [(cell, row) for cell in result["cells"] for row in cell["rows"] if row["name"] != "volatile"]
    large = {what: sorted(ratio(cell, row, moment, what) for cell, row in pools if cell["mib"] != SMALL for moment in MOMENTS)
             for what in ("memory", "pool")}
    small = sorted(row["moments"][moment]["pool"] / (1 << 20) for cell, row in pools if cell["mib"] == SMALL for moment in MOMENTS)
    return [verdict(text, values, bool(values) and values[-1] <= limit, unit) for text, values, limit, unit in (
        (f"memory of a process with a durable object of 64 MiB or more: at most {MEMORY_BAR} times volatile's", large["memory"],
         MEMORY_BAR, "x"),
        (f"disk of its pool: at most {DISK_BAR} times volatile's memory", large["pool"], DISK_BAR, "x"),
        (f"disk of the pool of one value of {SMALL_BYTES} bytes: at most {SMALL_BAR_MIB} MiB", small, SMALL_BAR_MIB, " MiB"))]
