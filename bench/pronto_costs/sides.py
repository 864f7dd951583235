"""What is compared: a program without Stillpoint, durable objects of pronto, and peers; how each is started."""

import dataclasses
import shutil

from driver.errors import Unavailable

from .process import Process

POOL_MIB = 64  # to begin with: pools grow
INTERVAL_MS = 10_000  # between two snapshots, as the paper's concurrent map has it (its others: 15 s)


@dataclasses.dataclass(frozen=True)
class Side:
    """`program`: without its folder. `run`: options of `stillpoint run` beside the usual ones; None: it runs by itself."""

    name: str
    program: str
    run: tuple = None
    medium: str = "memory"
    environment: tuple = ()
    package: str = None  # of a peer: what brings it
    settings: tuple = ()  # beside those of the cell
    is_baseline: bool = False


def pronto(program, name="pronto", medium="memory", run=(), settings=()):
    return Side(name, program, tuple(run), medium, settings=tuple(settings))


def volatile(program):
    return Side("volatile", program, is_baseline=True)


# On a tmpfs libpmemobj would sync a mapped file; it is told to write lines back, as on persistent memory, and where to map the pool.
PMEMOBJ_ENVIRONMENT = (("PMEM_IS_PMEM_FORCE", "1"), ("PMEM_MMAP_HINT", "0x300000000000"))


def libpmemobj(program):
    return Side("libpmemobj", program, environment=PMEMOBJ_ENVIRONMENT, package="libpmemobj-dev")


class Place:
    """Where the processes' files lie, and what starts them."""

    def __init__(self, tool, binaries, disk, shared):
        self.tool = tool
        self.binaries = binaries
        self.folders = {"file": disk, "memory": shared}
        self.made = 0

    def why_not(self, side):
        """None: the side is here."""
        if not (self.binaries / side.program).is_file():
            if side.package:
                return f"{side.program} was not built: apt-get install {side.package}, then build again (make)"
            return f"{side.program} was not built: build first (make)"
        return None

    def folder(self, side):
        """A new and empty one."""
        parent = self.folders[side.medium]
        if parent is None:
            raise Unavailable("/dev/shm cannot be written: the pools of the medium memory lie there", "make it writable")
        self.made += 1
        folder = parent / f"{self.made}-{side.name.replace(' ', '-')}"
        folder.mkdir()
        return folder

    def words(self, side, folder, settings, run=()):
        """`run`: options of `stillpoint run` that belong to the cell; a later one wins."""
        program = [str(self.binaries / side.program), *(f"{name}={value}" for name, value in {**settings, **dict(side.settings)}.items()),
                   f"folder={folder}"]
        if side.run is None:
            return program
        options = {"engine": "pronto", "durability": "power", "medium": side.medium, "pool-size-mb": POOL_MIB, "interval-ms": INTERVAL_MS,
                   **dict(side.run), **dict(run)}
        # The medium is the folder's own, unless it is shared memory that must survive a power cut: that one is named.
        return [self.tool.program("stillpoint"), "run", "--quiet", "--pool", str(folder / "pool"),
                *(word for name, value in options.items() for word in (f"--{name}", str(value))), "--", *program]

    def start(self, side, settings, run=(), folder=None):
        folder = folder or self.folder(side)
        process = Process(side.name, self.words(side, folder, settings, run), dict(side.environment))
        process.side, process.folder = side, folder
        return process

    def remove(self, process):
        """What it has written: shared memory is scarce."""
        shutil.rmtree(process.folder, ignore_errors=True)
