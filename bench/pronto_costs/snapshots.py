"""Snapshots: how long they stop the program, and what they cost it, by the size of the data."""

from driver.figures import percentiles, spread
from driver.sides import started

from .shown import at_most, duration, mebibytes, quartiles, short, table, times
from .sides import pronto

TITLE = "Snapshots: stop and slowdown (Figure 5.12)"
SAYS = """\
An object of the given size, of which every page is written before each snapshot. The stop is the runtime's own figure (`stop_ns_last`):
how long operations could be held. `beside a writer`: a thread stores 64-bit words at random places, each store an operation, from
before the snapshot until after it; its slowest operation has the stop, the copies that its own faults made, and what else the machine
did. The second table has operations of 1,000 accesses to 64-bit words, half of them stores, with snapshots in the given interval,
against the same process without, and the slowest of a hundred operations and the slowest of all in both. The last table
is what snapshots at the usual interval cost at 1 GiB: slices with them and without, in turn in one process, each long enough for two
snapshots; operations of 10,000 accesses, so that the log of a slice does not fill up and ask for snapshots; throughput and p99 are
ratios within a round, with over without."""

SIZES_MIB = (2, 16, 64, 256, 1024)
SLOWDOWN_MIB = (2, 64, 1024)
USUAL_MIB = 1024
USUAL_INTERVAL_NS = 10_000_000_000  # the option interval
PATTERNS = ("sequential", "random")
ACCESSES = 1000
LARGEST = 1024
SIDE = pronto("pronto_image", run=(("interval-ms", 3_600_000),))
USUAL_ACCESSES = 10_000  # few enough operations that the log of a slice does not fill up and ask for a snapshot
WRITER_NS = 20_000_000  # that the writer works before and after each snapshot


def sizes(quick, all_of):
    return [size for size in all_of if size <= 16] if quick else all_of


def slowdown_cells(quick):
    """(MiB, time between two snapshots): often, to see what one costs."""
    return [(mib, max(50_000_000, mib * 2_000_000)) for mib in sizes(quick, SLOWDOWN_MIB)]


def usual_cell(quick):
    """(MiB, time between two snapshots): the largest size, as the option interval has it."""
    return (sizes(True, SLOWDOWN_MIB)[0], USUAL_INTERVAL_NS // 100) if quick else (USUAL_MIB, USUAL_INTERVAL_NS)


def steps(options):
    return len(sizes(options.quick, SIZES_MIB)) + len(slowdown_cells(options.quick)) + 1


def measure(bench):
    stops, slowdowns = [], []
    for mib in sizes(bench.options.quick, SIZES_MIB):
        bench.progress.step(f"stop of a snapshot, {mebibytes(mib)}")
        with started(bench, [SIDE], {"size_mib": mib}) as (processes, left_out):
            stops.append({"mib": mib, "left_out": left_out,
                          "rows": [row for process in processes for row in stops_of(bench, process)]})
    for mib, interval_ns in slowdown_cells(bench.options.quick):
        bench.progress.step(f"slowdown by snapshots every {duration(interval_ns)}, {mebibytes(mib)}")
        with started(bench, [SIDE], {"size_mib": mib}) as (processes, left_out):
            slowdowns.append({"mib": mib, "left_out": left_out,
                              "rows": [slowdown_of(bench, process, interval_ns, pattern) for process in processes for pattern in PATTERNS]})
    mib, interval_ns = usual_cell(bench.options.quick)
    bench.progress.step(f"snapshots every {duration(interval_ns)}, {mebibytes(mib)}")
    with started(bench, [SIDE], {"size_mib": mib}) as (processes, left_out):
        usual = [{"mib": mib, "left_out": left_out,
                  "rows": [slowdown_of(bench, process, interval_ns, pattern, USUAL_ACCESSES)
                           for process in processes for pattern in PATTERNS]}]
    return {"stops": stops, "slowdowns": slowdowns, "usual": usual}


def stops_of(bench, process):
    answers = {"idle": [], "beside a writer": []}
    for number in range(bench.options.repeat + 1):
        for name, command, numbers in (("idle", "snapshot", ()), ("beside a writer", "snapshot_beside_writer", (WRITER_NS,))):
            process.ask("fill", number + 1)
            answer = process.ask(command, *numbers)
            if number > 0:  # the first one writes every page of a new pool
                answers[name].append(answer)
    for name, found in answers.items():
        yield {"name": name, "stop_ns": spread(one["stop_ns"] for one in found), "stop_ns_max": max(one["stop_ns"] for one in found),
               "quiesce_ns_of_max": max(found, key=lambda one: one["stop_ns"])["quiesce_ns"],
               "snapshot_ns": spread(one["snapshot_ns"] for one in found), "pages": found[-1]["pages"], "rounds": len(found),
               "slowest_ns": spread(one["slowest_ns"] for one in found) if "slowest_ns" in found[0] else None,
               "slowest_ns_max": max((one["slowest_ns"] for one in found if "slowest_ns" in one), default=None)}


def slowdown_of(bench, process, interval_ns, pattern, accesses=ACCESSES):
    """Slices with snapshots and without them in turn."""
    slice_ns = 2 * interval_ns + interval_ns // 2
    ratios, cpu_ratios, p99_ratios = [], [], []
    snapshots = {"with": [], "without": []}
    latencies = {"with": [], "without": []}
    for number in range(bench.options.repeat + 1):
        answers = {}
        for name, interval in (("without", 0), ("with", interval_ns)) if number % 2 else (("with", interval_ns), ("without", 0)):
            answers[name] = process.ask(pattern, slice_ns, accesses, interval)
        if number > 0:
            per = {name: one["wall_ns"] / one["operations"] for name, one in answers.items()}
            cpu = {name: one["cpu_ns"] / one["operations"] for name, one in answers.items()}
            ratios.append(per["with"] / per["without"])
            cpu_ratios.append(cpu["with"] / cpu["without"])
            for name, answer in answers.items():
                snapshots[name].append(answer["all_snapshots"])
                latencies[name].append(percentiles(answer["latencies_ns"]))
            p99_ratios.append(latencies["with"][-1]["p99"] / latencies["without"][-1]["p99"])
    return {"pattern": pattern, "interval_ns": interval_ns, "slice_ns": slice_ns, "slowdown": spread(ratios), "cpu": spread(cpu_ratios),
            "snapshots": {name: spread(found) for name, found in snapshots.items()},
            "p99_to_without": spread(p99_ratios), "throughput": spread(1 / one for one in ratios),
            "latency_ns": {name: {rank: spread(one[rank] for one in found) for rank in ("p50", "p99", "max")}
                           for name, found in latencies.items()}}


def lines(result):
    rows = [[mebibytes(cell["mib"]), row["name"], quartiles(row["stop_ns"]), duration(row["stop_ns_max"]),
             duration(row["quiesce_ns_of_max"]), quartiles(row["snapshot_ns"]),
             short(row["pages"]), quartiles(row["slowest_ns"])] for cell in result["stops"] for row in cell["rows"]]
    first = table(["data", "", "stop", "longest stop", "of it for operations to end", "until it is durable", "pages",
                   "slowest operation of the writer"], rows)
    rows = [[mebibytes(cell["mib"]), row["pattern"], duration(row["interval_ns"]), quartiles(row["slowdown"], lambda one: f"{one:.3f}"),
             quartiles(row["cpu"], lambda one: f"{one:.3f}"),
             *(quartiles(row["latency_ns"][name][rank]) for rank in ("p99", "max") for name in ("with", "without"))]
            for cell in result["slowdowns"] for row in cell["rows"]]
    second = table(["data", "accesses", "a snapshot every", "time, of that without", "CPU, of that without",
                    "p99 with", "p99 without", "slowest with", "slowest without"], rows)
    return [*first, "", *second, *(["", *usual_lines(result)] if "usual" in result else [])]  # older files have none


def usual_lines(result):
    rows = [[mebibytes(cell["mib"]), row["pattern"], duration(row["interval_ns"]),
             *(f"{row['snapshots'][name]['median']:g}" for name in ("with", "without")),
             times(row["throughput"], 3), times(row["p99_to_without"], 3),
             *(quartiles(row["latency_ns"][name]["p99"]) for name in ("with", "without"))]
            for cell in result["usual"] for row in cell["rows"]]
    return table(["data", "accesses", "a snapshot every", "snapshots a slice with", "and without", "throughput, of that without",
                  "p99, of that without",
                  "p99 with", "p99 without"], rows)


def bars(result):
    longest = [row["stop_ns_max"] for cell in result["stops"] if cell["mib"] == LARGEST for row in cell["rows"]]
    return [at_most("stop of a snapshot of 1 GiB on memory: under 5 ms", 5e6, max(longest, default=None), "ns")]
