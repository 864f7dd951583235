"""The engines of the build, as its registry lists them. Tests that mean every engine, or those with one kind of program, ask here."""

import collections
import functools
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# How a program says what is failure-atomic: `Programs` in src/runtime/engine.hpp.
LOCKS, CRITICAL_SECTIONS, RESTART_POINTS = "locks", "critical-sections", "restart-points"
OPERATIONS, TRANSACTIONS = "operations", "transactions"

Engine = collections.namedtuple("Engine", "name interval_ms programs trackers")


@functools.cache
def listed_by(tool):
    done = subprocess.run([tool, "tables", "engines"], stdout=subprocess.PIPE, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines())
    return tuple(Engine(name, int(interval_ms), programs, tuple(trackers)) for name, interval_ms, programs, *trackers in rows)


def engines(build=None):
    """The first is what a new pool has where none is named."""
    return listed_by(Path(build or os.environ.get("STILLPOINT_BUILD", ROOT / "build")) / "bin/stillpoint")


def names(*programs):
    """The names of all engines, or of those with such programs."""
    return tuple(engine.name for engine in engines() if not programs or engine.programs in programs)


def names_for_any_compiler():
    """Engines that open a pool whatever has compiled the program."""
    return tuple(engine.name for engine in engines() if engine.programs != CRITICAL_SECTIONS)


def engines_that_keep_stores():
    """Engines with which what a program stores by itself becomes durable, whatever has compiled it: not those of transactions, nor
    those that the compiler tells of each store."""
    return tuple(engine for engine in engines() if engine.programs not in (TRANSACTIONS, CRITICAL_SECTIONS))


def names_that_keep_stores():
    return tuple(engine.name for engine in engines_that_keep_stores())


def programs_of(name):
    return next(engine.programs for engine in engines() if engine.name == name)
