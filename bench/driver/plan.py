"""From the command line to cells (the work) and configurations (the engines and peers)."""

import dataclasses
import itertools
import os
from pathlib import Path

from .build import make_sure_of
from .engines import BASELINES, VOLATILE, Configuration
from .errors import CANNOT_CREATE, BenchError, Unavailable

# For peers that cannot grow: libpmemobj takes all of it from tmpfs at once.
SMOKE_POOL_MIB = 256


@dataclasses.dataclass(frozen=True)
class Cell:
    """One workload with its parameters: a row of the report for each configuration."""

    workload: str
    family: str
    unit: str
    threads: int
    read_percent: int = None  # None: the workload has a mix of its own
    value_bytes: int = None
    size: int = 0
    operation_size: int = None  # None: the workload's own
    large: bool = False  # the larger of two inputs

    @property
    def title(self):
        parts = [self.workload, f"{self.threads} thread{'s' if self.threads > 1 else ''}"]
        if self.read_percent is not None:
            parts.append(f"{self.read_percent}:{100 - self.read_percent}")
        if self.value_bytes is not None:
            parts.append(f"{self.value_bytes} B")
        if self.operation_size is not None:
            parts.append(f"operations of {self.operation_size}")
        if self.large:
            parts.append("large input")
        return ", ".join(parts)

    def settings(self, options):
        settings = {"threads": self.threads, "smoke": int(options.smoke), "pinned": int(not options.no_pin)}
        if options.smoke:
            settings["pool_mib"] = SMOKE_POOL_MIB
        if self.read_percent is not None:
            settings["reads"] = self.read_percent
        if self.value_bytes is not None:
            settings["value_bytes"] = self.value_bytes
        if self.size:
            settings["size"] = self.size
        if self.operation_size is not None:
            settings["operation_size"] = self.operation_size
        if self.large:
            settings["large"] = 1
        return settings

    def facts(self):
        return {**dataclasses.asdict(self), "title": self.title,
                "mix": None if self.read_percent is None else f"{self.read_percent}:{100 - self.read_percent}"}


def catalogue(installation):
    """The workloads by name, as the worker of the baseline lists them (bench/workloads/workloads.inc)."""
    found = installation.listed_by(VOLATILE)
    return {row["name"]: row for row in found["workloads"]}, found["compiler"]


def left_out_of(installation, configuration):
    """{workload: why this configuration's worker cannot do it}."""
    listed = installation.listed_by(configuration.engine, configuration.worker)
    return {row["name"]: row["reason"] for row in listed["left_out"]}


def chosen_workloads(names, known):
    """Names of workloads, of families, or "all"; in the order of the catalogue's."""
    families = sorted({row["family"] for row in known.values()})
    chosen = set()
    for name in names:
        matching = [row["name"] for row in known.values() if name in ("all", row["name"], row["family"])]
        if not matching:
            raise BenchError(f"there is no workload \"{name}\"; there are {', '.join(known)}; "
                             f"or a family of them: {', '.join(families)}; or all")
        chosen.update(matching)
    return [name for name in known if name in chosen]


def cells_of(options, known):
    cells = []
    for name in chosen_workloads(options.workload, known):
        row = known[name]
        mixes = options.mix if row["mix"] == "mix" else [None]
        sizes = options.value_size if row["values"] == "sized" else [None]
        operations = options.operation_size if row["operations"] != "fixed" else [None]
        for threads, reads, value_bytes, operation in itertools.product(options.threads, mixes, sizes, operations):
            cells.append(Cell(name, row["family"], row["unit"], threads, reads, value_bytes, options.size, operation or None,
                              options.large and row["family"] == "transactions"))
    return cells


def medium_folder(options):
    """The medium, and the folder of the pools; refuses what the folder cannot do."""
    medium = options.medium
    if medium == "memory":
        folder = Path(options.pool or "/dev/shm")
        if file_system_of(folder) not in ("tmpfs", "ramfs"):
            raise Unavailable(f"medium memory: {folder} is not in shared memory (it is {file_system_of(folder)})",
                              "name a folder of a tmpfs with --pool, or take --medium file")
    else:
        folder = Path(options.pool or ".")
        kind = file_system_of(folder)
        if medium == "file" and kind in ("tmpfs", "ramfs"):
            raise Unavailable(f"medium file: {folder} lies in memory ({kind}), which no power cut spares",
                              "name a folder on a disk with --pool, or take --medium memory")
        if medium == "dax" and "dax" not in mount_options(folder):
            raise Unavailable(f"medium dax: the file system of {folder} ({kind}) is not mounted with -o dax",
                              "name a folder of one that is with --pool; `stillpoint doctor` tells what a folder can do")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BenchError(f"{folder} cannot be written: name another folder with --pool", CANNOT_CREATE)
    return medium, folder


def mount_of(folder):
    """(mount point, file system, options) of a folder, from the kernel's table."""
    path = str(Path(folder).resolve())
    best = ("", "unknown", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, flags, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best[0]):
            best = (point, kind, flags)
    return best


def file_system_of(folder):
    if not Path(folder).is_dir():
        raise BenchError(f"{folder} is not a folder: make it first, or name another one with --pool", CANNOT_CREATE)
    return mount_of(folder)[1]


def mount_options(folder):
    return mount_of(folder)[2].split(",")


def configurations_of(options, installation):
    """The configurations, the baseline first, and what had to be skipped: [{engine, reason, remedy}]."""
    medium, folder = medium_folder(options)
    loaded = [engine.name for engine in installation.loaded]
    asked = [*(options.engine or [next(iter(installation.product())), *([] if loaded else ["peers"])]), *loaded]
    names = [*BASELINES, *(name for name in asked if name not in BASELINES)]
    if "peers" in names:
        at = names.index("peers")
        names[at:at + 1] = [engine.name for engine in installation.engines if engine.kind == "peer" and engine.name not in names]
    found, skipped = [], []
    needs_hooks = any(installation.engine_named(name).needs_hooks for name in names)
    compiler = "_clang" if "hooks" in options.tracker or needs_hooks else ""
    for engine in map(installation.engine_named, dict.fromkeys(names)):
        try:
            installation.worker(engine)
        except Unavailable as missing:
            skipped.append({"engine": engine.name, "reason": missing.reason, "remedy": missing.remedy})
            continue
        trackers = options.tracker if engine.has_trackers else [None]
        intervals = options.interval or [engine.usual_interval_ms] if engine.has_intervals else [None]
        levels = options.durability if engine.kind != "volatile" else options.durability[:1]
        for tracker, interval, durability in itertools.product(trackers, intervals, levels):
            name = " ".join([engine.name, *([tracker] if tracker and len(options.tracker) > 1 else []),
                             *([f"{interval} ms"] if interval and len(options.interval) > 1 else []),
                             *([durability] if engine.kind != "volatile" and len(options.durability) > 1 else [])])
            found.append(Configuration(engine, name, durability, medium, folder, tracker, interval,
                                       compiler if engine.kind == "volatile" or engine.is_run else ""))
    make_sure_of([installation.worker(one.engine, one.worker) for one in found])
    return found, skipped
