"""One generated program on one medium, with one engine and tracker: compiled, killed, started again, and judged."""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "scripts"), str(HERE.parent)]

from pool_tool import ROOT, Tool, ToolError  # noqa: E402  (the path must be set first)
from support import engines  # noqa: E402

SOURCES = ("program.c", "program_notes.c", "program_arguments.c", "locks.c", "parts_memory.c", "parts_io.c", "parts_sync.c", "steps.c")
COMMON = ("program_notes.c.o", "program_arguments.c.o")  # of programs with restart points, too
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g1", "-w", f"-I{ROOT}/include", f"-I{HERE}"]
LIBRARIES = ["-luring", "-pthread"]
STAGE, EPOCH = 0, 8  # offsets in struct notes of program_notes.c
VERIFIED, ENDING = 2, 3
DEADLINE_S = 60
EX_UNAVAILABLE, EX_CANTCREAT = 69, 73
WRAPPERS = {
    "none": [],
    "env": ["env", "WRAPPED=1"],
    "taskset": ["taskset", "-a", "3"],
    "sh": ["sh", "-c", 'exec "$0" "$@"'],
    "env-sh": ["env", "WRAPPED=1", "sh", "-c", 'exec "$0" "$@"'],
}


def combinations():
    """name: engine, medium, durability, tracker, whether the pool lies in shared memory"""
    first, *others = engines.engines_that_keep_stores()
    found = {f"file-process-{tracker}": (first, "file", "process", tracker, False) for tracker in ("uffd", "mprotect", "hooks")}
    found |= {f"file-power-{tracker}": (first, "file", "power", tracker, False) for tracker in ("uffd", "mprotect")}
    found |= {f"memory-tmpfs-{tracker}": (first, "memory", "process", tracker, True) for tracker in ("uffd", "mprotect")}
    found |= {f"memory-mapped-{tracker}": (first, "memory", "process", tracker, False) for tracker in ("uffd", "mprotect", "hooks")}
    for engine in others:
        found |= {f"{engine.name}-file-{durability}": (engine, "file", durability, "uffd", False) for durability in ("process", "power")}
        found |= {f"{engine.name}-memory": (engine, "memory", "process", "uffd", True),
                  f"{engine.name}-memory-mapped": (engine, "memory", "process", "uffd", False)}
    return found


COMBINATIONS = combinations()


class Finding(Exception):
    """A promise that was not kept."""


class Builder:
    """Compiles programs; the parts that all share once for each compiler."""

    def __init__(self, binaries, folder):
        self.tool = Tool(binaries)
        self.folder = Path(folder)
        self.library = self.tool.binaries.parent / "lib"
        self.shared = {}

    def compiler(self, tracker):
        return [str(self.tool.binaries / "stillpoint-cc")] if tracker == "hooks" else ["cc"]

    def run(self, words):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"{' '.join(map(str, words))}: {done.stdout}")

    def of_cpp(self, source):
        """The libraries that programs with an engine whose interface is one of C++ are linked with: an object file and the library of C++."""
        if source not in self.shared:
            made = self.folder / f"{source}.o"
            self.run(["c++", "-std=c++20", "-O1", "-w", f"-I{ROOT}/include", f"-I{HERE}", "-c", HERE / source, "-o", made])
            self.shared[source] = [made, "-lstdc++"]
        return self.shared[source]

    def objects(self, tracker):
        """The objects of the sources that every program is linked with."""
        key = self.compiler(tracker)[0]
        if key not in self.shared:
            made = []
            for source in SOURCES:
                made.append(self.folder / f"{Path(key).name}-{source}.o")
                self.run([*self.compiler(tracker), *FLAGS, "-c", HERE / source, "-o", made[-1]])
            self.shared[key] = made
        return self.shared[key]

    def linked_with(self, engine, tracker):
        objects = self.objects(tracker)
        if engine.programs == engines.RESTART_POINTS:
            own = [*self.of_cpp("respct_program.cpp"), *self.of_cpp("respct_parts.cpp")]
            return [made for made in objects if made.name.endswith(COMMON)] + own
        return [*objects, *(self.of_cpp("objects.cpp") if engine.programs == engines.OPERATIONS else [])]

    def build(self, text, path, engine, tracker):
        """Makes the program `path` of that text, which is kept next to it."""
        source = path.with_suffix(".c")
        source.write_text(text)
        self.run([*self.compiler(tracker), *FLAGS, source, *self.linked_with(engine, tracker), f"-L{self.library}",
                  f"-Wl,-rpath,{self.library}", "-lstillpoint", *LIBRARIES, "-o", path])


class Life:
    """The lives of one program with one pool; life n depends on seed, combination and n alone, but for the moment of its kill."""

    def __init__(self, builder, name, folder, seed, source, wrappers=tuple(WRAPPERS), memory_folder="/dev/shm"):
        self.tool, self.name, self.folder, self.seed, self.source = builder.tool, name, Path(folder), seed, source
        self.engine, self.medium, self.durability, self.tracker, in_memory = COMBINATIONS[name]
        self.wrappers = wrappers
        self.program = self.folder / "program"
        self.notes = self.folder / "notes"
        self.output = self.folder / "output"
        self.pool_folder = Path(memory_folder) / f"stillpoint-programs-{os.getpid()}-{seed}-{name}" if in_memory else self.folder
        self.pool_folder.mkdir(exist_ok=True)
        self.pool = self.pool_folder / "pool"
        self.of_this_life = {}  # options besides those that stay
        self.threads_go_on = False  # while the process ends
        self.sent = None  # the signal that ends this life
        self.state = "none"  # of the pool: none, unknown, clean, crashed
        self.figures = {"lives": 0, "kills": 0, "verified": 0, "checks": 0}
        dice = random.Random(f"{seed}/{name}/options")
        self.options = {"medium": self.medium, "durability": self.durability, "tracker": self.tracker, "pool_size_mb": dice.choice((4, 16)),
                        "pool_max_mb": 256, "interval_ms": dice.choice((1, 4, 10, 20))}
        if self.engine != engines.engines_that_keep_stores()[0]:
            del self.options["tracker"]
            self.options["engine"] = self.engine.name

    # -- The notes

    def value(self, offset):
        if not self.notes.exists() or self.notes.stat().st_size < offset + 8:
            return 0
        with self.notes.open("rb") as file:
            return struct.unpack_from("<Q", file.read(offset + 8), offset)[0]

    def forget_stage(self):
        if self.notes.exists():
            with self.notes.open("r+b") as file:
                file.write(bytes(8))

    # -- One life

    def words(self, wrapper, arguments):
        """The words of a start by `stillpoint run` or, with the wrapper "open", by a program that opens the pool itself."""
        expect = {"none": ["--expect", "fresh"], "crashed": ["--expect", "crashed"], "clean": ["--expect", "clean", "--complete"],
                  "unknown": []}[self.state]
        fase = ["--fase"] if self.engine.programs == engines.OPERATIONS else []
        program = [str(self.program), str(self.notes), "--source", str(self.source), *expect, *fase, *map(str, arguments)]
        options = self.options | self.of_this_life
        if wrapper == "open":
            return [*program, "--open", str(self.pool), " ".join(f"{name}={value}" for name, value in options.items()) + " quiet=1"]
        words = [self.tool.program("stillpoint"), "run", "--quiet", "--pool", str(self.pool)]
        for name, value in options.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        return words + ["--", *WRAPPERS[wrapper], *program]

    def start(self, wrapper, arguments, fault=None):
        self.forget_stage()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        if fault:
            environment["STILLPOINT_FAULT"] = fault
        self.figures["lives"] += 1
        self.last_words = ([f"STILLPOINT_FAULT={fault}"] if fault else []) + self.words(wrapper, arguments)
        with self.output.open("wb") as output:
            return subprocess.Popen(self.words(wrapper, arguments), stdout=output, stderr=subprocess.STDOUT, env=environment)

    def wait_for_work(self, process):
        give_up = time.monotonic() + DEADLINE_S
        while process.poll() is None and self.value(STAGE) < VERIFIED:
            if time.monotonic() > give_up:
                self.end_late(process)
            time.sleep(0.001)

    def end_late(self, process):
        stacks = subprocess.run(["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt 8"], capture_output=True, text=True,
                                check=False).stdout if shutil.which("gdb") else ""
        process.kill()
        process.wait()
        raise Finding(f"a run did not come on in {DEADLINE_S} s\n{stacks[-3000:]}")

    def kill_after(self, process, seconds, number=signal.SIGKILL):
        """Also by a signal that a program without a handler dies of."""
        self.sent = number
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            try:
                process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.end_late(process)
        self.judge(process)
        self.sent = None

    def wait(self, process):
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.end_late(process)
        self.judge(process)

    def judge(self, process):
        """The findings of the program, and what the next life may expect."""
        code, stage = process.returncode, self.value(STAGE)
        self.figures["verified"] += 1 if stage >= VERIFIED else 0
        if code in (-signal.SIGKILL, -(self.sent or signal.SIGKILL)):
            self.figures["kills"] += 1
            self.state = "crashed" if stage == VERIFIED and self.value(EPOCH) != 0 else "unknown" if self.pool.exists() else "none"
            return
        if code == 0:
            self.state = "unknown" if self.threads_go_on else "clean"
            return
        text = self.output.read_text(errors="replace").strip()
        if self.value(EPOCH) == 0 and ("creation was never finished" in text or "the file is empty" in text):
            self.pool.unlink(missing_ok=True)
            self.state = "none"
            return
        raise Finding(f"exit code {code}: {text[-3000:]}")

    def probe(self):
        """Raises ToolError where this machine lacks what the combination needs."""
        pool = self.pool_folder / "probe"
        words = [word if word != str(self.pool) else str(pool) for word in self.words("none", ["--verify"])]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=DEADLINE_S)
        pool.unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)
        if done.returncode in (EX_UNAVAILABLE, EX_CANTCREAT):
            raise ToolError(done.stdout)

    def check(self):
        if not self.pool.exists() or self.state == "unknown":
            return
        self.figures["checks"] += 1
        try:
            found = self.tool.check(self.pool)
        except ToolError as failure:
            raise Finding(str(failure)) from failure
        if found["durable_epoch"] < self.value(EPOCH):
            raise Finding(f"epoch {self.value(EPOCH)} was acknowledged, the pool holds {found['durable_epoch']}")

    def live(self, number):
        """One life more."""
        dice = random.Random(f"{self.seed}/{self.name}/{number}")
        if number == 0 and dice.random() < 0.5:
            self.wait(self.start("none", ["--rounds", 1]))
        wrapper = dice.choice(("none", "none", "open", *self.wrappers))
        self.of_this_life = {"recovery": dice.choice(("auto", "auto", "eager")), "stop_attempt_ms": dice.choice((1, 20)),
                             "staging_max_mb": dice.choice((1, 512))}
        random_number = ["--random", dice.randrange(1 << 30)]
        kind = dice.choices(("work", "early", "persist", "end"), (8, 1, 2, 3))[0]
        if kind == "work":
            process = self.start(wrapper, random_number)
            self.wait_for_work(process)
            number = dice.choice((signal.SIGKILL,) * 6 + (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT))
            self.kill_after(process, dice.choice((0.01, 0.05, 0.15)) * dice.random() * 2, number)
        elif kind == "early":
            self.kill_after(self.start(wrapper, random_number), dice.uniform(0, 0.03))
        elif kind == "persist":
            point = dice.choice((5, 30, 100, 400)) + dice.randrange(30)
            process = self.start(wrapper, random_number, f"persist:kill@{point}")
            self.wait_for_work(process)
            self.kill_after(process, 0.3)
        else:
            by_exec = self.wrappers if wrapper != "open" else ()  # which passes the pool on, as sp_open cannot
            end = dice.choice(("return", "exit", "_exit", *by_exec)).replace("none", "return")
            self.threads_go_on = end not in self.wrappers and dice.random() < 0.4
            going_on = ["--run-ms", dice.randrange(1, 60)] if self.threads_go_on else []
            self.wait(self.start(wrapper, [*random_number, "--rounds", dice.choice((3, 30)), "--end", end, *going_on]))
            self.threads_go_on = False
        if dice.random() < 0.3:
            self.check()

    def finish(self):
        """A last life that only verifies."""
        self.wait(self.start("none", ["--verify"]))
        self.check()

    def remove_pool(self):
        self.pool.unlink(missing_ok=True)
        if self.pool_folder != self.folder:
            shutil.rmtree(self.pool_folder, ignore_errors=True)

    def keep_pool(self):
        if self.pool_folder != self.folder and self.pool.exists():
            shutil.move(self.pool, self.folder / "pool")
            self.remove_pool()
