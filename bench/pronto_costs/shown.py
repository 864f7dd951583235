"""How figures stand in the tables of the page, and how a bar is judged."""

from driver.pages import verdict
from driver.report.markdown import safe, table
from driver.tables import duration, of, short

__all__ = ["at_least", "at_most", "counted", "duration", "mebibytes", "of", "quartiles", "safe", "short", "table", "times"]


def at_most(text, limit, value, unit="x"):
    """A bar; `value` None: what it is about was not measured."""
    return verdict(text, [] if value is None else [value], value is not None and value <= limit, unit)


def at_least(text, limit, value):
    return verdict(text, [] if value is None else [value], value is not None and value >= limit, "x")


def times(found, digits=2):
    """A ratio with its quartiles."""
    return "-" if found is None else f"{found['median']:.{digits}f} ({found['low']:.{digits}f} to {found['high']:.{digits}f})"


def quartiles(found, show=duration):
    return "-" if found is None else f"{show(found['median'])} ({show(found['low'])} to {show(found['high'])})"


def mebibytes(count):
    return f"{count / 1024:g} GiB" if count >= 1024 else f"{count:g} MiB"


def counted(row, name):
    value = of(row, "counted", name)
    return "-" if value is None else f"{value:.3g}"
