"""Sides in turn: each has its own process, one works while the others wait, and ratios are taken within a round."""

import contextlib
import random
import time

from driver.figures import cpu_per_operation, spread

ROUNDS_MAX = 60
COLD_ROUNDS = 2  # not counted: caches are cold, and a pool has two copies of each page, which are new


@contextlib.contextmanager
def started(bench, sides, settings, run=()):
    """Processes of the sides that are here, and [why a side is not]."""
    processes, left_out = [], []
    try:
        for side in sides:
            reason = bench.place.why_not(side)
            if reason:
                left_out.append(f"{side.name}: {reason}")
            else:
                processes.append(bench.place.start(side, settings, run))
        yield processes, left_out
        for process in processes:
            process.end()
    finally:
        for process in processes:
            process.destroy()
            bench.place.remove(process)


def in_turn(bench, processes, command, *numbers):
    """{name of the side: [answer of each round]}."""
    generator = random.Random(bench.options.seed)
    for process in processes:
        for _ in range(COLD_ROUNDS):
            process.ask(command, *numbers)
    answers = {process.name: [] for process in processes}
    order = list(processes)
    began = time.monotonic()
    for number in range(ROUNDS_MAX):
        if number >= bench.options.repeat and time.monotonic() - began >= bench.options.seconds * len(processes):
            break
        generator.shuffle(order)
        for process in order:
            answers[process.name].append(process.ask(command, *numbers))
    return answers


def latency_ns(one):
    return one["wall_ns"] / max(1, one["operations"])


def ratios(mine, base, value):
    """For each round, mine over the baseline's."""
    return spread(value(one) / value(other) for one, other in zip(mine, base))


def rows_of(processes, answers):
    """A row for each side: its mean time of an operation, its CPU time, and both against the baseline of the same round."""
    base = next((answers[process.name] for process in processes if process.side.is_baseline), None)
    rows = []
    for process in processes:
        mine = answers[process.name]
        if not mine:
            continue
        row = {"name": process.name, "rounds": len(mine), "latency_ns": spread(map(latency_ns, mine)),
               "rate": spread(1e9 / latency_ns(one) for one in mine),
               "cpu_ns_per_operation": spread(map(cpu_per_operation, mine)),
               "to_volatile": ratios(mine, base, latency_ns) if base else None,
               "cpu_to_volatile": ratios(mine, base, cpu_per_operation) if base else None,
               "latency_to": {name: ratios(mine, other, latency_ns) for name, other in answers.items() if name != process.name}}
        counters = mine[-1].get("counters")
        if counters:
            operations = max(1, sum(one["operations"] for one in mine))
            row["counted"] = {name: sum(one["counters"][name] for one in mine) / operations for name in counters}
        rows.append(row)
    return rows
