"""The programs that a benchmark compares: programs by themselves, with a pool, or with a peer's library; how and where each is started."""

import contextlib
import dataclasses
import os
import shutil
import sys
from pathlib import Path

from .build import make_sure_of
from .errors import Unavailable
from .in_turn import for_seconds, in_turn
from .process import Process

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from pool_tool import Tool, ToolError, Watch  # noqa: E402  (the path must be set first)

__all__ = ["ROOT", "Place", "Side", "Tool", "ToolError", "Watch", "answers_in_turn", "bytes_on_medium", "pool_folders", "started"]


@dataclasses.dataclass(frozen=True)
class Side:
    """`program`: a path, or a name in the folder of the build's programs. `run`: options of `stillpoint run`; None: it runs by itself."""

    name: str
    program: object
    run: tuple = None
    medium: str = "memory"
    environment: tuple = ()
    package: str = None  # of a peer: what brings it
    arguments: tuple = ()  # words before its settings
    settings: tuple = ()  # besides those of the cell
    is_baseline: bool = False


class Place:
    """Where the processes' files lie, and what starts them."""

    def __init__(self, tool, disk, shared):
        self.tool = tool
        self.folders = {"file": disk, "memory": shared}
        self.made = 0

    def program(self, side):
        return self.tool.binaries / side.program

    def why_not(self, side):
        """None: the side is here, built now if it was not."""
        make_sure_of([self.program(side)])
        if not self.program(side).is_file():
            first = f"apt-get install {side.package}, then " if side.package else ""
            return f"{side.program} was not built: {first}make build-bench"
        return None

    def folder(self, side):
        """A new and empty one."""
        parent = self.folders[side.medium]
        if parent is None:
            raise Unavailable("/dev/shm cannot be written: the pools of the medium memory lie there", "make it writable")
        self.made += 1
        folder = parent / f"{self.made}-{side.name.replace(' ', '-').replace('/', '-')}"
        folder.mkdir()
        return folder

    def words(self, side, folder, settings, run=()):
        """`run`: options of `stillpoint run` that belong to the cell; a later one wins."""
        named = {} if side.arguments else {"folder": folder, "pool": folder / "pool"}
        program = [str(self.program(side)), *side.arguments,
                   *(f"{name}={value}" for name, value in {**named, **settings, **dict(side.settings)}.items())]
        if side.run is None:
            return program
        return [self.tool.program("stillpoint"), "run", "--quiet", "--pool", str(folder / "pool"),
                *(word for name, value in {**dict(side.run), **dict(run)}.items() for word in (f"--{name}", str(value))), "--", *program]

    def start(self, side, settings, run=(), folder=None):
        folder = folder or self.folder(side)
        process = Process(side.name, self.words(side, folder, settings, run), dict(side.environment))
        process.side, process.folder, process.pool = side, folder, folder / "pool"
        return process

    def remove(self, process):
        """Files that it has written: shared memory is scarce."""
        shutil.rmtree(process.folder, ignore_errors=True)


def bytes_on_medium(folder):
    """Blocks of its files: pages of memory where they lie in shared memory, of a disk elsewhere."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


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
                bench.progress.show(f"starting {side.name}")
                processes.append(bench.place.start(side, settings, run))
        yield processes, left_out
        for process in processes:
            process.end()
    finally:
        for process in processes:
            process.destroy()
            bench.place.remove(process)


def answers_in_turn(bench, processes, command, *words, cold_rounds=1, goes_on=None):
    """{name of the side: [answer of each round]}; `cold_rounds` are not counted: caches and branch predictors of a new process are cold."""
    for process in processes:
        for _ in range(cold_rounds):
            process.ask(command, *words)
    found = in_turn(processes, lambda process, _: process.ask(command, *words), goes_on or for_seconds(bench.options, len(processes)),
                    bench.options.seed)
    return {process.name: answers for process, answers in zip(processes, found)}


@contextlib.contextmanager
def pool_folders(name):
    """Folders for pools on disk and in shared memory (None where that cannot be written), removed at the end."""
    memory = Path("/dev/shm")
    folders = [ROOT / "build" / "bench" / f"{name}-{os.getpid()}",
               memory / f"stillpoint-bench-{name}-{os.getpid()}" if memory.is_dir() and os.access(memory, os.W_OK) else None]
    try:
        for folder in filter(None, folders):
            folder.mkdir(parents=True, mode=0o700)
        yield folders
    finally:
        for folder in filter(None, folders):
            shutil.rmtree(folder, ignore_errors=True)
