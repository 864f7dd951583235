"""Which figures a table shows, in which words: those of driver/tables.py, and the rest of what a run knows."""

from .. import tables
from .reading import number


def spread_of(name, show):
    def shown(row):
        found = row.spread(name)
        return None if found is None else f"{show(found[0])} ({show(found[1])} to {show(found[2])})"

    return shown


def plain(show, *names):
    def shown(row):
        value = row.number(*names)
        return None if value is None else show(value)

    return shown


def latency(rank):
    """The percentile of all rounds together, with the quartiles of the rounds where the run has them."""
    def shown(row):
        value = row.number("latency_ns", rank)
        low, high = (row.number("latency_spread_ns", rank, end) for end in ("low", "high"))
        if value is None or low is None or high is None:
            return None if value is None else tables.duration(value)
        return f"{tables.duration(value)} ({tables.duration(low)} to {tables.duration(high)})"

    return shown


def size(value):
    return tables.short(value) + "B" if value >= 1000 else tables.short(value) + " B"


def count(value):
    return f"{value:,.0f}" if value < 1e6 else tables.short(value)


def of_kills(show, name):
    """The median, and least and most where there were several kills."""
    def shown(row):
        found = row.of_kills(name)
        if found is None:
            return None
        return show(found[0]) + (f" ({show(found[1])} to {show(found[2])})" if found[1] < found[2] else "")

    return shown


def to_best_peer(row):
    value = row.number("to_best_peer", "median")
    return None if value is None else tables.ratio(value)


def to_full_speed(row):
    """None is a figure here: that speed was not seen again."""
    value = of_kills(tables.duration, "to_full_speed_ns")(row)
    if value is not None:
        return value
    kill = row.raw.get("kill")
    return "not within 5 s" if isinstance(kill, dict) and "to_full_speed_ns" in kill else None


# A figure: what it is called, the field, how it is shown. The fields are also what OTHERS leaves out.
GROUPS = [
    ("Speed and latency; quartiles: rounds", [
        ("rate/s", "rate", spread_of("rate", tables.short)),
        *((rank, "latency_ns", latency(rank)) for rank in ("p50", "p99", "p99.9")),
        ("longest", "latency_ns", latency("max")),
        ("longest stop", "stop_ns", plain(tables.duration, "stop_ns", "max")),
        ("of volatile", "to_volatile", spread_of("to_volatile", tables.ratio)),
        ("of best volatile", "to_best_volatile", spread_of("to_best_volatile", tables.ratio)),
        ("of best peer", "to_best_peer", to_best_peer),
        ("of first engine", "to_first_engine", spread_of("to_first_engine", tables.ratio)),
        ("CPU/op", "cpu_ns_per_operation", spread_of("cpu_ns_per_operation", tables.duration)),
        ("CPU seconds", "cpu_seconds", plain(tables.short, "cpu_seconds")),
        ("rounds", "rounds", plain(count, "rounds")),
    ]),
    ("Transactions", [
        ("attempts aborted", "transactions", plain(tables.percent, "transactions", "attempts_aborted")),
        ("ran alone", "transactions", plain(tables.percent, "transactions", "ran_alone")),
        ("time alone", "transactions", plain(tables.percent, "transactions", "phases", "alone")),
        ("time in bodies that commit", "transactions", plain(tables.percent, "transactions", "phases", "committed")),
        ("time in aborted attempts", "transactions", plain(tables.percent, "transactions", "phases", "aborted")),
        ("time in the commit phase", "transactions", plain(tables.percent, "transactions", "phases", "commit_phase")),
    ]),
    ("Threads held by a checkpoint", [
        *((f"stop {rank}", "stop_ns", plain(tables.duration, "stop_ns", rank)) for rank in ("p50", "p99")),
        ("epoch length reached", "epoch_ms", plain(lambda ms: tables.duration(ms * 1e6), "epoch_ms")),
        ("dirty pages/checkpoint", "dirty_pages_per_checkpoint", plain(tables.short, "dirty_pages_per_checkpoint")),
    ]),
    ("What goes to the medium", [
        ("written", "bytes_written", plain(size, "bytes_written")),
        ("written/changed byte", "bytes_written_per_byte_changed", plain(tables.short, "bytes_written_per_byte_changed")),
        ("lines written back/op", "lines_written_back_per_operation", plain(tables.short, "lines_written_back_per_operation")),
        ("fences/op", "fences_per_operation", plain(tables.short, "fences_per_operation")),
        ("disk use", "disk_bytes", plain(size, "disk_bytes")),
    ]),
    ("Memory and start", [
        ("memory and pool", "memory_bytes", plain(size, "memory_bytes")),
        ("memory of volatile", "memory_to_volatile", plain(tables.ratio, "memory_to_volatile")),
        ("fill time", "fill_ns", plain(tables.duration, "fill_ns")),
    ]),
    ("After a crash", [
        ("may lose", "loses", lambda row: row.text("loses")),
        ("operations done", "kill", of_kills(count, "operations_done")),
        ("operations lost", "kill", of_kills(count, "operations_lost")),
        ("restart to first operation", "kill", of_kills(tables.duration, "restart_to_first_operation_ns")),
        ("then to full speed", "kill", to_full_speed),
        ("whole job", "kill", of_kills(tables.duration, "whole_job_ns")),
        ("second life", "kill", of_kills(tables.duration, "second_life_ns")),
        ("times sooner", "kill", of_kills(tables.ratio, "sooner")),
        ("steps of a job", "kill", plain(count, "kill", "steps_of_a_job")),
        ("steps at the kill", "kill", of_kills(count, "steps_at_the_kill")),
        ("steps recovered", "kill", of_kills(count, "steps_recovered")),
        ("kills", "kill", plain(count, "kill", "kills")),
    ]),
    ("Settings", [
        ("tracker", "tracker", lambda row: row.text("tracker")),
        ("interval", "interval_ms", plain(lambda ms: f"{ms:g} ms", "interval_ms")),
        ("durability", "durability", lambda row: row.text("durability")),
        ("medium", "medium", lambda row: row.text("medium")),
    ]),
]
KNOWN_FIELDS = {field for _, figures in GROUPS for _, field, _ in figures} | {"name", "engine", "kind", "latency_spread_ns"}

# Columns of the short tables of a document.
SHORT = [
    ("rate/s", plain(tables.short, "rate", "median")),
    ("p50", plain(tables.duration, "latency_ns", "p50")),
    ("p99", plain(tables.duration, "latency_ns", "p99")),
    ("p99.9", plain(tables.duration, "latency_ns", "p99.9")),
    ("longest", plain(tables.duration, "latency_ns", "max")),
    ("longest stop", plain(tables.duration, "stop_ns", "max")),
    ("of volatile", spread_of("to_volatile", tables.ratio)),
    ("of best volatile", spread_of("to_best_volatile", tables.ratio)),
    ("of best peer", to_best_peer),
    ("CPU/op", plain(tables.duration, "cpu_ns_per_operation", "median")),
    ("written/changed", plain(tables.short, "bytes_written_per_byte_changed")),
    ("memory", plain(tables.ratio, "memory_to_volatile")),
    ("lost", plain(count, "kill", "operations_lost")),
    ("restart", plain(tables.duration, "kill", "restart_to_first_operation_ns")),
    ("full speed", to_full_speed),
    ("sooner", plain(tables.ratio, "kill", "sooner")),
]


def with_something(figures, rows):
    """[(label, [text or None for each row])], without the figures that no row has."""
    found = [(label, [show(row) for row in rows]) for label, show in figures]
    return [(label, values) for label, values in found if any(value is not None for value in values)]


def other_figures(rows):
    """Numbers that this version of the report has no words for: by the names of their fields."""
    fields = dict.fromkeys(field for row in rows for field in row.raw if field not in KNOWN_FIELDS)
    return [(str(field).replace("_", " "), lambda row, field=field: None if number(row.raw, field) is None
             else tables.short(number(row.raw, field))) for field in fields]


def groups_of(rows):
    """[(heading, [(label, values)])] of the rows of one cell."""
    groups = [(heading, with_something([(label, show) for label, _, show in figures], rows)) for heading, figures in GROUPS]
    groups.append(("Other", with_something(other_figures(rows), rows)))
    return [(heading, figures) for heading, figures in groups if figures]


def short_of(rows):
    return with_something(SHORT, rows)
