"""Programs that keep nothing durable, started under an engine: what a pool costs those that do not use it."""

import math

from driver.benchmark import table
from driver.in_turn import row_of
from driver.sides import Side, answers_in_turn, started
from driver.tables import ratio_cells

DESCRIPTION = """\
Programs in the shape of Phoenix and Parsec that keep nothing durable, under `stillpoint run`, against the same program by itself.

"processes": nvthreads with threads as processes, on the very program of the baseline. "threads": nvthreads with threads as threads, on
the program compiled by `stillpoint c++ --runtime=nvthreads`, against the same Clang's. "uffd": pmthreads. The pool is empty and lies in
shared memory.

Then structures whose time goes into locks: lists locked hand over hand, a map with a mutex for each bucket, a queue under one lock.
"no pool": with the library preloaded, and no pool: what a program pays that is linked with it.

Ratios are times volatile's time: 1.15 is 15 % slower."""
SECONDS = 2
SLICE_NS = 300_000_000
PHOENIX = ("histogram", "kmeans", "linear_regression", "matrix_multiply", "string_match", "word_count", "reverse_index")
PARSEC = ("dedup", "swaptions", "streamcluster")
LOCKS = ("list", "skip_list", "hash_map", "queue")
PLAIN, CLANG = "volatile", "volatile (Clang)"


def under(engine, *more):
    return (("engine", engine), ("durability", "power"), ("medium", "memory"), ("pool-size-mb", 16), *more)


def sides(workload, library):
    """`library`: libstillpoint.so."""
    words = {"arguments": (workload,)}
    baseline = Side(PLAIN, "bench_worker_volatile", is_baseline=True, **words)
    uffd = Side("uffd", "bench_worker_volatile", under("pmthreads"), **words)
    if workload in LOCKS:
        no_pool = Side("no pool", "bench_worker_volatile", environment=(("LD_PRELOAD", str(library)),), **words)
        return {PLAIN: (baseline, no_pool, uffd)}
    processes = Side("processes", "bench_worker_volatile", under("nvthreads", ("threads", "processes")), **words)
    return {PLAIN: (baseline, processes, uffd),
            CLANG: (Side(CLANG, "bench_worker_volatile_clang", is_baseline=True, **words),
                    Side("threads", "bench_worker_volatile_nvthreads", under("nvthreads"), **words))}


def add_options(parser):
    every = [*PHOENIX, *PARSEC, *LOCKS]
    parser.add_argument("--workload", nargs="+", default=every, choices=every, metavar="W", help="(default all)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="(default 2)")


def slower(row):
    """Times the baseline's time; a slow round is the other quartile."""
    found = row["to_volatile"]
    return {"median": 1 / found["median"], "low": 1 / found["high"], "high": 1 / found["low"]}


def measure(bench):
    settings = {"threads": bench.options.threads, **({"smoke": 1} if bench.options.quick else {})}
    slice_ns = SLICE_NS // (10 if bench.options.quick else 1)
    cells, left_out = [], []
    for workload in bench.options.workload:
        for baseline, compared in sides(workload, bench.options.binaries.parent / "lib/libstillpoint.so").items():
            with started(bench, compared, settings) as (processes, why_not):
                left_out += why_not
                if why_not and processes and processes[0].name != baseline:
                    continue
                bench.progress.show(f"{workload}, {', '.join(process.name for process in processes)}")
                answers = answers_in_turn(bench, processes, "slice", slice_ns)
            cells += [{"workload": workload, **row_of(name, mine, answers[baseline])} for name, mine in answers.items() if name != baseline]
    for cell in cells:
        cell["slower"] = slower(cell)
    return {"cells": cells, "means": means(cells), "left_out": sorted(set(left_out))}


def means(cells):
    """{(suite, side): the geometric mean of its workloads}, as a list."""
    found = []
    for suite, workloads in (("Phoenix", PHOENIX), ("Parsec", PARSEC), ("Locks", LOCKS)):
        for side in dict.fromkeys(cell["name"] for cell in cells):
            own = [cell["slower"]["median"] for cell in cells if cell["name"] == side and cell["workload"] in workloads]
            if own:
                found.append({"suite": suite, "name": side, "slower": math.exp(sum(map(math.log, own)) / len(own)), "workloads": len(own)})
    return found


def lines(result):
    rows = [[cell["workload"], cell["name"], *ratio_cells(cell["slower"])] for cell in result["cells"]]
    rows += [[f"{mean['suite']}, geometric mean of {mean['workloads']}", mean["name"], f"{mean['slower']:.3g}", ""]
             for mean in result["means"]]
    return [f"programs without durable data, {result['options']['threads']} threads",
            *table(["", "side", "times volatile's time", "quartiles"], rows), *(f"left out: {reason}" for reason in result["left_out"])]
