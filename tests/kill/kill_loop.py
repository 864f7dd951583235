#!/usr/bin/env python3
"""Kills a program with SIGKILL again and again, at random moments, also while it recovers, and proves after each
kill that nothing that was promised is broken:

  - `stillpoint check` finds the pool sound;
  - the durable epoch of the pool is not older than any that the killed program had been told is durable;
  - the restarted program finds its invariant intact: bank its sum, its counters, its statements, its heap, and every
    acknowledged transfer; the ledger with restart points the same; the one with durable objects every acknowledged operation;
    the one of breeze every acknowledged transaction, with exact reference counts; word-index its list of files;
  - at the end the program finishes: bank its transfers, word-index the index of an undisturbed run.

Exit code 0: all held. 1: something did not; the line before names the seed and the kill, to repeat it.
"""

import argparse
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "scripts"), str(Path(__file__).resolve().parents[1])]

from pool_tool import ROOT, Tool, ToolError, kill  # noqa: E402  (the path must be set first)
from support.rados_pool import RadosPool  # noqa: E402
from support import engines  # noqa: E402


class Broken(Exception):
    """A promise that was not kept."""


def whole_lines(path):
    """Lines of a file that end: the last one may have been cut off."""
    if not path.exists():
        return []
    return [line for line in path.read_text(errors="replace").splitlines(keepends=True) if line.endswith("\n")]


class Bank:
    """examples/bank: as many transfers as come, then a run that ends."""

    name = "bank"
    programs = engines.LOCKS
    pool_size_mb = 16

    def __init__(self, loop):
        self.loop = loop
        self.acknowledged = loop.folder / "bank.ack"

    def arguments(self, last):
        made = self.transfers() if last else 0
        transfers = made + 20000 if last else 1 << 39
        return ["--accounts", 500, "--threads", 4, "--transfers", transfers, "--acknowledge", self.acknowledged,
                "--acknowledge-ms", 1]

    def transfers(self):
        """Acknowledged so far: a lower bound of what there is."""
        lines = whole_lines(self.acknowledged)
        return int(lines[-1].split()[1]) if lines else 0

    def promised_epoch(self):
        lines = whole_lines(self.acknowledged)
        return int(lines[-1].split()[0]) if lines else 0

    def judge(self, output):
        """The output of a killed or finished run, as far as it came."""
        if "BROKEN" in output or "LOST" in output:
            raise Broken(output)
        return "at the start" in output

    def finished(self, _output):
        """A killed bank has always more to do."""
        return False

    def judge_end(self, output):
        if "bank: done" not in output or "BROKEN" in output:
            raise Broken(output)


class Ledger(Bank):
    """tests/kill/respct_ledger.cpp: restart points, one-word locks, typed objects, frames."""

    name = "respct_ledger"
    programs = engines.RESTART_POINTS

    def arguments(self, last):
        return [self.acknowledged, 4, 2000 if last else 1 << 39]

    def judge_end(self, output):
        if "ledger done" not in output or "BROKEN" in output:
            raise Broken(output)


class ProntoLedger(Ledger):
    """tests/kill/pronto_ledger.cpp: durable objects. What it was told, it notes in a file that it maps: the first word is an epoch."""

    name = "pronto_ledger"
    programs = engines.OPERATIONS
    pool_size_mb = 4  # The log has eight chunks then, and wraps.

    def promised_epoch(self):
        if not self.acknowledged.exists():
            return 0
        with self.acknowledged.open("rb") as file:
            return int.from_bytes(file.read(8), "little")


class SphtLedger(ProntoLedger):
    """tests/kill/spht_ledger.cpp: transactions."""

    name = "spht_ledger"
    programs = engines.TRANSACTIONS


class NvthreadsLedger(ProntoLedger):
    """tests/kill/nvthreads_ledger.cpp: sections, which nest and overlap, each durable when its unlock has returned."""

    name = "nvthreads_ledger"
    programs = engines.CRITICAL_SECTIONS
    options = {"acknowledge": "unlock"}


class NvthreadsLedgerOfProcesses(NvthreadsLedger):
    """Threads that are processes: the kill hits the one that has the pool."""

    options = {"acknowledge": "unlock", "threads": "processes"}


class LedgerOfDyingThreads(NvthreadsLedgerOfProcesses):
    """The program kills the processes of its single threads. A death in a section of which others have seen a part ends it as a crash."""

    may_die = True

    def arguments(self, last):
        """None die in the last run, which has to come to its end: on a slow machine a death ended it again and again."""
        return super().arguments(last) if last else [*super().arguments(last), "dying"]

    def deaths(self):
        """Single threads that have died, and the program has gone on."""
        return int.from_bytes(self.acknowledged.read_bytes()[-8:], "little") if self.acknowledged.exists() else 0

    def finished(self, _output):
        return False


class NvthreadsOrderLedger(NvthreadsLedger):
    """Likewise, with unlocks that do not wait; threads wait after every few sections."""

    options = {"acknowledge": "order", "order_delay_ms": 1}

    def arguments(self, last):
        return [*super().arguments(last), "order"]


class BreezeLedger(ProntoLedger):
    """tests/kill/breeze_ledger.cpp: typed objects in two pools, which the program opens itself; every other start moves them."""

    name = "breeze_ledger"
    engine = "breeze"
    PHASES = ("in the start", "in an opening", "in a check", "at work")
    FIGURES = ("openings with rewritten pointers", "transactions undone", "collections", "copies opened beside their pool")

    def __init__(self, loop):
        super().__init__(loop)
        self.kills = dict.fromkeys(self.PHASES, 0)

    def words(self, last):
        options = self.loop.options
        medium = options.medium if options.medium != "auto" else "file"
        return [self.loop.tool.program(self.name), str(self.loop.pool), medium, *map(str, self.arguments(last))]

    def pools(self):
        return [self.loop.pool, Path(f"{self.loop.pool}.second")]

    def told(self, word):
        """A word of what the program notes: 0 the phase, 1 starts, and then FIGURES."""
        if not self.acknowledged.exists():
            return 0
        with self.acknowledged.open("rb") as file:
            file.seek(8 * word)
            return int.from_bytes(file.read(8), "little")

    def promised_epoch(self):
        return 0  # each thread's transactions are compared by the program

    def wait(self, delay_s):
        """A third of the kills come in an opening, and most of the others at work: the program says when each begins."""
        chance = self.loop.random.random()
        wanted = 1 if chance < 1 / 3 else 0 if chance < 1 / 2 else 3
        deadline = time.monotonic() + 20
        while wanted != 0 and self.told(0) != wanted and time.monotonic() < deadline:
            time.sleep(0.0002)
        opening_s = 0.015 if self.loop.options.medium == "memory" else 0.04
        time.sleep(self.loop.random.uniform(0, opening_s) if wanted == 1 else delay_s)

    def note_kill(self):
        self.kills[self.PHASES[self.told(0)]] += 1

    def figures(self):
        figures = {f"kills {phase}": count for phase, count in self.kills.items()}
        return figures | {what: self.told(2 + i) for i, what in enumerate(self.FIGURES)}


class WordIndex:
    """examples/word-index: when the index is finished, a new one is begun in a new pool."""

    name = "word-index"
    programs = engines.LOCKS
    pool_size_mb = 16

    def __init__(self, loop):
        self.loop = loop
        self.done = 0
        self.rounds = 0
        volatile = subprocess.run([loop.tool.program(self.name), "--threads", "2", loop.options.directory],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
        self.digest = re.search(r"digest (\w+)", volatile).group(1)

    def arguments(self, _last):
        return ["--threads", 2, self.loop.options.directory]

    def promised_epoch(self):
        return 0  # the program acknowledges nothing; the loop asks `stillpoint stats` instead

    def judge(self, output):
        if "WRONG" in output:
            raise Broken(output)
        found = re.search(r"; (\d+) of \d+ files done", output)
        if found:
            if int(found.group(1)) < self.done:
                raise Broken(f"an earlier run had found {self.done} files done: {output}")
            self.done = int(found.group(1))
        if "digest" in output:
            self.judge_end(output)
        return found is not None

    def finished(self, output):
        if "digest" not in output:
            return False
        self.done = 0
        self.rounds += 1
        return True

    def judge_end(self, output):
        found = re.search(r"digest (\w+)", output)
        if not found or found.group(1) != self.digest:
            raise Broken(f"the index differs from the volatile run's {self.digest}: {output}")


PROGRAMS = {"bank": Bank, "word-index": WordIndex, "respct-ledger": Ledger, "pronto-ledger": ProntoLedger, "spht-ledger": SphtLedger,
            "nvthreads-ledger": NvthreadsLedger, "ledger-of-processes": NvthreadsLedgerOfProcesses,
            "ledger-of-dying-threads": LedgerOfDyingThreads,
            "nvthreads-order-ledger": NvthreadsOrderLedger, "breeze-ledger": BreezeLedger}
SKIPPED = 77


def settle_engine(options):
    """Chooses engine and program where they were not given. False: there is no such engine in the build."""
    listed = engines.listed_by(Tool(options.binaries).command)
    for name, program in PROGRAMS.items():  # `stillpoint run` does not open pools of these engines.
        if hasattr(program, "engine") and (options.engine == program.engine or options.program == name):
            options.engine, options.program = program.engine, name
            return Path(Tool(options.binaries).binaries / program.name).exists()
    if options.engine is None:
        programs = PROGRAMS[options.program or "bank"].programs
        options.engine = next((engine.name for engine in listed if engine.programs == programs), None)
    found = next((engine for engine in listed if engine.name == options.engine), None)
    if found is not None and options.program is None:
        options.program = next(name for name, program in PROGRAMS.items() if program.programs == found.programs)
    return found is not None


class Loop:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.tool = Tool(options.binaries)
        # A folder of its own inside: what else lies there is not this program's to delete.
        name = "-".join(["kill-loop", options.program, options.engine, str(options.seed)])
        self.folder = options.folder / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        # Loops in other folders may use the same one for their pools.
        place = "" if options.pool_folder is None else f"-{zlib.crc32(bytes(self.folder.resolve())):08x}"
        self.pool = Path(options.pool_folder or self.folder) / f"{name}{place}.pool"
        if options.ceph_pool:
            self.pool = RadosPool(self.tool.command, options.ceph_pool, f"{name}.{zlib.crc32(bytes(self.folder.resolve())):08x}")
        self.output = self.folder / "output.txt"
        self.program = PROGRAMS[options.program](self)
        self.remove_pools()
        self.promised = 0
        self.counts = {"kills": 0, "before the program began its work": 0, "before the pool was made": 0}

    def pools(self):
        return self.program.pools() if hasattr(self.program, "pools") else [self.pool]

    def remove_pools(self):
        for pool in self.pools():
            pool.unlink(missing_ok=True)
            if isinstance(pool, Path):
                Path(f"{pool}.copy").unlink(missing_ok=True)

    def remove_files(self):
        """All that the loop has made."""
        self.remove_pools()

    def progress(self):
        return f"at kill {self.counts['kills']}"

    def words(self, last):
        if hasattr(self.program, "words"):
            return self.program.words(last)
        options = {"interval_ms": self.options.interval_ms, "tracker": self.options.tracker,
                   "medium": self.options.medium, "durability": self.options.durability,
                   "pool_size_mb": self.program.pool_size_mb, "engine": self.options.engine, **getattr(self.program, "options", {})}
        return self.tool.run_words(self.pool, options, self.program.name, self.program.arguments(last))

    def delay_s(self):
        """A third of the kills come in the first moments, where the pool is made or recovered."""
        longest_ms = 30 if self.random.random() < 1 / 3 else self.options.longest_ms
        return self.random.uniform(0, longest_ms) / 1000

    def ask_stats(self, process):
        """Sometimes notes the durable epoch just before the kill: it is a promise too."""
        if self.random.random() < 0.3 and process.poll() is None:
            try:
                self.promised = max(self.promised, self.tool.stats(self.pool)["durable_epoch"])
            except ToolError:
                pass  # the process has not opened its pool yet, or has just ended

    def killed_run(self):
        with self.output.open("wb") as output:
            process = subprocess.Popen(self.words(False), stdout=output, stderr=subprocess.STDOUT)
            if hasattr(self.program, "wait"):
                self.program.wait(self.delay_s())
            else:
                time.sleep(self.delay_s())
                self.ask_stats(process)
            _, was_killed = kill(process)
            was_killed = was_killed or (getattr(self.program, "may_die", False) and process.returncode == -signal.SIGKILL)
        text = self.output.read_text(errors="replace")
        if not was_killed and process.returncode != 0:
            raise Broken(f"the program ended by itself with exit code {process.returncode}: {text}")
        begun = self.program.judge(text)
        if was_killed:
            self.counts["kills"] += 1
            self.counts["before the program began its work"] += 0 if begun else 1
            if hasattr(self.program, "note_kill"):
                self.program.note_kill()
        if self.program.finished(text):
            self.new_pool()

    def check_others(self):
        """The pools of the program besides the first one, where they are there already."""
        for pool in self.pools()[1:]:
            if pool.exists():
                self.tool.check(pool)

    def new_pool(self):
        self.tool.check(self.pool)
        self.pool.unlink()
        self.promised = 0

    def check_pool(self):
        self.check_others()
        self.promised = max(self.promised, self.program.promised_epoch())
        if not self.pool.exists():
            if self.promised:
                raise Broken(f"the pool has vanished; epoch {self.promised} was durable")
            self.counts["before the pool was made"] += 1
            return
        try:
            self.tool.check(self.pool)
        except ToolError as failure:
            # A kill while the pool is made leaves a file without a superblock. The next run refuses it and says
            # that it holds no data, and that it is to be deleted: so that is done. Afterwards it must not happen.
            if self.promised or "creation was never finished" not in str(failure):
                raise
            self.pool.unlink()
            self.counts["before the pool was made"] += 1
            return
        recovered = self.tool.info(self.pool)["durable_epoch"]
        if recovered < self.promised:
            raise Broken(f"epoch {self.promised} was durable, the pool holds {recovered}")

    def last_run(self):
        done = subprocess.run(self.words(True), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Broken(f"the last run ended with exit code {done.returncode}: {done.stdout}")
        self.program.judge_end(done.stdout)
        for pool in self.pools():
            if not self.tool.check(pool)["clean"]:
                raise Broken(f"the last run ended normally, and {pool} says that it did not")

    def run(self):
        begin = time.monotonic()
        while self.counts["kills"] < self.options.kills:
            self.killed_run()
            self.check_pool()
            if self.counts["kills"] % 20 == 0 and self.counts["kills"]:
                print(f"kill_loop: {self.program.name}: {self.counts['kills']} kills, epoch {self.promised}", flush=True)
        self.last_run()
        if hasattr(self.program, "deaths"):
            self.counts["deaths of single threads besides"] = self.program.deaths()
        self.counts |= self.program.figures() if hasattr(self.program, "figures") else {}
        facts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        print(f"kill_loop: {self.program.name} ({self.options.engine}, {self.options.tracker}, {self.options.medium}, "
              f"{self.options.durability}, seed {self.options.seed}): {facts}; all promises kept in "
              f"{time.monotonic() - begin:.1f} s")


def run_loop(kind, options):
    """Runs a loop of that class, and removes what it has made where all held. The exit code."""
    name = Path(sys.argv[0]).stem
    loop = None
    try:
        loop = kind(options)
        loop.run()
    except (Broken, ToolError) as failure:
        progress = loop.progress() if loop else "before its first round"
        print(f"{name}: BROKEN {progress}, seed {options.seed}; the pools are kept in {options.folder}: {failure}", file=sys.stderr)
        return 1
    loop.remove_files()
    shutil.rmtree(loop.folder, ignore_errors=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", choices=list(PROGRAMS), help="default: the first that is written for the engine; bank")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--engine", help="default: the first of the build that the program is written for")
    parser.add_argument("--medium", default="auto", help="as of `stillpoint run`")
    parser.add_argument("--tracker", default="auto", help="as of `stillpoint run`")
    parser.add_argument("--durability", default="power", help="as of `stillpoint run`")
    parser.add_argument("--interval-ms", type=int, default=20)
    parser.add_argument("--longest-ms", type=int, default=400, help="a run is killed after this time at the latest")
    parser.add_argument("--directory", default="/usr/include", help="that word-index indexes")
    parser.add_argument("--binaries", help="folder of the programs (default build/bin)")
    parser.add_argument("--folder", help="for the pool and the output (default inside build/)")
    parser.add_argument("--ceph-pool", help="the pool lies in this one of the cluster that CEPH_CONF names")
    parser.add_argument("--pool-folder", help="for the pool alone, e.g. /dev/shm")
    options = parser.parse_args()
    if not settle_engine(options):
        print(f"kill_loop: skipped: the build has no engine {options.engine or 'for ' + options.program}")
        return SKIPPED
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    if options.folder is None:
        options.folder = ROOT / "build" / "kill-loop"
    options.folder = Path(options.folder)
    return run_loop(Loop, options)


if __name__ == "__main__":
    sys.exit(main())
