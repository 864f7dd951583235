"""Asynchronous against synchronous logging, by the time that the operation itself takes."""

from driver.figures import spread
from driver.sides import started

from .shown import duration, quartiles, table
from .sides import pronto

TITLE = "Asynchronous and synchronous logging, by the time of the operation (Figure 5.11)"
SAYS = """\
Operations that compute for the given time and whose log entries have 1 KiB. Blocks of two milliseconds with logging and without it take
turns in one process; what is shown is the difference for one operation: what logging adds. `async` has a second thread that writes the
entry, `auto` is what the engine chooses by itself on this machine."""

MODES = ("async", "sync", "auto")
COSTS_NS = (100, 1000, 10_000, 100_000)
SIDES = tuple(pronto("pronto_logging", mode, run=(("pronto-logging", mode),)) for mode in MODES)


def steps(_options):
    return 1


def measure(bench):
    bench.progress.step("asynchronous, synchronous, auto")
    cells = []
    with started(bench, SIDES, {"entry_bytes": 1024}) as (processes, left_out):
        # All processes do the same work; the process that was disturbed least knows how long it takes.
        rounds_each_us = max((process.ready["spins_per_us"] for process in processes), default=0)
        block_ns = int(min(bench.options.seconds, 0.5) * 1e9)
        for number in range(bench.options.repeat):
            for at, cost_ns in enumerate(COSTS_NS):
                for process in processes if number % 2 else reversed(processes):
                    answer = process.ask("compare", rounds_each_us * cost_ns // 1000, block_ns // len(COSTS_NS))
                    if at == len(cells):
                        cells.append({"cost_ns": cost_ns, "left_out": left_out, "modes": {}})
                    cells[at]["modes"].setdefault(process.name, []).append(answer)
    return {"cells": [summary(cell) for cell in cells]}


def summary(cell):
    modes = {}
    for name, answers in cell["modes"].items():
        modes[name] = {"added_ns": spread((one["logged_ns"] - one["bare_ns"]) / one["operations"] for one in answers),
                       "bare_ns": spread(one["bare_ns"] / one["operations"] for one in answers),
                       "cpu_ns": spread(one["logged_cpu_ns"] / one["operations"] for one in answers),
                       "chosen": answers[-1].get("chosen")}
    return {"cost_ns": cell["cost_ns"], "left_out": cell["left_out"], "modes": modes}


def lines(result):
    rows = []
    for cell in result["cells"]:
        for name, mode in cell["modes"].items():
            added = mode["added_ns"]
            rows.append([duration(cell["cost_ns"]), name, duration(mode["bare_ns"]["median"]), quartiles(added, signed),
                         f"{1 + added['median'] / mode['bare_ns']['median']:.2f}", duration(mode["cpu_ns"]["median"])])
    return table(["operation asked for", "logging", "operation alone", "added by logging", "times the operation alone",
                  "CPU of all threads"], rows)


def signed(value_ns):
    return duration(value_ns) if value_ns >= 0 else f"-{duration(-value_ns)}"


def bars(_result):
    return []
