"""NVHooks: what the compiler's hooks cost, by layer and by optimisation, on the two data structures of the paper."""

import dataclasses
import statistics
import sys
import tempfile
import time
from pathlib import Path

from driver import subruns
from driver.benchmark import table
from driver.build import make_sure_of
from driver.figures import cpu_per_operation, rate, spread
from driver.in_turn import in_turn, orders, ratios, row_of
from driver.report import draw_plots, make_sure_of_matplotlib
from driver.report.plots import Bar, Bars
from driver.sides import ROOT, Side, answers_in_turn, started
from driver.tables import short

from . import lines_changed
from .alternating import MIXES, alternate
from .settings import LAYERS, MORE_LAYERS, SETTINGS, STORES, Compilers, write_setting

DESCRIPTION = """\
NVHooks: what the compiler's hooks cost, by layer and by optimisation, on the two data structures of the paper.

A hash map of 64 instances and a B+tree with a lock in each node (bench/nvhooks), YCSB's load phase and workloads A (half updates)
and B (5 % updates), Zipf, values of 1024 bytes, 8 threads. Compared in one run: the volatile program; the one that is annotated
by hand for libpmemobj; and each layer with its optimisations switched on one after the other. Pools lie on tmpfs, where
libpmemobj is told to write back cache lines (PMEM_IS_PMEM_FORCE=1), as the layer undo does.

Part regions, if asked for: the microbenchmark of NVthreads' Figure 3, 1000 pages of which regions of 8 bytes up to all are overwritten, and
PageRank, whose ranks are durable; 4 threads; volatile, undo, pmthreads and nvthreads.

Then: PMThreads-I (tracker hooks) on the B+tree of `stillpoint bench`; code that never touches durable memory; lines changed; the cost at
compile time. What was asked of the optimised pmdk is measured once more with the one by hand alone, in slices that alternate closely.
Columns: ratio is operations per second against the program named, median of the rounds and quartiles; CPU is CPU time for each
operation against it."""
SECONDS = 15
POOL_MIB = 512
WORKLOADS = ["load", *MIXES]
PARTS = ["stores", "tracker", "phoenix", "compilation"]
REGIONS = "regions"  # of another paper: measured only if asked for
REGION_BYTES = [8, 1024, 2048, 3072, 4096]
REGION_THREADS = 4
BARS = {"pmdk": 0.97, "pmthreads": 0.85, "without durable memory": 0.90}


def add_options(parser):
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--entries", type=int, help="keys of the stores (default 50000; the paper has 1000000)")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--slice-ms", type=int, help="default 200")
    parser.add_argument("--pairs", type=int, help="slices of 100 ms of the optimised pmdk and the one by hand (default 31)")
    parser.add_argument("--store", action="append", choices=STORES)
    parser.add_argument("--layer", action="append", choices=[*LAYERS, *MORE_LAYERS])
    parser.add_argument("--part", action="append", choices=[*PARTS, REGIONS], help="only this; can be given several times")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="draw Figures 4.10 and 4.11 of the paper, as SVG files in DIR")


def why_not(options):
    if options.figures:
        make_sure_of_matplotlib("--figures", ROOT / "bench" / "run.py", sys.argv[1:])
    if list(options.binaries.parent.glob("lib/libstillpoint-nvhooks-*.so")):
        return None
    return "the compiler plugin was not built (it needs clang-19 and llvm-19-dev)"


class Programs:
    """Everything that is compiled, in a folder that lasts as long as the run."""

    def __init__(self, bench, folder):
        self.bench, self.folder = bench, folder
        self.options = options = bench.options
        options.entries = options.entries or (8000 if options.quick else 50_000)
        options.pairs = options.pairs or (5 if options.quick else 31)
        options.slice_ms = options.slice_ms or (60 if options.quick else 200)
        self.seconds = min(options.seconds, 4) if options.quick else options.seconds
        self.rounds = max(5, int(self.seconds * 1000 / (options.slice_ms * 17)))
        self.compilers = Compilers(bench.place.tool.binaries.parent)
        layer = self.compilers.build / "lib" / "libstillpoint-layer-pmdk.a"
        make_sure_of([layer, self.compilers.driver("ycsb_worker"), self.compilers.driver("phoenix_worker")])
        self.by_hand = layer.is_file()
        self.layers = [layer for layer in options.layer or LAYERS if layer != "pmdk" or self.by_hand]
        settings = [SETTINGS[0], SETTINGS[-1]] if options.quick else SETTINGS
        self.configurations = {(layer, setting): write_setting(layer, setting, folder) for layer in self.layers for setting in settings}

    # ---- The two stores

    def side(self, store, name, program):
        run = None
        if name.startswith("pmthreads"):
            run = (("tracker", "hooks"), ("durability", "process"), ("interval-ms", self.options.interval_ms), ("pool-size-mb", POOL_MIB))
        if name.startswith("nvthreads"):
            acknowledge = "unlock" if name.endswith("unlock") else "order"
            run = (("engine", "nvthreads"), ("acknowledge", acknowledge), ("durability", "power"), ("medium", "memory"),
                   ("pool-size-mb", POOL_MIB))
        return Side(f"{store} {name}", program, run, environment=(("PMEM_IS_PMEM_FORCE", "1"), ("STILLPOINT_QUIET", "1")),
                    settings=(("pool_mib", POOL_MIB), ("entries", self.options.entries), ("threads", self.options.threads)))

    def store_sides(self, store):
        """{name of a configuration: its side}."""
        programs = {"volatile": self.compilers.volatile(store, "ycsb_worker", self.folder / f"{store}-volatile")}
        if self.by_hand:
            programs["by hand"] = self.compilers.hand_annotated(store, "ycsb_worker", self.folder / f"{store}-by-hand")
        for (layer, setting), configuration in self.configurations.items():
            self.bench.progress.show(f"{store}: compiling for {layer}, {setting}")
            programs[f"{layer} {setting}"] = self.compilers.instrumented(
                store, layer, configuration, "ycsb_worker", self.folder / f"{store}-{layer}-{setting}")
        return {name: self.side(store, name, program) for name, program in programs.items()}

    def measure_store(self, store):
        """Rows of all configurations in turn; and of the optimised pmdk and the one by hand, alone."""
        sides = self.store_sides(store)
        slice_ms = self.options.slice_ms
        answers = alternate(self.bench, sides, orders(sides, self.options.seed), (self.rounds, self.rounds), (slice_ms / 2, slice_ms))
        rows = []
        for name, of_workload in answers.items():
            for workload, mine in of_workload.items():
                row = {"store": store, "workload": workload, **row_of(name, mine, answers["volatile"][workload])}
                if self.by_hand:
                    by_hand = answers["by hand"][workload]
                    row.update(to_by_hand=ratios(mine, by_hand, rate), cpu_to_by_hand=ratios(mine, by_hand, cpu_per_operation))
                rows.append(row)
        optimised = f"pmdk {SETTINGS[-1]}"
        if optimised not in sides:
            return rows, []
        pair = ["by hand", optimised]
        there_and_back = (pair[::(-1) ** number] for number in range(1 << 30))
        counts = self.rounds + 4, self.options.pairs
        answers = alternate(self.bench, {name: sides[name] for name in pair}, there_and_back, counts, (100, 100))
        by_hand, mine = (answers[name] for name in pair)
        return rows, [{"store": store, "workload": workload, **row_of(optimised, mine[workload], by_hand[workload])}
                      for workload in WORKLOADS]

    # ---- The microbenchmark of NVthreads

    def measure_regions(self):
        """Rows of all layers that see stores one by one, at each share of a page."""
        programs = {"volatile": self.compilers.volatile("page_regions", "regions_worker", self.folder / "regions-volatile")}
        for layer in [layer for layer in dict.fromkeys([*self.layers, *MORE_LAYERS]) if layer != "pmdk"]:
            configuration = self.configurations.get((layer, SETTINGS[-1])) or write_setting(layer, SETTINGS[-1], self.folder)
            program = self.compilers.instrumented("page_regions", layer, configuration, "regions_worker", self.folder / f"regions-{layer}")
            names = ["nvthreads order", "nvthreads unlock"] if layer == "nvthreads" else [layer]
            programs.update(dict.fromkeys(names, program))
        cells = [(f"regions of {length} B", {"length": length}) for length in REGION_BYTES] + [("PageRank", {"program": "pagerank"})]
        rows = []
        for title, settings in cells:
            sides = [dataclasses.replace(self.side("page_regions", name, program), name=name, settings=(("pool_mib", POOL_MIB),))
                     for name, program in programs.items()]
            with started(self.bench, sides, {"threads": REGION_THREADS, **settings}) as (made, _):
                slice_ms = self.options.slice_ms
                rounds = max(5, int(self.seconds * 1000 / (slice_ms * len(programs))))
                answers = answers_in_turn(self.bench, made, "slice", int(slice_ms * 1e6), goes_on=rounds)
            rows += [{"program": title, **row_of(name, mine, answers["volatile"])} for name, mine in answers.items()]
        return rows

    # ---- PMThreads-I, and code without durable memory

    def measure_tracker(self):
        """The B+tree of `stillpoint bench` at 50 % puts: tracker hooks against volatile, and uffd beside it, all by the same Clang (GCC's
        code for this tree is faster by a quarter and more)."""
        self.bench.progress.show("B+tree of stillpoint bench")
        folder = self.bench.place.folders["memory"] or self.bench.place.folders["file"]
        document = subruns.bench_document(self.options, [
            "--workload", "btree", "--engine", "pmthreads", "--tracker", "hooks,uffd", "--interval", str(self.options.interval_ms),
            "--size", str(self.options.entries * 20), "--pool", str(folder), "--kills", "0"], seconds=2.1, repeat=7)
        rows = document["cells"][0]["configurations"]
        base = rows[0]["cpu_ns_per_operation"]["median"]
        return [{"program": "B+tree", "name": row["name"], "rate": row["rate"], "to_volatile": row["to_volatile"],
                 "cpu_to_volatile": {"median": row["cpu_ns_per_operation"]["median"] / base}} for row in rows]

    def measure_phoenix(self):
        driver = self.compilers.driver("phoenix_worker")
        source = ROOT / "bench/nvhooks/phoenix.c"
        programs = {"not instrumented": self.folder / "phoenix-plain"}
        self.compilers.run(self.compilers.clang, "-O2", "-c", source, "-o", self.folder / "phoenix-plain.o")
        self.compilers.run("c++", self.folder / "phoenix-plain.o", driver, "-pthread", "-o", programs["not instrumented"])
        stillpoint = self.bench.place.tool.program("stillpoint")
        for layer in self.layers:
            program = programs[f"{layer}, optimised"] = self.folder / f"phoenix-{layer}"
            configuration = self.configurations[(layer, SETTINGS[-1])]
            self.compilers.run(stillpoint, "cc", f"--runtime={configuration}", "-O2", "-c", source, "-o", f"{program}.o")
            self.compilers.run(stillpoint, "c++", f"--runtime={configuration}", f"{program}.o", driver, "-o", program)
        rows = []
        for workload in ("histogram", "string_match"):
            slice_ms = min(100, self.options.slice_ms)
            rounds = max(5, int(self.seconds / 2 * 1000 / (slice_ms * len(programs))))
            sides = [Side(name, path) for name, path in programs.items()]
            with started(self.bench, sides, {"program": workload, "threads": 2}) as (made, _):
                answers = answers_in_turn(self.bench, made, "slice", int(slice_ms * 1e6), goes_on=rounds)
            rows += [{"program": workload, **row_of(name, mine, answers["not instrumented"])} for name, mine in answers.items()]
        return rows

    # ---- The cost at compile time

    def measure_compilation(self):
        """Seconds of compiling each store with -O2, and the ratio to Clang without the plugin: medians of five."""
        def seconds(store, layer):
            self.bench.progress.show(f"{store}: timing the compiler")
            begin = time.monotonic()
            configuration = layer and self.configurations[(layer, SETTINGS[-1])]
            self.compilers.run(*self.compilers.compile_words(store, layer or "volatile", configuration, self.folder / "timed.o", ["-O2"]))
            return time.monotonic() - begin

        rows = []
        for store in STORES:
            compilers = [None, *self.layers]
            times = in_turn(compilers, lambda layer, _, store=store: seconds(store, layer), 5, self.options.seed)
            rows += [{"store": store, "compiler": layer or "Clang alone", "seconds": statistics.median(taken),
                      "ratio": spread(mine / other for mine, other in zip(taken, times[0]))["median"]}
                     for layer, taken in zip(compilers, times)]
        return rows


def measure(bench):
    options = bench.options
    stores, parts = options.store or STORES, options.part or PARTS
    result = {"stores": [], "pairs": [], "regions": [], "tracker": [], "without durable memory": [], "compilation": []}
    with tempfile.TemporaryDirectory(prefix="programs-", dir=bench.place.folders["file"]) as folder:
        programs = Programs(bench, Path(folder))
        for store in stores if "stores" in parts else []:
            rows, pairs = programs.measure_store(store)
            result["stores"] += rows
            result["pairs"] += pairs
        if REGIONS in parts:
            result["regions"] = programs.measure_regions()
        if "tracker" in parts and "pmthreads" in programs.layers:
            result["tracker"] = programs.measure_tracker()
        if "phoenix" in parts:
            result["without durable memory"] = programs.measure_phoenix()
        if "compilation" in parts:
            result["compilation"] = programs.measure_compilation()
        result.update(entries=options.entries, threads=options.threads, rounds=programs.rounds, slice_ms=options.slice_ms,
                      by_hand=programs.by_hand)
    result["lines changed"] = [lines_changed.count(store) for store in stores]
    result["bars"] = judged(result)
    if options.figures and result["stores"]:
        draw_plots(options.figures, "nvhooks-figure", plots(result))
    return result


def judged(result):
    """The bars against the figures reached."""
    wanted = [(f"{row['store']} {row['workload']}: optimised pmdk of annotated by hand", "pmdk", row) for row in result["pairs"]]
    wanted += [("B+tree at 50 % puts: PMThreads-I of volatile", "pmthreads", row) for row in result["tracker"]
               if row["name"].endswith("hooks")]
    wanted += [(f"{row['program']}: {row['name']} of not instrumented", "without durable memory", row)
               for row in result["without durable memory"] if row["name"] != "not instrumented"]
    return [{"bar": text, "asked": BARS[of], "reached": row["to_volatile"], "cpu": row["cpu_to_volatile"]} for text, of, row in wanted]


def ratio_columns(found, cpu):
    return [f"{found['median']:.2f}", f"{found['low']:.2f} to {found['high']:.2f}", f"{cpu['median']:.2f}"] if found else ["-"] * 3


def lines(result):
    per_second = lambda row: f"{short(row['rate']['median'])}/s"  # noqa: E731  (twice, and only here)
    by_workload = sorted(result["stores"], key=lambda row: (row["store"], WORKLOADS.index(row["workload"])))
    return [
        f"nvhooks: {result['entries']} entries, {result['threads']} threads, {result['rounds']} rounds, slices of {result['slice_ms']} ms"
        + ("" if result["by_hand"] else "; libpmemobj is not installed: without pmdk"),
        *table(["store", "workload", "configuration", "operations", "of volatile", "quartiles", "CPU", "of by hand", "quartiles", "CPU"],
               [[row["store"], row["workload"], row["name"], per_second(row), *ratio_columns(row["to_volatile"], row["cpu_to_volatile"]),
                 *ratio_columns(row.get("to_by_hand"), row.get("cpu_to_by_hand"))] for row in by_workload]),
        *table(["program", "configuration", "operations", "ratio", "quartiles", "CPU"],
               [[row["program"], row["name"], per_second(row), *ratio_columns(row["to_volatile"], row["cpu_to_volatile"])]
                for row in result["regions"] + result["tracker"] + result["without durable memory"]]),
        *table(["store", "lines", "changed for NVHooks", "lines by hand", "changed by hand"],
               [[row[name] for name in ("store", "lines", "nvhooks", "lines_by_hand", "by_hand")] for row in result["lines changed"]]),
        *table(["store", "compiler", "compiled in", "ratio"],
               [[row["store"], row["compiler"], f"{row['seconds']:.2f} s", f"{row['ratio']:.2f}"] for row in result["compilation"]]),
        *table(["asked for", "at least", "reached", "quartiles", "CPU", ""],
               [[bar["bar"], f"{bar['asked']:.2f}", *ratio_columns(bar["reached"], bar["cpu"]),
                 "met" if bar["reached"]["median"] >= bar["asked"] else "missed"] for bar in result["bars"]]),
        *([f"  Figures 4.10 and 4.11: {result['options']['figures']}/nvhooks-figure-*.svg"] if result["options"]["figures"] else [])]


def plots(result):
    """Figure 4.10: initial and optimised against by hand. Figure 4.11: each layer, optimisations added one by one. One plot for each
    store and workload: their rates are too far apart for one axis."""
    rates = {(row["store"], row["name"], row["workload"]): row["rate"] for row in result["stores"]}
    settings = [f"+ {setting}" if number else setting for number, setting in enumerate(SETTINGS)]
    wanted = [("4.10", "Cost of automating annotations",
               [("pmdk", "by hand", "annotated by hand"), ("pmdk", f"pmdk {SETTINGS[0]}", "initial"),
                ("pmdk", f"pmdk {SETTINGS[-1]}", "optimised")]),
              ("4.11", "Optimisations added one after the other",
               [(layer, f"{layer} {setting}", shown) for layer in LAYERS for setting, shown in zip(SETTINGS, settings)])]
    made = []
    for number, title, bars in wanted:
        for store, workload in dict.fromkeys((store, workload) for store, _, workload in rates):
            groups = {}
            for group, name, shown in bars:
                if found := rates.get((store, name, workload)):
                    bar = Bar(shown, found["median"], found["low"], found["high"], f"{short(found['median'])}/s")
                    groups.setdefault(group, []).append(bar)
            if groups:
                made.append(Bars(f"{number}-{store}-{workload}", f"Figure {number}: {title}; {store}, {workload}", list(groups.items())))
    return made
