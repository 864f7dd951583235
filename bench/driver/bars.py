"""Bars that a run must reach: --bar 'pmthreads/volatile>=0.85', --bar 'btree: pmthreads.stop_p99<=1ms',
--bar 'hash_map 90:10: respct/volatile>=0.95'.

A bar holds in every cell that has what it names; a bar that no cell has is an error, not a success.
"""

import dataclasses
import re

from .errors import BenchError

RATIO_BASES = ("volatile", "stock")  # to_volatile is a row's ratio to it
UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
FIGURES = {
    "rate": lambda row: row["rate"] and row["rate"]["median"],
    "cpu": lambda row: row["cpu_ns_per_operation"] and row["cpu_ns_per_operation"]["median"],
    "epoch_ms": lambda row: row["epoch_ms"],
    "written": lambda row: row["bytes_written_per_byte_changed"],
    "memory": lambda row: row.get("memory_to_volatile"),
    "best_volatile": lambda row: row.get("to_best_volatile") and row["to_best_volatile"]["median"],
    "best_peer": lambda row: row.get("to_best_peer") and row["to_best_peer"]["median"],
    "lost": lambda row: row["kill"] and row["kill"].get("operations_lost"),
    "recovery": lambda row: row["kill"] and row["kill"].get("restart_to_first_operation_ns"),
    "recovery_alone": lambda row: row["kill"] and row["kill"].get("recovery_ns"),
    "full_speed": lambda row: row["kill"] and row["kill"].get("to_full_speed_ns"),
    "sooner": lambda row: row["kill"] and row["kill"].get("sooner"),
    **{f"{kind}_{rank}": (lambda row, kind=kind, rank=rank: row[f"{kind}_ns"] and row[f"{kind}_ns"][rank])
       for kind in ("latency", "stop") for rank in ("p50", "p99", "p99.9", "max") if rank != "p99.9" or kind == "latency"},
}
GRAMMAR = re.compile(r"^\s*(?:(?P<workload>[\w-]+)(?:\s+(?P<mix>\d+:\d+))?\s*:)?\s*(?P<name>[\w -]+?)\s*(?:/\s*(?P<base>[\w -]+?)|\.(?P<figure>[\w.]+))"
                     r"\s*(?P<sign>>=|<=)\s*(?P<limit>[0-9.]+)\s*(?P<unit>ns|us|ms|s|)\s*$")


@dataclasses.dataclass(frozen=True)
class Bar:
    text: str
    workload: str
    mix: str  # READS:UPDATES, or None: every mix
    name: str
    base: str
    figure: str
    is_minimum: bool
    limit: float


def parse_bar(text):
    found = GRAMMAR.match(text)
    if not found:
        raise BenchError(f"the bar \"{text}\" is not understood: write [WORKLOAD [MIX]:]ENGINE/ENGINE>=RATIO or "
                         f"[WORKLOAD [MIX]:]ENGINE.FIGURE<=NUMBER[ns|us|ms|s]; figures: {', '.join(FIGURES)}")
    if found["figure"] and found["figure"] not in FIGURES:
        raise BenchError(f"the bar \"{text}\" asks for \"{found['figure']}\"; figures: {', '.join(FIGURES)}")
    try:
        limit = float(found["limit"]) * UNITS[found["unit"]]
    except ValueError:
        raise BenchError(f"the bar \"{text}\": {found['limit']} is not a number") from None
    return Bar(text.strip(), found["workload"], found["mix"], found["name"], found["base"], found["figure"], found["sign"] == ">=", limit)


def rows_named(cell, name):
    """By the configuration's name, otherwise every one of the engine."""
    rows = cell["configurations"]
    return [row for row in rows if row["name"] == name] or [row for row in rows if row["engine"] == name]


def reached_in(cell, bar):
    """[(configuration's name, figure)] of one cell."""
    found = []
    for row in rows_named(cell, bar.name):
        if bar.base:
            for base in rows_named(cell, bar.base):
                # Ratios to the baseline are of neighbouring slices; others of the medians.
                value = (row["to_volatile"]["median"] if base["name"] in RATIO_BASES
                         else row["rate"]["median"] / base["rate"]["median"])
                found.append((row["name"], value))
        else:
            value = FIGURES[bar.figure](row)
            if value is not None:
                found.append((row["name"], value))
    return found


def judge(bars, cells):
    """[{text, met, reached: [{cell, configuration, value}]}]."""
    verdicts = []
    for bar in bars:
        reached = [{"cell": cell["title"], "configuration": name, "value": value,
                    "met": value >= bar.limit if bar.is_minimum else value <= bar.limit}
                   for cell in cells if bar.workload in (None, cell["workload"]) and bar.mix in (None, cell.get("mix"))
                   for name, value in reached_in(cell, bar)]
        verdicts.append({"text": bar.text, "met": bool(reached) and all(one["met"] for one in reached), "reached": reached})
    return verdicts
