"""The figures as tables that a person can read, in plain text."""


def short(number):
    """Three digits that count: 1234567 -> 1.23 M."""
    if number is None:
        return "-"
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def duration(ns):
    if ns is None:
        return "-"
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= limit:
            return f"{ns / limit:.3g} {unit}"
    return f"{ns:.0f} ns"


def ratio(value):
    if value is None:
        return "-"
    if 0 < value < 0.001:
        return f"{value:.1e}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def ratio_cells(found, show="{:.3g}".format):
    """The median of a ratio, and its quartiles."""
    return [show(found["median"]), f"{show(found['low'])} to {show(found['high'])}"]


def percent(share):
    return "-" if share is None else f"{100 * share:.3g} %"


def of(row, *names):
    """A figure deep in a row; None where it, or what it lies in, is not there."""
    for name in names:
        if row is None:
            return None
        row = row.get(name)
    return row


COLUMNS = [
    ("configuration", lambda row: row["name"]),
    ("rate/s", lambda row: short(of(row, "rate", "median"))),
    ("p50", lambda row: duration(of(row, "latency_ns", "p50"))),
    ("p99", lambda row: duration(of(row, "latency_ns", "p99"))),
    ("p99.9", lambda row: duration(of(row, "latency_ns", "p99.9"))),
    ("longest", lambda row: duration(of(row, "latency_ns", "max"))),
    ("longest stop", lambda row: duration(of(row, "stop_ns", "max"))),
    ("of volatile", lambda row: ratio(of(row, "to_volatile", "median"))),
    ("quartiles", lambda row: "-" if row["to_volatile"] is None else
     f"{ratio(row['to_volatile']['low'])} to {ratio(row['to_volatile']['high'])}"),
    ("of best peer", lambda row: ratio(of(row, "to_best_peer", "median"))),
    ("of best volatile", lambda row: ratio(of(row, "to_best_volatile", "median"))),
    ("CPU/op", lambda row: duration(of(row, "cpu_ns_per_operation", "median"))),
    ("written/changed", lambda row: short(row["bytes_written_per_byte_changed"])),
    ("memory", lambda row: ratio(row.get("memory_to_volatile"))),
    ("lost", lambda row: short(of(row, "kill", "operations_lost"))),
    ("restart", lambda row: duration(of(row, "kill", "restart_to_first_operation_ns"))),
    ("full speed", lambda row: duration(of(row, "kill", "to_full_speed_ns"))),
    ("sooner", lambda row: ratio(of(row, "kill", "sooner"))),
]


def lines_of(headings, rows):
    """Columns: the first to the left, the others to the right."""
    cells = [headings, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    return ["  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths)))
            for row in cells]


def cell_lines(cell):
    """A cell as a table; columns in which nothing stands are left out."""
    rows = [[show(row) for _, show in COLUMNS] for row in cell["configurations"]]
    kept = [i for i in range(len(COLUMNS)) if i == 0 or any(row[i] != "-" for row in rows)]
    left_out = [f"left out: {one}" for one in cell["left_out"]]
    return lines_of([COLUMNS[i][0] for i in kept], [[row[i] for i in kept] for row in rows]) + left_out


def bar_lines(verdicts):
    lines = []
    for verdict in verdicts:
        lines.append(f"{'met       ' if verdict['met'] else 'FELL SHORT'}  {verdict['text']}")
        if not verdict["reached"]:
            lines.append("            no cell of this run has it")
        lines += [f"            {one['value']:.4g} in {one['cell']} ({one['configuration']})"
                  for one in verdict["reached"] if not one["met"]]
    return lines
