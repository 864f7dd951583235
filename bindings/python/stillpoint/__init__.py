"""Dicts, lists, deques and numpy arrays that survive a crash of the process or of the machine.

    stillpoint run --pool visits.pool -- python3 visits.py

    import stillpoint
    visits = stillpoint.pool().dict("visits")
    with stillpoint.section():
        visits["index.html"] = visits.get("index.html", 0) + 1

docs/guide/python.md is the guide.
"""

from ._containers import DurableArray, DurableDeque, DurableDict, DurableList
from ._pool import Pool, open, pool  # noqa: A004
from ._sections import StillpointError, section
from ._values import DamagedError

__all__ = ["DamagedError", "DurableArray", "DurableDeque", "DurableDict", "DurableList", "Pool", "StillpointError", "open", "pool",
           "section"]
