"""Breeze: a B+tree and a cuckoo hash table, volatile, by Breeze, libpmemobj and pronto: speed, and how many lines of a program change."""

import tempfile
from pathlib import Path

from driver.benchmark import table
from driver.build import make_sure_of
from driver.in_turn import orders, ratios, row_of
from driver.figures import rate
from driver.sides import ROOT, Side
from driver.tables import ratio_cells, short
from nvhooks.alternating import EVERY_MIX, alternate
from nvhooks.settings import Compilers

from .changed_lines import count

DESCRIPTION = """\
Breeze: a B+tree and a cuckoo hash table (bench/breeze_ports), each written three times: in memory, durable by Breeze, and durable by
libpmemobj, by hand; and the volatile one as a durable object of pronto. YCSB's load phase and workloads A (half updates), B (5 %
updates), D (5 % inserts, the newest are read) and F (half read-modify-write), Zipf, values of 1024 bytes. Pools lie in shared memory
with real write backs (PMEM_IS_PMEM_FORCE=1 for libpmemobj).

Lines changed: a replaced line counts once, and so does one that is new or gone; comments and empty lines do not count
[Breeze, Table 3.4]."""
SECONDS = 15
POOL_MIB = 1024
SOURCES = Path(__file__).resolve().parent
STORES = ("btree", "cuckoo")
DURABLE = ("breeze", "pmdk")  # with sources of their own, whose lines are counted
SIDES = ("volatile", *DURABLE, "pronto")


def add_options(parser):
    parser.add_argument("--entries", type=int, help="keys of the stores (default 50000)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--store", action="append", choices=STORES)


def why_not(options):
    if list(options.binaries.parent.glob("lib/libstillpoint-nvhooks-*.so")):
        return None
    return "the compiler plugin was not built (it needs clang-19 and llvm-19-dev)"


class Ports:
    """The programs, in a folder that lasts as long as the run."""

    def __init__(self, bench, folder):
        self.bench, self.folder, self.options = bench, folder, bench.options
        self.compilers = Compilers(bench.place.tool.binaries.parent)
        make_sure_of([self.compilers.build / "lib" / "libstillpoint-layer-breeze.a", self.compilers.driver("ycsb_worker")])
        self.entries = self.options.entries or (4000 if self.options.quick else 50_000)

    def program(self, store, kind):
        """Linked with the driver. Clang compiles all of them."""
        name = store if kind == "volatile" else f"{store}_{kind}"
        target, driver = self.folder / name, self.compilers.driver("ycsb_worker")
        includes = [f"-I{ROOT / 'bench' / 'nvhooks'}", f"-I{ROOT / 'include'}"]
        words = ["-std=gnu11", "-O2", "-g", *includes, "-c", SOURCES / f"{name}.c", "-o", f"{target}.o"]
        tool = self.compilers.build / "bin" / "stillpoint"
        if kind == "breeze":
            self.compilers.run(tool, "cc", "--runtime=breeze", *words)
            self.compilers.run(tool, "c++", "--runtime=breeze", f"{target}.o", driver, "-o", target)
        elif kind == "pronto":
            wrapper = f"{target}-object.o"
            self.compilers.run(self.compilers.clang, *words)
            self.compilers.run("c++", "-std=c++20", "-O2", *includes, "-c", SOURCES / "pronto_store.cpp", "-o", wrapper)
            library = self.compilers.build / "lib"
            self.compilers.run("c++", f"{target}.o", wrapper, driver, f"-L{library}", "-lstillpoint", f"-Wl,-rpath,{library}", "-pthread",
                               "-o", target)
        else:
            self.compilers.run(self.compilers.clang, *words)
            self.compilers.run("c++", f"{target}.o", driver, *["-lpmemobj"] * (kind == "pmdk"), "-pthread", "-o", target)
        return target

    def sides(self, store):
        kinds = [kind for kind in SIDES if kind != "pmdk" or Path("/usr/include/libpmemobj.h").exists()]
        environment = (("PMEM_IS_PMEM_FORCE", "1"), ("STILLPOINT_QUIET", "1"), ("STILLPOINT_MEDIUM", "memory"))
        run = {"pronto": (("engine", "pronto"), ("medium", "memory"), ("durability", "power"), ("pool-size-mb", POOL_MIB))}
        return {kind: Side(f"{store} {kind}", self.program(store, kind), run=run.get(kind), environment=environment,
                           settings=(("pool_mib", POOL_MIB), ("entries", self.entries), ("threads", self.options.threads)))
                for kind in kinds}

    def measure(self, store):
        self.bench.progress.show(f"{store}: compiling")
        sides = self.sides(store)
        slice_ms = 60 if self.options.quick else 300
        rounds = max(self.options.repeat, round(self.options.seconds * 1000 / (slice_ms * len(EVERY_MIX) * len(sides))))
        counts = (max(3, rounds // 4), rounds)
        answers = alternate(self.bench, sides, orders(sides, self.options.seed), counts, (slice_ms / 2, slice_ms), EVERY_MIX)
        rows = []
        for name, of_workload in answers.items():
            for workload, mine in of_workload.items():
                row = {"store": store, "workload": workload, **row_of(name, mine, answers["volatile"][workload])}
                if "pmdk" in answers:
                    row["to_libpmemobj"] = ratios(mine, answers["pmdk"][workload], rate)
                rows.append(row)
        return rows


def measure(bench):
    stores = bench.options.store or STORES
    changed = {}
    for store in stores:
        lines, (breeze, pmdk) = count(SOURCES / f"{store}.c", *(SOURCES / f"{store}_{kind}.c" for kind in DURABLE))
        changed[store] = {"lines": lines, "breeze": breeze, "libpmemobj": pmdk}
    with tempfile.TemporaryDirectory(prefix="stillpoint-ports-") as folder:
        ports = Ports(bench, Path(folder))
        return {"lines_changed": changed, "rows": [row for store in stores for row in ports.measure(store)]}


def lines(result):
    rows = [[row["store"], row["workload"], row["name"], short(row["rate"]["median"]), *ratio_cells(row["to_volatile"]),
             *(ratio_cells(row["to_libpmemobj"]) if "to_libpmemobj" in row else ("-", "-"))] for row in result["rows"]]
    changed = [[store, facts["lines"], facts["breeze"], facts["libpmemobj"], f"{1 - facts['breeze'] / facts['libpmemobj']:.0%}"]
               for store, facts in result["lines_changed"].items()]
    return [f"Breeze's ports, {result['options']['threads']} threads",
            *table(["", "YCSB", "", "operations/s", "of volatile", "quartiles", "times libpmemobj", "quartiles"], rows),
            *table(["", "lines", "changed for Breeze", "for libpmemobj", "fewer"], changed)]
