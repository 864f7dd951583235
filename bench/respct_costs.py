"""The cost of the engine respct, part by part: makes docs/measured/tables/respct.md. Every part is runs of `stillpoint bench`."""

from driver.pages import BenchRuns, Page
from driver.report.markdown import safe, table
from driver.tables import duration, of, ratio, short

INTRODUCTION = """\
# What respct costs

This page is generated: `python3 bench/run.py respct_costs --json run.json --markdown docs/measured/tables/respct.md`. Every ratio
is to the same source compiled and linked without Stillpoint (volatile), between slices of one round of one run, 3 s each; the median
of the rounds is given with its quartiles. The best volatile is the faster of volatile and volatile-words, whose locks and buckets are as
small and as aligned as those of respct. Pools lie in shared memory and must survive power (`--durability power`), so every line is
written back by the processor's own instruction; an interval is 64 ms where nothing else is said. Stops are all those of the slices.
Memory is what the process and its pool have, of volatile's. [bench](../../../bench/README.md) says how it is measured,
[papers.md](papers.md) has the same figures next to the paper's.
"""


def rate_of(row):
    return f"{short(row['rate']['median'])}/s" if row.get("rate") else "-"


def ratio_of(row, base="to_volatile"):
    found = row.get(base)
    return "-" if found is None else f"{ratio(found['median'])} ({ratio(found['low'])} to {ratio(found['high'])})"


def cpu_of(row, cell):
    base = next(one for one in cell["configurations"] if one["kind"] == "volatile")
    mine, theirs = of(row, "cpu_ns_per_operation", "median"), of(base, "cpu_ns_per_operation", "median")
    return f"{mine / theirs:.2f}" if mine and theirs else "-"


def number(value):
    return "-" if value is None else short(value)


def ratios(cells):
    """A row for each configuration of each cell. `cells`, here and below: [(heading of the run, cell)]."""
    headings = ["work", "threads", "", "operations", "of the best volatile", "of volatile", "CPU of volatile's", "operation p50", "p99",
                "p99.9", "stop p50", "p99", "longest", "memory", "lines a checkpoint", "fences a checkpoint"]
    rows = []
    for _, cell in cells:
        name = " ".join(filter(None, [cell["workload"], cell["mix"]]))
        for row in cell["configurations"]:
            rows.append([safe(name), str(cell["threads"]), safe(row["name"]), rate_of(row), ratio_of(row, "to_best_volatile"),
                         ratio_of(row), cpu_of(row, cell), *(duration(of(row, "latency_ns", rank)) for rank in ("p50", "p99", "p99.9")),
                         *(duration(of(row, "stop_ns", rank)) for rank in ("p50", "p99", "max")), ratio(row.get("memory_to_volatile")),
                         number(row.get("lines_written_back_per_checkpoint")), number(row.get("fences_per_checkpoint"))])
    return table(headings, rows)


def slowdowns(cells):
    """The time of each job against volatile's."""
    rows = [[safe(cell["workload"]), str(cell["threads"]), safe(row["name"]), f"{1 / row['to_volatile']['median']:.3f}", cpu_of(row, cell),
             number(row.get("lines_written_back_per_checkpoint"))]
            for _, cell in cells for row in cell["configurations"] if row["kind"] != "volatile"]
    return table(["program", "threads", "", "time, of volatile's", "CPU of volatile's", "lines a checkpoint"], rows)


def periods(cells):
    rows = [[f"{row['interval_ms']} ms", "-" if row["epoch_ms"] is None else f"{row['epoch_ms']:.1f} ms", ratio_of(row), cpu_of(row, cell),
             *(duration(of(row, "stop_ns", rank)) for rank in ("p50", "p99", "max")), number(row.get("lines_written_back_per_checkpoint"))]
            for _, cell in cells for row in cell["configurations"] if row["kind"] != "volatile"]
    return table(["asked for", "reached", "of volatile", "CPU of volatile's", "stop p50", "p99", "max", "lines a checkpoint"], rows)


def recoveries(cells):
    rows = []
    for _, cell in cells:
        for row in cell["configurations"]:
            if row["kill"]:
                rows.append([short(cell["size"] / 2), safe(row["name"]), duration(row["kill"].get("recovery_ns")),
                             duration(row["kill"]["restart_to_first_operation_ns"]), duration(row.get("fill_ns"))])
    return table(["buckets, keys", "", "recovery", "restart to the first operation", "filling it at first"], rows)


def placements(cells):
    usual = {(cell["workload"], cell["threads"]): row["rate"]["median"] for _, cell in cells if cell["operation_size"] is None
             for row in cell["configurations"] if row["kind"] == "volatile"}
    rows = [[safe(cell["workload"]), str(cell["threads"]), "its own" if cell["operation_size"] is None else f"{cell['operation_size']:,}",
             safe(row["name"]), f"{usual[cell['workload'], cell['threads']] / row['rate']['median']:.2f}"]
            for _, cell in cells for row in cell["configurations"]]
    return table(["program", "threads", "in an operation", "", "time, of volatile's with its own"], rows)


MIXES = "--mix 90:10,50:50,10:90"
MAP_BARS = (("90:10", 0.97), ("50:50", 0.95), ("10:90", 0.93))
PROGRAMS = ("dedup", "swaptions", "matrix_multiply", "linear_regression")
KEYS = (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)


def runs(title, says, rows, *commands):
    """`commands`: (arguments, what must be reached)."""
    return BenchRuns(title, says, tuple(("", f"{words} --durability power", bars) for words, bars in commands), rows)


PARTS = {
    "structures": runs(
        "Hash map and queue", "The hash map has 1M buckets with a mutex each and 2M keys, of which half are there; a mix is "
        "reads:updates. The queue has one lock, and about 1000 elements. volatile-words is the volatile program with locks of one word, as "
        "respct has them, in place of pthread's: what of a ratio is due to the locks.", ratios,
        (f"--workload hash_map {MIXES} --threads 1,2 --engine respct,pmthreads,pmemobj,volatile-words --interval 64 --no-kill",
         (*(f"hash_map {mix}: respct.best_volatile>={limit}" for mix, limit in MAP_BARS), "hash_map: respct/pmemobj>=10",
          "hash_map: respct.stop_p99<=1ms", "hash_map: respct.memory<=2.5")),
        ("--workload queue --threads 1,2 --engine respct,pmthreads,pmemobj,volatile-words --interval 64 --no-kill",
         ("queue: respct.best_volatile>=0.80", "queue: respct.stop_p99<=1ms"))),
    "programs": runs(
        "The four programs", "Time of a job, restart points after blocks of work. Of dedup's pipeline, whose stages wait for "
        "each other through condition variables, at two threads.", slowdowns,
        (f"--workload {','.join(PROGRAMS)} --threads 1,2 --engine respct,pmthreads --interval 64",
         tuple(f"{name}: respct/volatile>={1 / 1.15:.4f}" for name in PROGRAMS))),  # at most 1.15 times the time
    "ablation": runs(
        "What it is made of", "respct-tracking logs and tracks, and takes no checkpoint; respct-noflush takes checkpoints and "
        "writes no line back; respct-stop writes lines back while the threads are held, as the paper does; respct does so beside "
        "the program.", ratios,
        ("--workload hash_map,queue --mix 90:10,10:90 --threads 2 --engine respct-tracking,respct-noflush,respct-stop,respct "
         "--interval 64 --no-kill", ())),
    "periods": runs(
        "By the period of checkpoints", "Hash map, 90 % updates, 2 threads.", periods,
        ("--workload hash_map --mix 10:90 --threads 2 --engine respct --interval 1,2,4,8,16,32,64 --no-kill", ())),
    "recovery": runs(
        "Recovery by the number of buckets", "Hash map, 90 % updates, killed; as many keys as buckets are there. The recovery "
        "is the library's, from opening the pool to main.", recoveries,
        *((f"--workload hash_map --mix 10:90 --threads 2 --engine respct --interval 64 --size {keys} --kills 3",
           ("hash_map: respct.recovery_alone<=240ms",) if keys == KEYS[-1] else ()) for keys in KEYS)),
    "placement": runs(
        "Restart points placed well and badly", "Points, trials or elements of an operation, which ends at a restart point. "
        "The volatile program takes a lock for each operation, so it is slower with small ones too.", placements,
        ("--workload linear_regression --threads 2 --engine respct --interval 64 --size 4000000 --operation-size 0,1000,1", ()),
        ("--workload swaptions,matrix_multiply --threads 2 --engine respct --interval 64 --operation-size 0,1", ())),
}
PAGE = Page("respct_costs", "docs/measured/tables/respct.md",
            "What the engine respct costs, part by part, and whether its bars are reached.",
            INTRODUCTION, PARTS, seconds=3.0, repeat=5)
