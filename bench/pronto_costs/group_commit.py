"""Group commit: many clients whose operations are made durable together, on a file."""

from driver.sides import Side, answers_in_turn, started

from .shown import at_least, counted, duration, of, quartiles, short, table, times
from .sides import COLD_ROUNDS, pronto, rows_of

TITLE = "Group commit on a file"
SAYS = """\
Each client puts 100 bytes under a key of its own in a `durable::string_map` and waits until that is durable on the disk; the pool lies
in the build's folder (`--medium file --durability power`). What it is measured against appends as many bytes to a log in the same
folder and calls fdatasync for each operation, one after the other; the file has its blocks and its size before, so that a sync writes
no metadata. With `ahead` each client submits (`commit_async`)
so many operations before it waits for the oldest. In `side by side` its threads call fdatasync without a lock, and the kernel may
answer several with one flush of the disk."""

CLIENTS, ENTRY_BYTES = 64, 192
ASYNC_CLIENTS, AHEAD = 8, 128
ONE_EACH = "one fdatasync each"


def synced_log(name, threads, is_baseline=False, **settings):
    """Threads that append entries to a log in a file; `is_shared`: they call fdatasync side by side."""
    return Side(name, "pronto_synced_log", medium="file", is_baseline=is_baseline,
                settings=(("entry_bytes", ENTRY_BYTES), ("threads", threads), *settings.items()))


SIDES = (
    pronto("pronto_group_commit", f"pronto, {CLIENTS} clients", "file", settings=(("threads", CLIENTS),)),
    pronto("pronto_group_commit", "pronto, 1 client", "file", settings=(("threads", 1),)),
    pronto("pronto_group_commit", f"pronto, {ASYNC_CLIENTS} clients, {AHEAD} ahead", "file",
           settings=(("threads", ASYNC_CLIENTS), ("ahead", AHEAD))),
    synced_log(f"{ONE_EACH}, {CLIENTS} clients", CLIENTS, is_baseline=True),
    synced_log(f"{ONE_EACH}, 1 client", 1),
    synced_log(f"side by side, {CLIENTS} clients", CLIENTS, is_shared=1),
)
SLICE_NS = 500_000_000


def steps(_options):
    return 1


def measure(bench):
    bench.progress.step(f"{CLIENTS} clients")
    with started(bench, SIDES, {"value_bytes": 100}) as (processes, left_out):
        answers = answers_in_turn(bench, processes, "slice", SLICE_NS // (10 if bench.options.quick else 1), cold_rounds=COLD_ROUNDS)
        return {"cells": [{"title": f"{CLIENTS} clients", "rows": rows_of(processes, answers), "left_out": left_out}]}


def faster(row):
    """Times the operations of the baseline: a ratio of rates, so that of the times turned round."""
    found = row["to_volatile"]
    return found and {"median": 1 / found["median"], "low": 1 / found["high"], "high": 1 / found["low"]}


def lines(result):
    rows = [[row["name"], quartiles(row["rate"], lambda value: f"{short(value)}/s"), times(faster(row)),
             duration(of(row, "cpu_ns_per_operation", "median")), counted(row, "medium_syncs")]
            for cell in result["cells"] for row in cell["rows"]]
    return table(["", "operations", f"times {ONE_EACH}, {CLIENTS} clients", "CPU of an operation", "syncs of an operation"], rows)


def bars(result):
    rows = {row["name"]: row for cell in result["cells"] for row in cell["rows"]}
    reached = [faster(rows[side.name])["median"] if side.name in rows and rows[side.name]["to_volatile"] else None
               for side in (SIDES[0], SIDES[2])]
    return [at_least("group commit on a file, 64 clients: at least 50 times the operations of one fdatasync for each", 50, reached[0]),
            at_least(f"group commit on a file, {ASYNC_CLIENTS} clients with {AHEAD} operations ahead: at least 100 times", 100, reached[1])]
