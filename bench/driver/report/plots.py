"""Which plots a run has data for, as data; drawing.py draws them.

A document with plots can so be checked without a library for plots.
"""

import dataclasses
import itertools
import re

from .. import tables
WORKLOADS_IN_A_PLOT = 5
PLOTS_OF_AN_AXIS = 4
RANKS = ["p50", "p99", "p99.9", "max"]


@dataclasses.dataclass(frozen=True)
class Bar:
    name: str  # of the configuration
    value: float
    low: float
    high: float
    label: str


@dataclasses.dataclass(frozen=True)
class Bars:
    """Horizontal bars in groups, each with its name and its figure as text."""

    key: str
    title: str
    groups: list  # [(heading, [Bar])]
    is_log: bool = False
    reference: float = None
    limit: float = None  # longer bars are cut here: the figure tells how long they are
    note: str = ""

    @property
    def names(self):
        return [bar.name for _, bars in self.groups for bar in bars]

    @property
    def description(self):
        groups = (f"{heading}: " + ", ".join(f"{bar.name} {bar.label}" for bar in bars) for heading, bars in self.groups)
        return "; ".join(groups) + "."


@dataclasses.dataclass(frozen=True)
class Lines:
    """One line for each configuration over a few places on the x axis."""

    key: str
    title: str
    x_label: str
    y_label: str
    places: list  # texts on the x axis
    series: list  # [(name, [(index of the place, value, low, high)])]
    is_log: bool
    show: object  # value -> text
    reference: float = None
    note: str = ""

    @property
    def names(self):
        return [name for name, _ in self.series]

    @property
    def description(self):
        parts = []
        for name, points in self.series:
            parts.append(f"{name}: " + ", ".join(f"{self.show(value)} at {self.places[at]}" for at, value, _, _ in points))
        return f"{self.y_label} by {self.x_label}. " + "; ".join(parts) + "."


def key_of(*words):
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-") or "plot"


def ratio_plots(run):
    """(a) One for each family, of one cell of each workload."""
    plots = []
    for family in run.families:
        groups = []
        for workload in run.workloads:
            cell = run.representative(workload)
            bars = [Bar(row.name, *found, tables.ratio(found[0])) for row in cell.rows
                    if not row.is_baseline and (found := row.spread("to_volatile"))]
            if cell.family == family and bars:
                groups.append((cell.title, bars))
        parts = [groups[at:at + WORKLOADS_IN_A_PLOT] for at in range(0, len(groups), WORKLOADS_IN_A_PLOT)]
        for at, part in enumerate(parts):
            which = f", {at + 1} of {len(parts)}" if len(parts) > 1 else ""
            plots.append(Bars(key_of("ratio", family, str(at + 1) if len(parts) > 1 else ""), f"Ratio to volatile: {family}{which}", part,
                              reference=1, limit=1.5, note="The line is volatile; whiskers are quartiles."))
    return plots


def latency_quartiles(row, rank, value):
    return [value if (end := row.number("latency_spread_ns", rank, which)) is None else end for which in ("low", "high")]


def latency_plots(cell):
    """(b)"""
    series = [(row.name, [(at, value, *latency_quartiles(row, rank, value)) for at, rank in enumerate(RANKS)
                          if (value := row.number("latency_ns", rank))]) for row in cell.rows]
    series = [(name, points) for name, points in series if len(points) > 1]
    if not series:
        return []
    return [Lines(key_of("latency", cell.title), "Latency of an operation", "percentile", "latency", RANKS, series, True,
                  tables.duration)]


AXES = {
    # name of the axis: (attribute of a cell, what stays the same, label, text of a place)
    "mix": ("reads", ("threads", "value_bytes"), "reads:updates", lambda value: f"{value:g}:{100 - value:g}"),
    "threads": ("threads", ("reads", "value_bytes"), "threads", lambda value: f"{value:g}"),
    "value size": ("value_bytes", ("threads", "reads"), "bytes of a value", lambda value: f"{value:g}"),
}


def said(cell, attribute):
    value = getattr(cell, attribute)
    if value is None:
        return None
    return {"threads": f"{value:g} thread{'' if value == 1 else 's'}", "reads": f"{value:g}:{100 - value:g}",
            "value_bytes": f"{value:g} B"}[attribute]


def axis_plots(run, workload, axis):
    """(c), (d), (f): throughput of a workload against one parameter, the others fixed."""
    attribute, fixed, label, place = AXES[axis]
    cells = [cell for cell in run.cells_of(workload) if getattr(cell, attribute) is not None]
    families = {}
    for cell in cells:
        families.setdefault(tuple(getattr(cell, name) for name in fixed), []).append(cell)
    plots = []
    for same in families.values():
        values = sorted({getattr(cell, attribute) for cell in same}, reverse=axis == "mix")
        if len(values) < 2:
            continue
        series = {}
        for cell in sorted(same, key=lambda cell: values.index(getattr(cell, attribute))):
            for row in cell.rows:
                if found := row.spread("rate"):
                    series.setdefault(row.name, []).append((values.index(getattr(cell, attribute)), *found))
        rest = ", ".join(filter(None, (said(same[0], name) for name in fixed)))
        shown = [(name, points) for name, points in series.items() if len(points) > 1]
        if shown:
            plots.append(Lines(key_of(axis, workload, rest), f"Throughput by {axis}" + (f": {rest}" if rest else ""), label,
                               f"{same[0].unit}/s", [place(value) for value in values], shown, spans_a_lot(shown), tables.short))
    if len(plots) > PLOTS_OF_AN_AXIS:
        last = dataclasses.replace(plots[PLOTS_OF_AN_AXIS - 1], note="Further combinations are in the tables.")
        plots = [*plots[:PLOTS_OF_AN_AXIS - 1], last]
    return plots


def spans_a_lot(series):
    values = [value for _, points in series for _, value, _, _ in points if value > 0]
    return bool(values) and max(values) > 30 * min(values)


def interval_plots(cell):
    """(e): the ratio to volatile against the interval."""
    series = {}
    for row in cell.rows:
        found = row.spread("to_volatile")
        if row.interval_ms is not None and found:
            name = re.sub(rf"\s*\b{row.interval_ms:g} ms\b", "", row.name)
            series.setdefault(name, {})[row.interval_ms] = found
    values = sorted({interval for points in series.values() for interval in points})
    shown = [(name, [(values.index(interval), *points[interval]) for interval in sorted(points)])
             for name, points in series.items() if len(points) > 1]
    if not shown:
        return []
    return [Lines(key_of("interval", cell.title), "Ratio to volatile by interval", "ms between checkpoints", "of volatile",
                  [f"{value:g}" for value in values], shown, False, tables.ratio, reference=1, note="The line is volatile.")]


def lost_text(value):
    return f"{value:,.0f}" if value < 1e5 else tables.short(value)


def kill_groups(cell):
    for heading, field, show in (("operations lost", "operations_lost", lost_text),
                                 ("restart to first operation", "restart_to_first_operation_ns", tables.duration),
                                 ("then to full speed", "to_full_speed_ns", tables.duration)):
        bars = [Bar(row.name, *found, show(found[0])) for row in cell.rows
                if (found := row.of_kills(field)) and row.number("kill", "whole_job_ns") is None]
        if bars:
            yield field, heading, bars


def kill_plots(cell):
    """(g)"""
    groups = list(kill_groups(cell))
    lost = [(heading, bars) for field, heading, bars in groups if field == "operations_lost"]
    times = [(heading, bars) for field, heading, bars in groups if field != "operations_lost"]
    plots = []
    if lost:
        plots.append(Bars(key_of("lost", cell.title), "Killed: what was lost", lost, is_log=True,
                          note="Logarithmic; no bar: nothing. Whiskers: least and most of the kills."))
    if times:
        plots.append(Bars(key_of("restart", cell.title), "Killed: how soon it works again", times, is_log=True,
                          note="Logarithmic. Whiskers: least and most of the kills."))
    return plots


def sooner_plots(run):
    """(h) Of jobs that go on where they were killed."""
    groups = []
    for workload in run.workloads:
        cell = run.representative(workload)
        bars = [Bar(row.name, *found, f"{found[0]:.2f}×") for row in cell.rows if (found := row.of_kills("sooner"))]
        if bars:
            groups.append((cell.title, bars))
    if not groups:
        return []
    return [Bars("sooner", "Killed half-way: how many times sooner the second life ends than a whole job", groups, reference=1,
                 note="The line: no sooner than from the start. Whiskers: least and most of the kills.")]


def plots_of_run(run):
    """The plots of all workloads together."""
    return ratio_plots(run) + sooner_plots(run)


def plots_of_cell(cell):
    return latency_plots(cell) + interval_plots(cell) + kill_plots(cell)


def plots_of_workload(run, workload):
    """The plots across the cells of a workload."""
    return list(itertools.chain.from_iterable(axis_plots(run, workload, axis) for axis in AXES))
