"""Pronto (Memaripour's thesis, chapter 5): Figures 5.6 to 5.12 on this machine, with the paper's numbers next to ours."""

import dataclasses

from driver.pages import parse, result_of
from pronto_costs.page import PAGE

from . import readings
from .figure import Figure, OtherRun, Paper, Run, Stated, System
from .systems import KAMINO_TX, NOT_OURS, PMEMOBJ, PMTHREADS_UFFD, PRONTO, ROCKSDB_ASYNC, ROCKSDB_SYNC, VOLATILE

MACHINE = ("two sockets of twelve cores with two hardware threads each (Cascade Lake-SP, 2.2 GHz), of which one is used; 192 GB of DRAM and "
           "1.5 TB of Optane on each, ext4 with DAX (§5.3.1)")
ENGINES = {"volatile": "volatile", "pronto": "pronto", "libpmemobj": "pmemobj"}
OUR_MEDIUM = "logs in shared memory, which is DRAM and not Optane"


def of(workload, system="Pronto", **more):
    return {"workload": workload, "system": system, **more}


@dataclasses.dataclass(frozen=True)
class CostsRun(OtherRun):
    """Cells of one part of the benchmark pronto_costs, in the form of `stillpoint bench`."""

    part: str = None

    def commands(self, engines_here):
        return [(self.systems, ["pronto_costs", "--part", self.part])]

    def document(self, measurements, arguments):
        def measure(options):
            length = ["--quick"] if options.quick else ["--seconds", str(options.seconds), "--repeat", str(options.repeat)]
            return result_of(PAGE, parse(PAGE, ["--binaries", str(options.binaries), "--quiet", *length, *arguments[1:]]))

        found = measurements.of(arguments, measure)
        return found if "failed" in found else {"cells": CELLS[self.part](found["parts"][self.part]["result"])}


def configuration(row):
    """A row of pronto_costs has times; `stillpoint bench` has rates."""
    times = row["to_volatile"]
    return {"engine": ENGINES[row["name"]], "kind": "volatile" if row["name"] == "volatile" else "engine", "rate": row["rate"],
            "to_volatile": times and {"median": 1 / times["median"]}, "cpu_ns_per_operation": row["cpu_ns_per_operation"]}


def cells_of_containers(result):
    return [{"workload": cell["container"], "threads": 1, "value_bytes": cell["value_bytes"],
             "configurations": [configuration(row) for row in cell["rows"] if row["name"] in ENGINES]} for cell in result["cells"]]


def cells_of_sharded(result):
    return [{"workload": "sharded map", "threads": cell["threads"], "value_bytes": cell["value_bytes"],
             "configurations": [configuration(row) for row in cell["rows"]]} for cell in result["cells"]]


def cells_of_logging(result):
    return [{"workload": operation_of(cell["cost_ns"]), "threads": 1, "configurations": [
        {"engine": name, "kind": "engine", **mode} for name, mode in cell["modes"].items()]} for cell in result["cells"]]


def cells_of_snapshots(result):
    stops = [{"workload": size_of(cell["mib"]), "threads": 1, "configurations": [
        {"engine": row["name"], "kind": "engine", "stop_ns": {"p50": row["stop_ns"]["median"], "p99": None, "max": row["stop_ns_max"]}}
        for row in cell["rows"]]} for cell in result["stops"]]
    slowdowns = [{"workload": f"{size_of(cell['mib'])}, {row['pattern']}", "threads": 1, "configurations": [
        {"engine": "pronto", "kind": "engine", "to_volatile": {"median": 1 / row["slowdown"]["median"]}}]}
        for cell in result["slowdowns"] for row in cell["rows"]]
    return stops + slowdowns


def cells_of_recovery(result):
    return [{"workload": f"{size_of(cell['mib'])}{', and a log' if cell['logged'] else ''}", "threads": 1, "configurations": [
        {"engine": "pronto", "kind": "engine", "first_operation_ns": cell["first_operation_ns"]["median"],
         "last_page_ns": cell["last_page_ns"]["median"]}]} for cell in result["cells"] if cell["rounds"] and cell["way"] == "lazy"]


CELLS = {"containers": cells_of_containers, "sharded": cells_of_sharded, "logging": cells_of_logging, "snapshots": cells_of_snapshots,
         "recovery": cells_of_recovery}


def operation_of(cost_ns):
    return f"operations of {cost_ns / 1000:g} us"


def size_of(mib):
    return f"{mib / 1024:g} GiB" if mib >= 1024 else f"{mib} MiB"


SIZES = (64, 256, 1024, 4096)
CONTAINERS = ("map", "unordered_map", "vector", "priority_queue")
FIGURE_5_6 = Figure(
    "Figure 5.6", "Latency of operations on STL containers, by the size of the data", "one thread, 5 million inserts, keys of 32 bytes, a "
    "snapshot at least every 15 s (§5.3.2)",
    f"at most 200,000 inserts and 128 MB, a snapshot after them; {OUR_MEDIUM}. In small containers logging weighs more",
    stated=(
        Stated("up to 28x", "Pronto on small operations: inserting 256 bytes into a vector", "§5.3.2", of("vector", value_bytes=256)),
        Stated("3.2x", "Pronto on a map with values of 4 KB, its lowest", "§5.3.2", of("map", value_bytes=4096))),
    runs=tuple(CostsRun(container, (VOLATILE, PRONTO), value_sizes=SIZES, threads=(1,), part="containers") for container in CONTAINERS),
    reading=readings.LATENCY)

FIGURE_5_7 = Figure(
    "Figure 5.7", "Concurrent hash map: inserts a second by threads", "32 unordered_maps with a lock each, 5 million inserts of 1 KB, "
    "1 to 8 threads, a snapshot at least every 10 s (§5.3.2)",
    f"130,000 inserts, glibc's allocator for the volatile map; {OUR_MEDIUM}. A sibling thread needs a hardware thread of its own, "
    "and two threads here have left none",
    runs=(CostsRun("sharded map", (VOLATILE, PRONTO), value_sizes=(1024,), part="sharded"),), reading=readings.RATE)

FIGURE_5_8 = Figure(
    "Figure 5.8", "PMEMKV against the containers with Pronto: latency of an insert", "YCSB traces of Figure 5.6; PMEMKV 0.3x with kvtree2 "
    "(§5.3.3)", "PMEMKV is not packaged by Debian: maps by hand on libpmemobj, on which it is built, have its place, a crit-bit tree for the map and "
    f"a hash map for the unordered_map; {OUR_MEDIUM}",
    stated=(Stated("up to 3.83x", "lower latency than PMEMKV's, map with Pronto", "§5.3.3", of("map", value_bytes=1024)),
            Stated("up to 3.77x", "lower latency than PMEMKV's, unordered_map with Pronto", "§5.3.3",
                   of("unordered_map", value_bytes=1024))),
    runs=tuple(CostsRun(container, (VOLATILE, PRONTO, PMEMOBJ, System("PMEMKV", absent=NOT_OURS)), value_sizes=SIZES, threads=(1,),
                        part="containers") for container in CONTAINERS[:2]), reading=readings.LATENCY)

YCSB = ("ycsb_a", "ycsb_b")
FIGURE_5_9 = Figure(
    "Figure 5.9", "RocksDB with Pronto against its own log: YCSB A and B", "RocksDB 5.17, 5 million pairs, 5 million operations (§5.3.4)",
    "RocksDB 7.8 is measured as it is; Pronto is not built into it: durable::string_map has its place. Logs lie in shared memory, where a sync costs "
    "nothing; [pronto.md](pronto.md) has the same on a disk",
    stated=(Stated("equal to asynchronous writes", "RocksDB with Pronto, both workloads; no number", "§5.3.4"),),
    runs=tuple(Run(workload, (VOLATILE, PRONTO, PMTHREADS_UFFD, ROCKSDB_SYNC, ROCKSDB_ASYNC), value_sizes=(1024,), size=100_000)
               for workload in YCSB), reading=readings.RATE)

FIGURE_5_10 = Figure(
    "Figure 5.10", "B+tree: Pronto against PMDK and Kamino-Tx, YCSB A and B", "Kamino-Tx's B+tree, values of 1 KB (§5.3.5)",
    f"uniformly random keys in a B+tree of our own, 50 % and 95 % reads; {OUR_MEDIUM}. pmthreads may lose the last interval, Pronto nothing",
    stated=(Stated("higher than both", "Pronto's throughput, YCSB A; no number", "§5.3.5"),
            Stated("slightly higher", "Pronto's throughput, YCSB B; no number", "§5.3.5")),
    runs=(Run("btree", (VOLATILE, PRONTO, PMTHREADS_UFFD, PMEMOBJ, KAMINO_TX), mixes=(50, 95), value_sizes=(1024,), size=200_000),),
    reading=readings.RATE, model_threads=(4, 8), model_cores=12)

MODES = (System("Pronto, asynchronous", "async"), System("Pronto, synchronous", "sync"), System("Pronto, its own choice", "auto"))
FIGURE_5_11 = Figure(
    "Figure 5.11", "Asynchronous against synchronous semantic logging, by the latency of the operation", "operations of 100 ns to 100 us, "
    "entries of 1 KB (§5.3.6)", f"{OUR_MEDIUM}; two CPUs that share no core, so what the sibling thread reads and writes goes from one to the other",
    stated=(Stated("falls short", "asynchronous logging, operations below a microsecond; no number", "§5.3.6",
                   of(operation_of(100), MODES[0].name)),
            Stated("only a small fraction", "of the logging is left to the operation, longer operations; no number", "§5.3.6",
                   of(operation_of(100_000), MODES[0].name))),
    runs=tuple(CostsRun(operation_of(cost_ns), MODES, threads=(1,), part="logging") for cost_ns in (100, 1000, 10_000, 100_000)),
    reading=readings.ADDED)

SNAPSHOTS = tuple(System(f"Pronto, {name}", name) for name in ("idle", "beside a writer"))
FIGURE_5_12_A = Figure(
    "Figure 5.12 a", "Snapshots: stall of the updates, by the size of the data", "2 MB to 16 GB (§5.3.7)",
    "2 MiB to 1 GiB, all of it written before each snapshot; Pronto copies everything at each snapshot, ours what was written",
    stated=(Stated("22 ms to 34 ms", "stall of updates by Pronto's snapshot, from 2 MB to 16 GB", "§5.3.7"),),
    runs=tuple(CostsRun(size_of(mib), SNAPSHOTS, threads=(1,), part="snapshots") for mib in (2, 16, 64, 256, 1024)), reading=readings.STOPS)

FIGURE_5_12_B = Figure(
    "Figure 5.12 b", "Snapshots: cost for the program, by the size of the data",
    "2 MB to 16 GB; sequential and random accesses of 64 bits, half of them writes, a snapshot every 2 ms to 16 s (§5.3.7)",
    "2 MiB to 1 GiB, a snapshot every 50 ms to 2 s, in operations of 1,000 accesses; against the same without snapshots",
    stated=(Stated("about 10 %", "cost of a snapshot with random accesses", "§5.3.7", of("1 GiB, random")),
            Stated("0.8 %", "cost of a snapshot with sequential accesses", "§5.3.7", of("1 GiB, sequential"))),
    runs=tuple(CostsRun(f"{size_of(mib)}, {pattern}", (PRONTO,), threads=(1,), part="snapshots")
               for mib in (2, 64, 1024) for pattern in ("sequential", "random")), reading=readings.SNAPSHOT_COST)

RECOVERY = Figure(
    "§5.3.8", "Recovery by the size of the data", "failure-atomic quick-sort of strings of 1 KB, 1 GB to 32 GB, 16 threads (§5.3.8)",
    "an object of 64 MiB to 1 GiB, with nothing in the log, or operations of 1 KiB that amount to an eighth of it; two CPUs",
    stated=(Stated("less than 400 ms", "recovery of 1 GB", "§5.3.8", of("1 GiB")),
            Stated("less than 7 s", "recovery of 32 GB", "§5.3.8")),
    runs=tuple(CostsRun(f"{size_of(mib)}{log}", (PRONTO,), threads=(1,), part="recovery")
               for mib in (64, 256, 1024) for log in ("", ", and a log")), reading=readings.TO_LAST_PAGE)

PAPER = Paper("pronto", "Pronto (Memaripour's thesis, chapter 5)", MACHINE,
              (FIGURE_5_6, FIGURE_5_7, FIGURE_5_8, FIGURE_5_9, FIGURE_5_10, FIGURE_5_11, FIGURE_5_12_A, FIGURE_5_12_B, RECOVERY))
