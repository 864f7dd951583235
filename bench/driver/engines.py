"""The systems that can be measured: the program without Stillpoint, the engines, and the peers that Debian packages.

To add a peer: a worker (bench/worker/peers.cmake) and an entry of ENGINES. The product lists its engines itself; one whose programs are
written in a way of their own has a folder in bench/engines with a worker and rows.json: what is measured of it.
"""

import dataclasses
import hashlib
import json
import os
import subprocess
from pathlib import Path

from .build import can_be_made, make_sure_of
from .errors import USAGE, WRONG_RESULT, BenchError, Unavailable
from .process import SAID_BYTES, how_it_ended


@dataclasses.dataclass(frozen=True)
class Engine:
    name: str
    kind: str  # "volatile", "engine" or "peer"
    worker: str
    loses: dict  # durability level -> what a crash may lose
    sentence: str
    package: str = None  # of a peer: what brings it
    trackers: tuple = ()  # and
    usual_interval_ms: int = None  # are of the product's own registry (Installation.engines); None: no interval can be chosen
    pool_mib: int = 0  # to begin with: what the engine chooses; pools grow
    runs_as: str = None  # the engine that `stillpoint run` knows, where this is one with options of its own
    options: tuple = ()  # of `stillpoint run`
    chooses_interval: bool = True  # False: the options above do
    durability: str = None  # instead of the one that is asked for
    opens_its_pool: bool = False  # True: the worker does, as a peer's; `stillpoint run` does not know it
    survives: bool = True  # False: its memory is spared by no crash, or nothing tells what was lost; it is not killed
    worker_environment: dict = dataclasses.field(default_factory=dict)  # what chooses this row in a worker of several
    library: str = None  # of a peer that is loaded (bench/peer/stillpoint_peer.h): its path
    library_sha256: str = None

    @property
    def has_trackers(self):
        return len(self.trackers) > 1

    @property
    def needs_hooks(self):
        return self.trackers == ("hooks",)

    @property
    def has_intervals(self):
        return self.usual_interval_ms is not None

    @property
    def is_run(self):
        """`stillpoint run` opens the pool before the worker begins."""
        return self.kind == "engine" and not self.opens_its_pool

    @property
    def environment(self):
        return self.worker_environment | ({"BENCH_PEER": self.library} if self.library else {})

    @property
    def engine_of_run(self):
        return self.runs_as or self.name

    def loses_at(self, durability):
        return self.loses.get(durability) or self.loses["any"]


LIST_LIMIT_S = 60
NOTHING_ON_RETURN = "nothing once an operation has returned"
# Losses of peers that are loaded, by what they say of themselves.
LOSSES = {"all": "everything", "recent": "recent operations, by its own word", "nothing": NOTHING_ON_RETURN}

ENGINES = [
    Engine("volatile", "volatile", "bench_worker_volatile", {"any": "everything"},
           "The same source, compiled and linked without Stillpoint: what ratios are taken to."),
    Engine("volatile-words", "volatile", "bench_worker_volatile_words", {"any": "everything"},
           "volatile with locks of one word, so that buckets are aligned: the fastest honest program. Always runs, on structures under locks.",
           survives=False),
    Engine("volatile-tm", "volatile", "bench_worker_volatile_tm", {"any": "everything"},
           "volatile with a software transactional memory instead of one lock: what transactions cost by themselves. Transactional "
           "programs only. A measurement aid.", survives=False),
    Engine("std-maps-direct", "volatile", "bench_worker_striped_maps", {"any": "everything"},
           "The example of a peer (bench/peer), called directly: what the door for peers costs. A measurement aid.", survives=False),
    Engine("pmemobj", "peer", "bench_worker_pmemobj", {"any": NOTHING_ON_RETURN},
           "libpmemobj: undo-logged transactions, each update announced by hand.", package="libpmemobj-dev"),
    Engine("lmdb", "peer", "bench_worker_lmdb", {"process": NOTHING_ON_RETURN, "power": NOTHING_ON_RETURN},
           "LMDB: copy-on-write B+tree, one writer; MDB_NOSYNC where only the process may die.", package="liblmdb-dev"),
    Engine("rocksdb-sync", "peer", "bench_worker_rocksdb", {"any": NOTHING_ON_RETURN},
           "RocksDB, its log synced at each write.", package="librocksdb-dev"),
    Engine("rocksdb-async", "peer", "bench_worker_rocksdb",
           {"process": NOTHING_ON_RETURN, "power": "what the kernel had not written yet"},
           "RocksDB, its log written but not synced.", package="librocksdb-dev"),
    Engine("sqlite", "peer", "bench_worker_sqlite", {"any": NOTHING_ON_RETURN},
           "SQLite in WAL mode; synchronous FULL where the machine may die, OFF where only the process may.",
           package="libsqlite3-dev"),
]
VOLATILE = ENGINES[0]
# Baselines are the program without Stillpoint, plain and with the smallest locks: the faster one in a cell is the best volatile.
BASELINES = ("volatile", "volatile-words")
UNKNOWN_LOSS = {"any": "what its own guarantees say"}
ROWS = Path(__file__).resolve().parents[1] / "engines"


def rows_of(name):
    """The rows of the folder of an engine of the product: what is measured of it; None: it has no worker of its own."""
    path = ROWS / name / "rows.json"
    return json.loads(path.read_text(encoding="utf-8"))["measured"] if path.is_file() else None


def engines_of(product):
    """The engines of the product, {name: (interval in ms, programs, trackers)}. One without a folder has the worker of the first engine
    with such programs."""
    workers = {}
    for name, (_, programs, _) in product.items():
        if rows_of(name) is not None:
            workers.setdefault(programs, f"bench_worker_{name}")
    found = []
    for name, (interval_ms, programs, trackers) in product.items():
        rows = rows_of(name)
        own_worker = f"bench_worker_{name}" + ("_hooks" if trackers == ("hooks",) else "")
        worker = workers.get(programs) if rows is None else own_worker
        for row in rows or [{"name": name, "loses": UNKNOWN_LOSS, "sentence": f"The engine {name} of this build."}]:
            interval = interval_ms if row.get("chooses_interval", True) else None
            if worker is not None:
                found.append(Engine(**row | {"kind": "engine", "worker": worker, "runs_as": name, "trackers": trackers,
                                             "usual_interval_ms": interval, "options": tuple(row.get("options", ()))}))
    return found


def engines_that_open_their_pools():
    return [Engine(**row | {"kind": "engine", "worker": f"bench_worker_{folder.name}"})
            for folder in sorted(ROWS.iterdir()) for row in rows_of(folder.name) or () if row.get("opens_its_pool")]


@dataclasses.dataclass(frozen=True)
class Configuration:
    """An engine with its options: one measured process in each cell."""

    engine: Engine
    name: str
    durability: str
    medium: str
    folder: Path
    tracker: str = None
    interval_ms: int = None
    compiler: str = ""  # "_clang": of a run with the tracker hooks, in which every memory engine is Clang's code

    @property
    def worker(self):
        if self.engine.needs_hooks:
            return self.engine.worker  # There is no other.
        return self.engine.worker + ("_hooks" if self.tracker == "hooks" else self.compiler)

    def facts(self):
        return {"name": self.name, "engine": self.engine.name, "kind": self.engine.kind, "tracker": self.tracker,
                "interval_ms": self.interval_ms, "durability": self.durability, "medium": self.medium,
                "loses": self.engine.loses_at(self.durability),
                **({"library": self.engine.library, "library_sha256": self.engine.library_sha256} if self.engine.library else {})}


def pmemobj_environment(configuration):
    """The variables that libpmemobj reads when it is loaded (docs/internals/decisions/peers.md): where pools are mapped, and how they become durable."""
    found = {"PMEM_MMAP_HINT": "0x300000000000"}
    if configuration.durability == "process":
        # Mapped pages outlive the process: no line is written back, as no engine does under this level.
        found.update(PMEM_IS_PMEM_FORCE="1", PMEM_NO_FLUSH="1")
    elif configuration.medium != "file":
        # Lines are written back to what is taken for persistent memory, as on DAX and as the medium memory does.
        found["PMEM_IS_PMEM_FORCE"] = "1"
    return found


def is_too_slow(configuration, family):
    """A job is never cut. Where libpmemobj syncs each range of an ordinary file, one takes hours; operations are cut by time."""
    return (configuration.engine.name == "pmemobj" and configuration.medium == "file" and configuration.durability == "power" and
            family in ("application", "continuing", "transactions"))


def told_by(worker, engine):
    """The answer of a worker to `--list`."""
    subject = engine.library or worker
    try:
        done = subprocess.run([worker, "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True, errors="replace",
                              env={**os.environ, **engine.environment}, timeout=LIST_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{subject}: nothing was told within {LIST_LIMIT_S} s of loading it", WRONG_RESULT) from None
    last = done.stderr.strip().split("\n")[-1]
    if done.returncode == USAGE and last.startswith("bench: "):  # The library is refused; what itself printed comes before.
        raise BenchError(last.removeprefix("bench: "))
    if done.returncode != 0 or not done.stdout:
        raise BenchError(f"{subject}: the worker {how_it_ended(done.returncode, done.stderr[-SAID_BYTES:])}", WRONG_RESULT)
    return json.loads(done.stdout)


class Installation:
    """The command and the workers: beside each other in a build tree and where they are installed."""

    def __init__(self, binaries, command):
        self.binaries = Path(binaries)
        self.command = Path(command)
        self._listed = {}
        self._product = None
        self.loaded = []

    def product(self):
        """The engines of the product's own registry: {name: (interval in ms, programs, trackers)}."""
        if self._product is None:
            done = subprocess.run([self.command, "tables", "engines"], stdout=subprocess.PIPE, check=True, text=True)
            rows = (line.split() for line in done.stdout.splitlines())
            self._product = {name: (int(interval_ms), programs, tuple(trackers)) for name, interval_ms, programs, *trackers in rows}
        return self._product

    @property
    def engines(self):
        volatile = [engine for engine in ENGINES if engine.kind == "volatile"]
        peers = [engine for engine in ENGINES if engine.kind == "peer"]
        return volatile + engines_of(self.product()) + engines_that_open_their_pools() + peers + self.loaded

    def load(self, path):
        """A peer that is a shared library, with what it says of itself."""
        library = Path(path).resolve()
        make_sure_of([library])
        if not library.is_file():
            raise BenchError(f"--peer {path}: there is no such file")
        unnamed = Engine(library.name, "peer", "bench_worker_loaded", {}, "", library=str(library),
                         library_sha256=hashlib.sha256(library.read_bytes()).hexdigest())
        told = self.listed_by(unnamed)["peer"]
        if told["name"] in [engine.name for engine in self.engines]:
            raise BenchError(f"--peer {path}: its name, \"{told['name']}\", is taken: give it another one in stillpoint_peer")
        self.loaded.append(dataclasses.replace(
            unnamed, name=told["name"], loses={"any": LOSSES[told["loses"]]}, sentence=told["summary"] or f"{library.name}, loaded.",
            survives=told["loses"] != "all" and told["keeps_progress"]))

    def engine_named(self, name):
        engines = {engine.name: engine for engine in self.engines}
        if name not in engines:
            raise BenchError(f"there is no engine \"{name}\"; there are {', '.join(engines)}")
        return engines[name]

    def listed_by(self, engine, name=None):
        """The answer of a worker to `list` (bench/worker/worker.cpp); each is asked once."""
        path = self.worker(engine, name)
        if (path, engine.library) not in self._listed:
            make_sure_of([path])
            self._listed[path, engine.library] = told_by(path, engine)
        return self._listed[path, engine.library]

    def worker(self, engine, name=None):
        """The program, which is there or can be made; Unavailable where neither is so."""
        path = self.binaries / (name or engine.worker)
        if can_be_made(path):
            return path
        if engine.package:
            raise Unavailable(f"{engine.name} was not there when this Stillpoint was built",
                              f"apt-get install {engine.package}, then build again (make build-bench)")
        if name:
            raise Unavailable("the tracker hooks needs programs made by `stillpoint c++`, which this build lacks",
                              "apt-get install clang-19 llvm-19-dev, then build again (make build-bench)")
        raise BenchError(f"{path} is missing: build it first (make build-bench)")

    def words(self, configuration, workload, settings, pool):
        """The command line of one worker, and what its environment needs beside ours."""
        engine = configuration.engine
        arguments = [workload, *(f"{name}={value}" for name, value in settings.items())]
        worker = str(self.worker(engine, configuration.worker))
        environment = dict(engine.environment)
        if engine.is_run:
            run = [str(self.command), "run", "--quiet", "--pool", str(pool), "--engine", engine.engine_of_run, "--durability",
                   engine.durability or configuration.durability, "--pool-size-mb", str(engine.pool_mib), *engine.options]
            run += ["--medium", configuration.medium]
            if engine.has_trackers:
                run += ["--tracker", configuration.tracker]
            if engine.has_intervals:
                run += ["--interval-ms", str(configuration.interval_ms)]
            return [*run, "--", worker, *arguments], environment
        if engine.kind == "peer" or engine.opens_its_pool:
            arguments += [f"folder={pool}", f"durability={configuration.durability}"]
        if engine.opens_its_pool:
            arguments.append(f"pool_mib={engine.pool_mib}")
            environment.update(STILLPOINT_MEDIUM=configuration.medium, STILLPOINT_QUIET="1")
        if engine.name.startswith("rocksdb"):
            environment["BENCH_ROCKSDB_SYNC"] = "1" if engine.name == "rocksdb-sync" else "0"
        if engine.name == "pmemobj":
            environment.update(pmemobj_environment(configuration))
        return [worker, *arguments], environment
