"""A result as a document of the sources: docs/measured/tables/memcached.md is one."""

import json
from pathlib import Path

from driver import tables
from driver.documents import write_text
from driver.report import draw_plots, make_sure_of_matplotlib
from driver.report.markdown import safe, table
from driver.report.plots import Bar, Bars, Lines

from .shown import size, tables_of

FORMAT = "stillpoint-memcached-bench"
FORMAT_VERSION = 1
SLOW_LOAD = 0.5  # an average that says that other work ran

INTRODUCTION = """\
# memcached with its items in a pool

memcached as Debian has it (stock), and the same memcached whose items survive a crash (durable: tracker uffd; hooks: compiled by
`stillpoint cc`, tracker hooks), measured in one run with the same flags. A ratio of 1 is stock.
This page is generated: `make memcached-bench`, then `make docs`; its data lie next to it.
"""
HOW = """\
## How it was measured

All servers are loaded with the same keys and live side by side; only one has work at a time, in slices of some seconds, in an
order that is shuffled in each round. Ratios are taken between slices of one round; the median is given with its quartiles.
Before a server hands over, what it has written is durable. The client is one thread on the same CPUs, so a server's checkpoints
compete with it and with the server's own threads. Each reply is checked: a key that is missing, or a value that is not whole,
ends the run.
[bench](../../../bench/README.md) says more.
"""


def bar_of(row, found, show):
    return Bar(row["name"], found["median"], found["low"], found["high"], show(found["median"]))


def ratio_plot(document, part, title, field):
    """For each mix the servers' ratios to stock. `field`: row -> median and quartiles, or None."""
    groups = []
    for cell in document["cells"]:
        if cell["part"] == part:
            bars = [bar_of(row, found, tables.ratio) for row in cell["configurations"] if (found := field(row))]
            if bars:
                groups.append((cell["title"].partition(", ")[2], bars))
    return [Bars(part, title, groups, reference=1, note="The line is stock; whiskers are quartiles.")] if groups else []


def interval_plots(document):
    """[PMThreads Figure 8], and what it costs."""
    rows = [row for row in document["intervals"] if row.get("bytes_written_spread")]
    places = [f"{interval}" for interval in sorted({row["interval_ms"] for row in rows})]
    written, ratios = {}, {}
    for row in rows:
        found = row["bytes_written_spread"]
        written.setdefault(row["name"], []).append((places.index(str(row["interval_ms"])), found["median"], found["low"], found["high"]))
    for cell in document["cells"]:
        if cell["part"] == "intervals" and str(cell["interval_ms"]) in places:
            for row in cell["configurations"]:
                if found := row["to_volatile"]:
                    ratios.setdefault(row["name"], []).append((places.index(str(cell["interval_ms"])), found["median"], found["low"],
                                                               found["high"]))
    plots = []
    if ratios and len(places) > 1:
        plots.append(Lines("intervals", "Throughput by interval, 50:50", "ms between checkpoints", "of stock", places,
                           list(ratios.items()), False, tables.ratio, reference=1, note="The line is stock; whiskers are quartiles."))
    if written and len(places) > 1:
        plots.append(Lines("bytes", "Bytes written in each interval, 50:50", "ms between checkpoints", "bytes", places,
                           list(written.items()), False, size, note="Whiskers: quartiles of the checkpoints of a slice."))
    return plots


def plots_of(document):
    p99 = lambda row: (row["latency_to_volatile"] or {}).get("p99")  # noqa: E731  (used twice, and only here)
    return [*ratio_plot(document, "throughput", "Throughput, of stock", lambda row: row["to_volatile"]),
            *ratio_plot(document, "latency", "p99 of the latency, of stock", p99),
            *interval_plots(document),
            *ratio_plot(document, "throughput-power", "Throughput with `power`, of stock", lambda row: row["to_volatile"]),
            *ratio_plot(document, "latency-power", "p99 of the latency with `power`, of stock", p99)]


def machine_lines(document):
    machine, options = document["machine"], document["options"]
    load = machine["load_before"]
    busy = ": other work ran at the same time, so single figures are off by a quarter and more" if load > SLOW_LOAD else ""
    rows = [["Processor", f"{machine['processor']}, {machine['cpus']} CPUs"], ["Kernel", machine["kernel"]], ["System", machine["system"]],
            ["Load before", f"{load:.2f}{busy}"], ["Stillpoint", f"{document['version']}, commit {document['commit']}"],
            ["Keys, values", f"{options['keys']:,}, {options['value_bytes']} bytes, {'Zipf' if options['zipf'] else 'uniform'}"],
            ["Client", f"{options['connections']} connections, {options['protocol']} protocol"], ["Began", document["began"]]]
    return [*table(["", ""], [[name, safe(value)] for name, value in rows]), ""]


def text_of(document, stem):
    lines = [INTRODUCTION]
    if document["options"]["quick"]:
        lines += ["**A quick run: it shows that everything works and measures nothing.**", ""]
    if not document["complete"]:
        lines += ["**The run was interrupted: parts are missing.**", ""]
    for plot in plots_of(document):
        lines += [f"![{safe(plot.title)}](figures/{stem}-plot-{plot.key}.svg)", "", plot.note, ""]
    for heading, remark, columns, rows in tables_of(document):
        lines += [f"## {heading}", "", remark, "", *table(columns, [[safe(word) for word in row] for row in rows]), ""]
    lines += [HOW, *machine_lines(document)]
    for remark in document["remarks"]:
        lines += [f"Remark: {safe(remark)}.", ""]
    lines += ["Made by:", "", f"    {document['command']}"]
    return "\n".join(lines).rstrip() + "\n"


def make_sure_of_plots(arguments):
    make_sure_of_matplotlib("--markdown", Path(__file__).resolve().parent.parent / "run.py", ["memcached", *arguments])


def write(document, path):
    """Makes PATH, its data next to it as .json, its plots in figures/. Returns the path."""
    path = Path(path)
    write_text(path, text_of(document, path.stem))
    write_text(path.with_suffix(".json"), json.dumps(document, separators=(",", ":")) + "\n")
    draw_plots(path.parent / "figures", f"{path.stem}-plot", plots_of(document), {row["name"]: row["kind"] for row in document["servers"]})
    return path
