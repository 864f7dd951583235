"""How figures stand in the tables of the page."""

from driver.report.markdown import safe, table
from driver.tables import duration, of, short

__all__ = ["counted", "duration", "mebibytes", "of", "quartiles", "safe", "short", "table", "times"]


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
