#!/usr/bin/env python3
"""NVHooks: what the compiler's hooks cost, by layer and by optimisation, on the two data structures of the paper.

A hash map of 64 instances and a B+tree with a lock in each node (bench/nvhooks), YCSB's load phase and workloads A (half updates)
and B (5 % updates), Zipf, values of 1024 bytes, 8 threads. Compared in one run: the volatile program; the one that is annotated
by hand for libpmemobj; and each layer with its optimisations switched on one after the other. Pools lie on tmpfs, where
libpmemobj is told to write back cache lines (PMEM_IS_PMEM_FORCE=1), as the layer undo does.

Then: PMThreads-I (tracker hooks) on the B+tree of `stillpoint bench`; code that never touches durable memory; lines changed; the cost at
compile time. What was asked of the optimised pmdk is measured once more with the one by hand alone, in slices that alternate closely.
Columns: ratio is operations per second against the program named, median of the rounds and quartiles; CPU is CPU time for each
operation against it.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "nvhooks"))

import figures  # noqa: E402  (the path must be set first)
import lines_changed  # noqa: E402
from measure import Progress, YcsbWorker, pair_rounds, ratio_facts, ycsb_rounds  # noqa: E402
from paired import (ROOT, Configuration, Tool, ToolError, Worker, common_arguments, pool_folders, run_rounds,  # noqa: E402
                    table)
from settings import LAYERS, SETTINGS, STORES, BuildError, Compilers, write_setting  # noqa: E402

POOL_MIB = 512
WORKLOADS = ["load", "A", "B"]
PARTS = ["stores", "tracker", "phoenix", "compilation"]
BARS = {"pmdk": 0.97, "pmthreads": 0.85, "without durable memory": 0.90}


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.progress = Progress(arguments.json)
        self.tool = Tool(arguments.binaries)
        self.compilers = Compilers(self.tool.binaries.parent)
        self.rounds = max(5, int(arguments.seconds * 1000 / (arguments.slice_ms * 17)))
        library = self.compilers.build / "lib" / "libstillpoint-layer-pmdk.a"
        self.layers = [layer for layer in arguments.layer or LAYERS if layer != "pmdk" or library.is_file()]
        self.by_hand = library.is_file()
        self.configurations = {(layer, setting): write_setting(layer, setting, folder)
                               for layer in self.layers for setting in self.settings()}

    def settings(self):
        return [SETTINGS[0], SETTINGS[-1]] if self.arguments.quick else SETTINGS

    # ---- The two stores

    def build_store(self, store):
        """Programs by the name of their configuration."""
        programs = {"volatile": self.compilers.volatile(store, "ycsb_worker", self.folder / f"{store}-volatile")}
        if self.by_hand:
            programs["by hand"] = self.compilers.hand_annotated(store, "ycsb_worker", self.folder / f"{store}-by-hand")
        for (layer, setting), configuration in self.configurations.items():
            self.progress.say(f"{store}: compiling for {layer}, {setting}")
            programs[f"{layer} {setting}"] = self.compilers.instrumented(
                store, layer, configuration, "ycsb_worker", self.folder / f"{store}-{layer}-{setting}")
        return programs

    def starter(self, store, programs, shared):
        """A function that starts the worker of a configuration on a new pool."""
        def start(name):
            pool = shared / f"{store}-{name.replace(' ', '-')}.pool"
            pool.unlink(missing_ok=True)
            arguments = [pool, POOL_MIB, self.arguments.entries, self.arguments.threads]
            if name.startswith("pmthreads"):
                options = {"tracker": "hooks", "durability": "process", "interval_ms": self.arguments.interval_ms,
                           "pool_size_mb": POOL_MIB}
                return YcsbWorker(self.tool.run_words(pool, options, programs[name], arguments), pool)
            return YcsbWorker([programs[name], *arguments], pool)
        return start

    def measure_store(self, store, shared):
        """Facts of all configurations in turn; and of the optimised pmdk and the one by hand, alone."""
        programs = self.build_store(store)
        start = self.starter(store, programs, shared)
        slices = ycsb_rounds(list(programs), start, self.rounds, self.arguments.slice_ms, self.progress, store)
        facts = []
        for name, by_workload in slices.items():
            for workload in WORKLOADS:
                mine = by_workload[workload]
                fact = {"store": store, "configuration": name, "workload": workload,
                        "operations_per_second": statistics.median(one.rate for one in mine),
                        "of_volatile": ratio_facts(mine, slices["volatile"][workload])}
                if self.by_hand:
                    fact["of_by_hand"] = ratio_facts(mine, slices["by hand"][workload])
                facts.append(fact)
        optimised = f"pmdk {SETTINGS[-1]}"
        if optimised not in programs:
            return facts, []
        pairs = pair_rounds(start, ["by hand", optimised], self.rounds + 4, self.arguments.pairs, 100, self.progress, store)
        return facts, [{"store": store, "workload": workload,
                        **ratio_facts(pairs[optimised][workload], pairs["by hand"][workload])} for workload in WORKLOADS]

    # ---- PMThreads-I, and code without durable memory

    def measure_tracker(self, shared):
        """The B+tree of `stillpoint bench` at 50 % puts: tracker hooks against volatile, and uffd beside it, all by the same Clang (GCC's
        code for this tree is faster by a quarter and more)."""
        self.progress.say("B+tree of stillpoint bench")
        done = subprocess.run([self.tool.program("stillpoint"), "bench", "--quiet", "--workload", "btree", "--engine", "pmthreads",
                               "--tracker", "hooks,uffd", "--interval", str(self.arguments.interval_ms), "--size",
                               str(self.arguments.entries * 20), "--pool", str(shared), "--kills", "0", "--json", "-"],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"stillpoint bench ended with exit code {done.returncode}")
        rows = json.loads(done.stdout)["cells"][0]["configurations"]
        return [{"program": "B+tree", "name": row["name"], "operations_per_second": row["rate"]["median"],
                 "ratio": row["to_volatile"]["median"], "ratio_quartiles": [row["to_volatile"]["low"], row["to_volatile"]["high"]],
                 "cpu_ratio": row["cpu_ns_per_operation"]["median"] / rows[0]["cpu_ns_per_operation"]["median"]} for row in rows]

    def measure_phoenix(self):
        driver = self.compilers.driver("phoenix_worker")
        source = ROOT / "bench/nvhooks/phoenix.c"
        facts = []
        programs = {"not instrumented": self.folder / "phoenix-plain"}
        self.compilers.run(self.compilers.clang, "-O2", "-c", source, "-o", self.folder / "phoenix-plain.o")
        self.compilers.run("c++", self.folder / "phoenix-plain.o", driver, "-pthread", "-o", programs["not instrumented"])
        for layer in self.layers:
            name = f"{layer}, optimised"
            programs[name] = self.folder / f"phoenix-{layer}"
            configuration = self.configurations[(layer, SETTINGS[-1])]
            self.compilers.run(self.tool.program("stillpoint"), "cc", f"--runtime={configuration}", "-O2", "-c", source, "-o",
                               f"{programs[name]}.o")
            self.compilers.run(self.tool.program("stillpoint"), "c++", f"--runtime={configuration}", f"{programs[name]}.o", driver,
                               "-o", programs[name])
        for workload in ("histogram", "string_match"):
            facts += self.slices(workload, [Configuration(name, path) for name, path in programs.items()], [workload, 2])
        return facts

    def slices(self, title, configurations, words):
        """Workers of paired.py in turn; the first is what the others are compared with."""
        workers = []
        try:
            for configuration in configurations:
                self.progress.say(f"{title}: starting {configuration.name}")
                workers.append(Worker(self.tool, configuration, words))
            self.progress.say(f"{title}: {len(workers)} programs in turn")
            outcomes = run_rounds(workers, min(100, self.arguments.slice_ms), self.arguments.seconds / 2)
            for worker in workers:
                worker.end()
            return [{"program": title, **outcome.facts()} for outcome in outcomes]
        finally:
            for worker in workers:
                worker.destroy()

    # ---- The cost at compile time

    def measure_compilation(self):
        """Seconds of compiling each store with -O2, and the ratio to Clang without the plugin: medians of five."""
        facts = []
        for store in STORES:
            times = {}
            for _ in range(5):
                for layer in [None, *self.layers]:
                    configuration = None if layer is None else self.configurations[(layer, SETTINGS[-1])]
                    words = self.compilers.compile_words(store, layer or "volatile", configuration, self.folder / "timed.o", ["-O2"])
                    self.progress.say(f"{store}: timing the compiler")
                    begin = time.monotonic()
                    self.compilers.run(*words)
                    times.setdefault(layer or "Clang alone", []).append(time.monotonic() - begin)
            base = times["Clang alone"]
            for name, taken in times.items():
                facts.append({"store": store, "compiler": name, "seconds": statistics.median(taken),
                              "ratio": statistics.median(mine / other for mine, other in zip(taken, base))})
        return facts

    def measure_all(self, shared):
        stores = self.arguments.store or STORES
        parts = self.arguments.part or PARTS
        results = {"stores": [], "pairs": [], "tracker": [], "without durable memory": [], "compilation": []}
        for store in stores if "stores" in parts else []:
            facts, pairs = self.measure_store(store, shared)
            results["stores"] += facts
            results["pairs"] += pairs
        if "tracker" in parts and "pmthreads" in self.layers:
            results["tracker"] = self.measure_tracker(shared)
        if "phoenix" in parts:
            results["without durable memory"] = self.measure_phoenix()
        if "compilation" in parts:
            results["compilation"] = self.measure_compilation()
        results["lines changed"] = [lines_changed.count(store) for store in stores]
        results["bars"] = judge(results)
        self.progress.done()
        return results


def judge(results):
    """What was asked for against what was reached."""
    bars = []
    for fact in results["pairs"]:
        bars.append({"bar": f"{fact['store']} {fact['workload']}: optimised pmdk of annotated by hand", "asked": BARS["pmdk"],
                     "reached": fact["ratio"], "quartiles": fact["quartiles"], "cpu_ratio": fact["cpu_ratio"]})
    for fact in results["tracker"]:
        if fact["name"].endswith("hooks"):
            bars.append({"bar": "B+tree at 50 % puts: PMThreads-I of volatile", "asked": BARS["pmthreads"],
                         "reached": fact["ratio"], "quartiles": fact["ratio_quartiles"], "cpu_ratio": fact["cpu_ratio"]})
    for fact in results["without durable memory"]:
        if fact["name"] != "not instrumented":
            bars.append({"bar": f"{fact['program']}: {fact['name']} of not instrumented", "asked": BARS["without durable memory"],
                         "reached": fact["ratio"], "quartiles": fact["ratio_quartiles"], "cpu_ratio": fact["cpu_ratio"]})
    return bars


def print_ratio(fact):
    return [f"{fact['ratio']:.2f}", f"{fact['quartiles'][0]:.2f} to {fact['quartiles'][1]:.2f}", f"{fact['cpu_ratio']:.2f}"]


def print_tables(results):
    rows = [[fact["store"], fact["workload"], fact["configuration"], f"{fact['operations_per_second'] / 1e3:.0f} k/s",
             *print_ratio(fact["of_volatile"]), *(print_ratio(fact["of_by_hand"]) if "of_by_hand" in fact else ["-"] * 3)]
            for fact in sorted(results["stores"], key=lambda fact: (fact["store"], WORKLOADS.index(fact["workload"])))]
    show(["store", "workload", "configuration", "operations", "of volatile", "quartiles", "CPU", "of by hand", "quartiles", "CPU"],
         rows)
    rows = [[fact["program"], fact["name"], f"{fact['operations_per_second'] / 1e3:.1f} k/s", f"{fact['ratio']:.2f}",
             f"{fact['ratio_quartiles'][0]:.2f} to {fact['ratio_quartiles'][1]:.2f}", f"{fact['cpu_ratio']:.2f}"]
            for fact in results["tracker"] + results["without durable memory"]]
    show(["program", "configuration", "operations", "ratio", "quartiles", "CPU"], rows)
    show(["store", "lines", "changed for NVHooks", "lines by hand", "changed by hand"],
         [[fact["store"], fact["lines"], fact["nvhooks"], fact["lines_by_hand"], fact["by_hand"]]
          for fact in results["lines changed"]])
    show(["store", "compiler", "compiled in", "ratio"],
         [[fact["store"], fact["compiler"], f"{fact['seconds']:.2f} s", f"{fact['ratio']:.2f}"] for fact in results["compilation"]])
    show(["asked for", "at least", "reached", "quartiles", "CPU", ""],
         [[bar["bar"], f"{bar['asked']:.2f}", f"{bar['reached']:.2f}",
           f"{bar['quartiles'][0]:.2f} to {bar['quartiles'][1]:.2f}", f"{bar['cpu_ratio']:.2f}",
           "met" if bar["reached"] >= bar["asked"] else "missed"] for bar in results["bars"]])


def show(headings, rows):
    if rows:
        for line in table(headings, rows):
            print("  " + line)
        print()


def draw_figures(results, folder):
    """Figure 4.10: initial and optimised against by hand. Figure 4.11: each layer, optimisations added one by one."""
    if not results["stores"]:
        return
    folder.mkdir(parents=True, exist_ok=True)
    rate = {(fact["store"], fact["configuration"], fact["workload"]): fact["operations_per_second"] / 1e6
            for fact in results["stores"]}
    stores = [store for store in STORES if (store, "volatile", "A") in rate]

    def rows(groups):
        """A row of charts for each store, one for each workload: their rates are too far apart for one axis."""
        return [[(f"{store}, {workload}", [(label, [rate.get((store, name, workload)) for name in names]) for label, names in groups])
                 for workload in WORKLOADS] for store in stores]

    if any(name == "by hand" for _, name, _ in rate):
        figures.draw(folder / "nvhooks-figure-4.10.svg", "Cost of automating annotations (libpmemobj), million operations a second",
                     rows([("pmdk", ["by hand", f"pmdk {SETTINGS[0]}", f"pmdk {SETTINGS[-1]}"])]),
                     ["annotated by hand", "initial", "optimised"], "M/s")
    layers = [layer for layer in LAYERS if any(name == f"{layer} {SETTINGS[0]}" for _, name, _ in rate)]
    figures.draw(folder / "nvhooks-figure-4.11.svg", "Optimisations added one after the other, million operations a second",
                 rows([(layer, [f"{layer} {setting}" for setting in SETTINGS]) for layer in layers]),
                 [SETTINGS[0], *(f"+ {setting}" for setting in SETTINGS[1:])], "M/s")


def parse_arguments():
    parser = common_arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="few entries, short slices, the ends of the settings only: a minute")
    parser.add_argument("--entries", type=int, help="keys of the stores (default 50000; the paper has 1000000)")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--slice-ms", type=int)
    parser.add_argument("--pairs", type=int, help="slices of 100 ms of the optimised pmdk and the one by hand (default 31)")
    parser.add_argument("--store", action="append", choices=STORES)
    parser.add_argument("--layer", action="append", choices=LAYERS)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; can be given several times")
    parser.add_argument("--figures", type=Path, default=ROOT / "build" / "bench", help="folder of the SVG files (default build/bench)")
    arguments = parser.parse_args()
    arguments.entries = arguments.entries or (8000 if arguments.quick else 50_000)
    arguments.pairs = arguments.pairs or (5 if arguments.quick else 31)
    arguments.slice_ms = arguments.slice_ms or (60 if arguments.quick else 200)
    arguments.seconds = min(arguments.seconds, 4) if arguments.quick else arguments.seconds
    return arguments


def main():
    arguments = parse_arguments()
    try:
        with pool_folders("nvhooks") as (disk, shared), tempfile.TemporaryDirectory(prefix="programs-", dir=disk) as programs:
            bench = Bench(arguments, Path(programs))
            if not list(bench.compilers.build.glob("lib/libstillpoint-nvhooks-*.so")):
                print("nvhooks: skipped: the compiler plugin was not built (it needs clang-19 and llvm-19-dev)", file=sys.stderr)
                return 0
            if not arguments.json:
                print(f"nvhooks: {arguments.entries} entries, {arguments.threads} threads, {bench.rounds} rounds, slices of "
                      f"{arguments.slice_ms} ms" + ("" if bench.by_hand else "; libpmemobj is not installed: without pmdk"))
            results = bench.measure_all(shared or disk)
    except (ToolError, BuildError) as failure:
        print(f"nvhooks: {failure}", file=sys.stderr)
        return 1
    draw_figures(results, arguments.figures)
    if arguments.json:
        print(json.dumps({"benchmark": "nvhooks", "entries": arguments.entries, "threads": arguments.threads, **results}))
    else:
        print_tables(results)
        if results["stores"]:
            print(f"  Figures 4.10 and 4.11: {arguments.figures}/nvhooks-figure-4.1?.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
