"""NVHooks (Memaripour's thesis, chapter 4): Figures 4.10 and 4.11, by the benchmark nvhooks, with the paper's numbers next to ours."""

import dataclasses

from driver.benchmark import measured
from nvhooks import benchmark

from . import readings
from .figure import Figure, OtherRun, Paper, Stated, System
from .systems import ATLAS, KAMINO_TX

MACHINE = ("two sockets of 24 cores (Cascade Lake SP, 2.2 GHz), of which one is used; 192 GB of DRAM and 1.5 TB of Optane on each, ext4 with "
           "DAX; PMDK 1.6, LLVM 7; means of ten runs (§4.3.1)")
SETTINGS = ("initial", "static-check", "coalesce-fields", "coalesce-loops", "no-extra-tracking")
LAYERS = ("pmdk", "undo", "pmthreads")
WORKLOADS = {"load": "YCSB load", "A": "YCSB A", "B": "YCSB B"}
BY_HAND = System("pmdk by hand", "by hand")
INITIAL, OPTIMISED = System("pmdk initial", "pmdk initial"), System("pmdk no-extra-tracking", "pmdk no-extra-tracking")


@dataclasses.dataclass(frozen=True)
class NvhooksRun(OtherRun):
    """The benchmark nvhooks on one store: a cell for each workload, a configuration for each layer and setting."""

    store: str = "hash_map"

    def commands(self, engines_here):
        return [(self.systems, ["nvhooks", "--part", "stores", "--threads", " and ".join(map(str, self.threads))])]

    def document(self, measurements, arguments):
        quick = measurements.document["quick"]
        length = ["--quick", "--layer", "pmdk"] if quick else ["--seconds", str(max(4.0, measurements.options.seconds * 4))]
        cells = []
        for threads in (self.threads[-1:] if quick else self.threads):
            words = ["--part", "stores", "--threads", str(threads)]
            found = measurements.of(["nvhooks", *words], lambda options, words=words: measured(
                benchmark, "nvhooks", ["--binaries", str(options.binaries), "--quiet", *length, *words]))
            if "failed" in found:
                return found
            cells += self.cells_from(found, threads)
        return {"cells": cells}

    def cells_from(self, found, threads):
        """In the form of `stillpoint bench`. The baseline of these figures is the program annotated by hand, where it is there."""
        rows = [row for row in found["stores"] if row["store"] == self.store and WORKLOADS[row["workload"]] in self.workload]
        return [{"workload": self.workload, "threads": threads, "configurations": [
            {"engine": row["name"], "kind": "volatile" if row["name"] == "volatile" else "engine", "rate": row["rate"],
             "to_volatile": row.get("to_by_hand", row["to_volatile"])} for row in rows]}] if rows else []


def runs_of(systems):
    return tuple(NvhooksRun(f"{store}, {name}", systems, store=store) for store in ("btree", "hash_map") for name in WORKLOADS.values())


DIFFERS = ("values of 1 KB and the paper's stores, with fewer entries (50,000 instead of 1,000,000); one and two threads instead of eight; "
           "pools in shared memory, where lines are written back to DRAM and not to Optane")
FIGURE_4_10 = Figure(
    "Figure 4.10", "Initial and optimised hooks against annotation by hand, PMDK",
    "eight threads, 10^6 entries, YCSB load, A and B (§4.3.2)",
    f"{DIFFERS}. Shares are of the program annotated by hand, not of volatile.",
    stated=(Stated("104 %", "optimised B+tree, of the throughput by hand", "§4.3.2",
                   {"workload": "btree, YCSB A", "system": OPTIMISED.name}),
            Stated("97 %", "optimised hash map, of the throughput by hand", "§4.3.2",
                   {"workload": "hash_map, YCSB A", "system": OPTIMISED.name}),
            Stated("up to 27 %", "of the cost of the initial hooks recovered by the optimisations", "§4.3.2")),
    runs=runs_of((BY_HAND, INITIAL, OPTIMISED)), reading=readings.RATE)

FIGURE_4_11 = Figure(
    "Figure 4.11", "Optimisations added one after the other", "PMDK, Kamino-Tx and Atlas; eight threads, 10^6 entries (§4.3.3)",
    f"{DIFFERS}. Our layers undo and pmthreads stand where the paper has Atlas and Kamino-Tx, which are not here. Shares as in Figure 4.10.",
    stated=(Stated("2x and 3x", "PMDK over Atlas and Kamino-Tx, B+tree", "§4.3.3"),
            Stated("2x and 8x", "PMDK over Atlas and Kamino-Tx, hash map", "§4.3.3"),
            Stated("up to 5 %", "gained by static-check, workloads that mostly read", "§4.3.3"),
            Stated("up to 17 %", "gained by coalesce-fields, hash map", "§4.3.3"),
            Stated("up to 8 %, 32 % and 39 %", "gained by coalesce-loops on inserts, PMDK, Atlas and Kamino-Tx", "§4.3.3"),
            Stated("up to 119 %", "gained by no-extra-tracking on inserts", "§4.3.3")),
    runs=runs_of((*(System(f"{layer} {setting}", f"{layer} {setting}") for layer in LAYERS for setting in SETTINGS), ATLAS, KAMINO_TX)),
    reading=readings.RATE)

PAPER = Paper("nvhooks", "NVHooks (Memaripour's thesis, chapter 4)", MACHINE, (FIGURE_4_10, FIGURE_4_11))
