"""Kyoto Cabinet's databases on memory, durable against stock: threads get and set records, in alternating slices of one run."""

import os
import shutil
import subprocess
import time

from driver.benchmark import table
from driver.errors import WorkerFailed
from driver.in_turn import in_turn, ratios, row_of
from driver.sides import Side, answers_in_turn, started
from driver.tables import ratio_cells, short

DESCRIPTION = """\
Kyoto Cabinet's databases on memory, durable against stock: threads get and set records, in alternating slices of one run.

The baseline is the stock library without Stillpoint. "patched, volatile" is the durable library without a pool: what the patch costs
programs that do not use it. The others keep the database in a pool: in shared memory with durability `process`, on the disk with `power`,
and compiled by `stillpoint c++` with the tracker hooks (not the tree: std::map stores in precompiled code).

Then Tokyo Cabinet's own tcumttest, unmodified, with `stillpoint run` against without: whole processes in alternating order. Its memory
stays volatile: this is what replaced locks and the start cost a foreign program.

"cache-unsorted" is the cache with its LRU rotation off: then a read writes nothing.

`integrations/kyotocabinet/build.py stock durable hooks` builds what is measured."""
SECONDS = 15
SLICES_MIN = 5
# Words of tcumttest, and its operations for each of --tokyo-operations.
TOKYO_CASES = (("combo 2", 1), ("combo -tr 2", 0.15), ("typical 2", 1.5), ("typical -tr 2", 0.15))


def add_options(parser):
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--kinds", default="cache,cache-unsorted,hash,tree", help="or none: only tcumttest (default %(default)s)")
    parser.add_argument("--records", type=int, default=200000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sets", type=int, default=50, help="percent of the operations (default 50)")
    parser.add_argument("--slice-ms", type=int, default=3000, help="of a side in a round (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=11, help="of each case of tcumttest; 0: none (default 11)")
    parser.add_argument("--tokyo-operations", type=int, default=200000, help="how much tcumttest does (default %(default)s)")


def worker_of(flavour):
    """Relative to the folder of the project's programs."""
    return f"../integrations/kyotocabinet/{flavour}/kyotocabinet_worker"


def why_not(options):
    if (options.binaries / worker_of("durable")).is_file():
        return None
    return "run integrations/kyotocabinet/build.py stock durable hooks first"


def sides_of(kind, bench):
    """The baseline first."""
    usual = (("interval-ms", bench.options.interval_ms), ("pool-size-mb", 256))
    durable = (("path", "bench"),)
    has_memory = bench.place.folders["memory"] is not None
    anywhere = "memory" if has_memory else "file"
    yield Side("stock", worker_of("stock"), medium=anywhere)
    yield Side("patched, volatile", worker_of("durable"), medium=anywhere)
    if has_memory:
        yield Side("pool in shared memory, process", worker_of("durable"), (*usual, ("durability", "process")), settings=durable)
    yield Side("pool on disk, power", worker_of("durable"), (*usual, ("durability", "power")), "file", settings=durable)
    hooks = Side("the same in shared memory, hooks", worker_of("hooks"), (*usual, ("durability", "process"), ("tracker", "hooks")),
                 settings=durable)
    if has_memory and kind != "tree" and bench.place.program(hooks).is_file():
        yield hooks


def measure_kind(bench, kind):
    options, sides = bench.options, list(sides_of(kind, bench))
    settings = {"kind": kind, "threads": options.threads, "records": options.records, "sets": options.sets, "path": "*"}
    rounds = max(SLICES_MIN, int(options.seconds * 1000 / (options.slice_ms * len(sides))))
    with started(bench, sides, settings) as (processes, _):
        answers = answers_in_turn(bench, processes, "slice", int(options.slice_ms * 1e6), goes_on=rounds)
    return [{"kind": kind, **row_of(name, mine, answers["stock"])} for name, mine in answers.items()]


def times_of(words):
    """Wall time and CPU time of a process, in seconds."""
    begun = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # pylint: disable=consider-using-with
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise WorkerFailed(f"{' '.join(words)}: exit code {process.returncode}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime


def measure_tokyo(bench, program):
    """The time of each case under `stillpoint run`, as a ratio of the time without."""
    options = bench.options
    pool = (bench.place.folders["memory"] or bench.place.folders["file"]) / "tokyo.pool"
    for words, part in TOKYO_CASES:
        case = f"{words} {int(options.tokyo_operations * part)}"
        plain = [program, *case.split()]
        under_run = [bench.place.tool.program("stillpoint"), "run", "--quiet", "--durability", "process", "--pool", str(pool), "--", *plain]

        def times(one):
            pool.unlink(missing_ok=True)
            return times_of(one)

        times(plain)
        base, mine = in_turn([plain, under_run], lambda one, _, times=times: times(one), options.pairs, options.seed)
        yield {"case": case, "ratio": ratios(mine, base, lambda one: one[0]), "cpu_ratio": ratios(mine, base, lambda one: one[1]),
               "pairs": options.pairs}


def measure(bench):
    kinds = bench.options.kinds.split(",") if bench.options.kinds != "none" else ()
    databases = [row for kind in kinds for row in measure_kind(bench, kind)]
    program = shutil.which("tcumttest")
    return {"databases": databases, "tcumttest": list(measure_tokyo(bench, program)) if program and bench.options.pairs > 1 else []}


def lines(result):
    options = result["options"]
    return [
        f"{options['records']} records of 100 bytes, {options['threads']} threads, {options['sets']} % sets, interval "
        f"{options['interval_ms']} ms; ratios of the stock library, median (quartiles) of the rounds",
        *table(["database", "configuration", "operations", "ratio", "quartiles", "CPU/op", "rounds"],
               [[row["kind"], row["name"], f"{short(row['rate']['median'])}/s", *ratio_cells(row["to_volatile"], "{:.2f}".format),
                 f"{row['cpu_to_volatile']['median']:.2f}", row["rounds"]] for row in result["databases"]]),
        "tcumttest under `stillpoint run`: its time as a ratio of the time without, median (quartiles) of the pairs",
        *table(["case", "ratio", "quartiles", "CPU", "pairs"],
               [[one["case"], *ratio_cells(one["ratio"], "{:.2f}".format), f"{one['cpu_ratio']['median']:.2f}", one["pairs"]]
                for one in result["tcumttest"]])]
