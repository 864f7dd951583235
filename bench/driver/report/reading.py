"""The document of a run, read with distrust: a field that is missing, unknown or of another type is None, never an exception.

A report is also made of interrupted runs, and of files that an older or a newer driver wrote.
"""

import math


def number(row, *names):
    """A finite number deep in a row, otherwise None."""
    value = inside(row, *names)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def text(row, *names):
    value = inside(row, *names)
    return value if isinstance(value, str) and value else None


def inside(row, *names):
    for name in names:
        if not isinstance(row, dict):
            return None
        row = row.get(name)
    return row


def dictionaries(value):
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def strings(value):
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


class Row:
    """One configuration's figures in a cell."""

    def __init__(self, raw):
        self.raw = raw
        self.name = text(raw, "name") or text(raw, "engine") or "?"
        self.engine = text(raw, "engine") or self.name
        self.kind = text(raw, "kind")
        self.interval_ms = number(raw, "interval_ms")

    @property
    def is_baseline(self):
        return self.kind == "volatile"

    def number(self, *names):
        return number(self.raw, *names)

    def text(self, *names):
        return text(self.raw, *names)

    def of_kills(self, name):
        """(median, least, most) of a figure over the kills, or None."""
        median = self.number("kill", name)
        each = [value for one in dictionaries(inside(self.raw, "kill", "each")) if (value := number(one, name)) is not None]
        return None if median is None else (median, min(each, default=median), max(each, default=median))

    def spread(self, name):
        """(median, low, high) or None; quartiles that are missing are the median."""
        median = self.number(name, "median")
        if median is None:
            return None
        low, high = self.number(name, "low"), self.number(name, "high")
        return median, median if low is None else low, median if high is None else high


class Cell:
    """One workload with its parameters."""

    def __init__(self, raw, position):
        self.raw = raw
        self.workload = text(raw, "workload") or f"workload {position + 1}"
        self.family = text(raw, "family") or "other"
        self.unit = text(raw, "unit") or "operations"
        self.threads = number(raw, "threads")
        self.reads = number(raw, "read_percent")
        self.value_bytes = number(raw, "value_bytes")
        self.title = text(raw, "title") or self.workload
        self.slice_ms = number(raw, "slice_ms")
        self.has_durable_end = inside(raw, "slices_end_durable") is True
        self.left_out = strings(inside(raw, "left_out"))
        self.rows = [Row(one) for one in dictionaries(inside(raw, "configurations"))]

    @property
    def parameters(self):
        """The title without the workload."""
        return self.title.removeprefix(self.workload).lstrip(", ") or self.title

    @property
    def baseline(self):
        return next((row for row in self.rows if row.is_baseline), None)

    @property
    def best_peer(self):
        """Name of the best peer, as the driver found it."""
        return next((name for row in self.rows if (name := row.text("to_best_peer", "peer"))), None)

    @property
    def best_baseline(self):
        """The fastest volatile program: the one that the best ratios are taken to."""
        return max((row for row in self.rows if row.is_baseline and row.number("to_best_volatile", "median") == 1), default=self.baseline,
                   key=lambda row: row.number("rate", "median") or 0)

    def row(self, name):
        return next((row for row in self.rows if row.name == name), None)


def best_ratio(row):
    """To the fastest volatile program; of a run that has only one, to that one. None without a row or a ratio."""
    if row is None:
        return None
    best = row.number("to_best_volatile", "median")
    return row.number("to_volatile", "median") if best is None else best


class RunDocument:
    def __init__(self, raw):
        self.raw = raw if isinstance(raw, dict) else {}
        self.cells = [Cell(one, at) for at, one in enumerate(dictionaries(self.raw.get("cells")))]
        self.is_complete = self.raw.get("complete") is True
        self.is_smoke = inside(self.raw, "options", "smoke") is True
        self.skipped = dictionaries(self.raw.get("skipped"))
        self.bars = dictionaries(self.raw.get("bars"))
        self.command = text(self.raw, "command")
        self.names = self._names()

    def _names(self):
        """Every configuration's name once: the baseline, engines, peers, each in the order of the run."""
        found = {}
        for cell in self.cells:
            for row in cell.rows:
                found.setdefault(row.name, row.kind)
        order = {"volatile": 0, "engine": 1, "peer": 2}
        return sorted(found, key=lambda name: order.get(found[name], 3))

    def kind_of(self, name):
        return next((row.kind for cell in self.cells for row in cell.rows if row.name == name), None)

    @property
    def kinds(self):
        return {name: self.kind_of(name) for name in self.names}

    @property
    def compared(self):
        """Names that have a ratio to the baseline."""
        return [name for name in self.names if self.kind_of(name) != "volatile"]

    @property
    def families(self):
        return list(dict.fromkeys(cell.family for cell in self.cells))

    @property
    def workloads(self):
        return list(dict.fromkeys(cell.workload for cell in self.cells))

    def cells_of(self, workload):
        return [cell for cell in self.cells if cell.workload == workload]

    def representative(self, workload):
        """One cell for plots of all workloads: the first of those with the most threads."""
        return max(self.cells_of(workload), key=lambda cell: cell.threads or 0)
