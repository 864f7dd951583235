#!/usr/bin/env python3
"""Kills a program again and again with SIGKILL, on each medium and with each tracker, and counts what was lost: nothing.

Each arrangement (medium, tracker, durability) gets its share of the kills:

  - at every persist point: a new pool, a kill at point 1, 2, 3, ... until the program ends by itself; after a
    kill one more while it recovers, at a point that goes up likewise; then the state is verified;
  - at random moments, on a pool that lives on: a third of them in the first milliseconds (creation, recovery), the
    others after the program has verified its state and gone to work.

Each start of the program (tests/kill/soak_program.cpp) verifies its whole state, the allocator, that no epoch and no
operation is missing that an earlier run was told is durable (it notes those outside the pool), and that it is told the
right kind of start. A third of the starts goes through a program that executes it: env, taskset, a shell.
`stillpoint check` looks at the pool as well, at times. In every arrangement a device stores into durable memory, too, by direct reads.

Exit code 0: nothing lost, nothing broken. 1: something was; the pool is kept, and the seed and the command that
repeat it are printed. 2: could not run, or not all of it: an arrangement has no direct I/O (--allow-no-device permits that).
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))

from pool_tool import ROOT, Tool, ToolError, table  # noqa: E402  (the path must be set first)

NOTES_BYTES = 112  # struct Notes of soak_program.cpp
STAGE, RECOVERED_EPOCH, OPERATIONS, DEVICE, DEVICE_READS = 72, 80, 88, 96, 104
NO_DEVICE = 2
OPERATIONS_WITH_A_READ = 500  # so many never come without a device's read, which is every sixteenth
SWEEP = ["--threads", "2", "--operations", "30", "--phases", "3"]
EX_UNAVAILABLE, EX_CANTCREAT = 69, 73  # of the tool: not here; no space
DEADLINE_S = 120  # for a run that must end: far beyond what any machine needs
POOL_MB_MAX = 96  # a pool that has grown beyond this is replaced
TWO_KILLS_UP_TO = 64  # persist points; after them every fourth is followed by a kill in the recovery
WRAPPERS = (["env", "WRAPPED=1"], ["taskset", "-a", "3"], ["sh", "-c", 'exec "$0" "$@"'])
BYTE_ADDRESSABLE_WEIGHT = 1.5  # of the kills: each changed line is a persist point there

ARRANGEMENTS = {
    # name: (medium, durability, tracker, in memory)
    "file-process-uffd": ("file", "process", "uffd", False),
    "file-process-mprotect": ("file", "process", "mprotect", False),
    "file-process-hooks": ("file", "process", "hooks", False),
    "file-power-uffd": ("file", "power", "uffd", False),
    "file-power-mprotect": ("file", "power", "mprotect", False),
    "memory-tmpfs-uffd": ("memory", "power", "uffd", True),
    "memory-tmpfs-mprotect": ("memory", "power", "mprotect", True),
    "memory-mapped-hooks": ("memory", "power", "hooks", False),
    "memory-mapped-uffd": ("memory", "power", "uffd", False),
    "memory-mapped-mprotect": ("memory", "process", "mprotect", False),
}


class Broken(Exception):
    """A promise that was not kept."""

    def __init__(self, what, lost=False):
        super().__init__(what)
        self.lost = lost


class Stop(Exception):
    """The time is up, or another arrangement has failed."""


class Notes:
    """The program's record outside its pool; it survives the kill."""

    def __init__(self, path):
        self.path = path

    def value(self, offset):
        with open(self.path, "rb") as file:
            return struct.unpack_from("<Q", file.read(NOTES_BYTES), offset)[0]

    def begin_run(self):
        """The stage of the run that follows is its own, and so are its device and what that has read."""
        if self.path.exists():
            with open(self.path, "r+b") as file:
                for offset in (STAGE, DEVICE, DEVICE_READS):
                    file.seek(offset)
                    file.write(bytes(8))

    def of_this_run(self, offset):
        """0 where the run did not come so far as to make the notes."""
        return self.value(offset) if self.path.exists() and self.path.stat().st_size >= NOTES_BYTES else 0

    def stage(self):
        return self.of_this_run(STAGE)


class Arrangement:
    """One medium, durability and tracker, with its pool and its figures. Kill k depends on seed, name and k alone."""

    def __init__(self, name, options, stop):
        self.name, self.options, self.stop = name, options, stop
        self.medium, self.durability, self.tracker, in_memory = ARRANGEMENTS[name]
        self.tool = Tool(options.binaries)
        self.folder = Path(options.folder) / name
        place = zlib.crc32(str(self.folder.absolute()).encode())  # Soaks in other folders have their own.
        self.pool_folder = Path(options.memory_folder) / f"stillpoint-soak-{os.getuid()}-{place:08x}" \
            if in_memory else self.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.access(self.pool_folder.parent, os.W_OK):
            self.pool_folder.mkdir(exist_ok=True)
        self.expected = {}  # by pool: which kind of start comes next; missing: any
        self.take_lane("random")
        self.wanted = 0
        self.output = self.folder / "output"
        self.figures = {"kills": 0, "runs": 0, "random": 0, "persist": 0, "points": 0, "sweep_done": False,
                        "recovery_point": 1, "before_main": 0, "steps": 0, "recoveries": 0, "checks": 0, "pools": 0, "epochs": 0,
                        "operations": 0, "device_reads": 0, "lost": 0}

    def take_lane(self, lane):
        """Each kind of kill has a pool of its own, with its notes."""
        self.pool = self.pool_folder / f"{lane}.pool"
        self.notes = Notes(self.folder / f"{lane}.notes")

    # -- one run ---------------------------------------------------------------------------

    def words(self, arguments, wrapper=()):
        options = {"medium": self.medium, "durability": self.durability, "tracker": self.tracker, "pool_size_mb": 4,
                   "pool_max_mb": 256, "interval_ms": 3600000 if "--operations" in arguments else 4}
        expected = self.expected.get(self.pool)
        words = self.tool.run_words(self.pool, options, "soak_program", [self.notes.path, *arguments, "--defect", self.options.defect,
                                                                         *(["--rings"] if self.tracker == "uffd" else []),
                                                                         *(["--expect", expected] if expected else [])])
        place = words.index("--") + 1
        return [*words[:place], *wrapper, *words[place:]]

    def start(self, arguments, fault=None, wrapper=()):
        if self.stop.is_set():
            raise Stop
        self.notes.begin_run()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        if fault:
            environment["STILLPOINT_FAULT"] = fault
        self.figures["runs"] += 1
        with self.output.open("wb") as output:
            return subprocess.Popen(self.words(arguments, wrapper), stdout=output, stderr=subprocess.STDOUT, env=environment)

    def judge(self, process):
        """True if the process was killed; its own findings are failures."""
        code = process.returncode
        stage = self.notes.stage()
        killed = code == -signal.SIGKILL
        # A kill while nothing is acknowledged yet, while it recovers or while it ends leaves open what comes next.
        self.expected[self.pool] = "clean" if code == 0 else "crashed" if killed and stage == 2 and self.notes.value(0) != 0 else None
        if stage >= 2:
            self.figures["recoveries"] += 1
            self.figures["operations"] = max(self.figures["operations"], self.notes.value(OPERATIONS))
            self.figures["epochs"] = max(self.figures["epochs"], self.notes.value(0))
            self.figures["device_reads"] += self.notes.of_this_run(DEVICE_READS)
            self.demand_device(self.notes.of_this_run(DEVICE))
        if killed:
            self.figures["kills"] += 1
            self.figures["before_main"] += 1 if stage == 0 else 0
            return True
        if code != 0:
            text = self.output.read_text(errors="replace").strip()
            if self.was_never_a_pool(text):
                self.new_pool()
                return False
            raise Broken(f"exit code {code}: {text}", lost=code == 4)
        return False

    def demand_device(self, state):
        if state == NO_DEVICE and not self.options.allow_no_device:
            raise ToolError(f"there is no direct I/O in {self.folder}, so no device stores into durable memory: name another --folder, "
                            f"or leave that out by --allow-no-device")

    def demand_reads(self):
        """At the end: a device that is there has read."""
        if self.figures["operations"] >= OPERATIONS_WITH_A_READ and self.figures["device_reads"] == 0 and not self.options.allow_no_device:
            raise ToolError(f"no device has read in {self.figures['operations']} operations")

    def was_never_a_pool(self, text):
        """Where the file system has no files without names, a kill inside the creation leaves a file that says so."""
        nothing_promised = not self.notes.path.exists() or self.notes.value(0) == 0
        return nothing_promised and ("creation was never finished" in text or "the file is empty" in text)

    def run_to_end(self, arguments, fault=None):
        process = self.start(arguments, fault)
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.wait()
            raise Broken(f"a run with {fault} did not end in {DEADLINE_S} s") from late
        return self.judge(process)

    def new_pool(self):
        self.pool.unlink(missing_ok=True)
        self.notes.path.unlink(missing_ok=True)
        self.expected[self.pool] = "fresh"
        self.figures["pools"] += 1

    def check(self):
        if not self.pool.exists():
            if self.notes.path.exists() and self.notes.value(0) != 0:
                raise Broken("the pool has vanished", lost=True)
            return
        self.figures["checks"] += 1
        try:
            found = self.tool.check(self.pool)
        except ToolError as failure:
            if self.was_never_a_pool(str(failure)):
                self.new_pool()
                return
            raise Broken(str(failure)) from failure
        if self.notes.path.exists() and found["durable_epoch"] < self.notes.value(0):
            raise Broken(f"epoch {self.notes.value(0)} was acknowledged, the pool holds {found['durable_epoch']}", lost=True)

    # -- the two kinds of kills ---------------------------------------------------------------

    def sweep_once(self):
        """One more persist point, on a pool of its own; then one in the recovery from that."""
        point = self.figures["points"] + 1
        self.new_pool()
        if not self.run_to_end(SWEEP, f"persist:kill@{point}"):
            self.figures["sweep_done"] = True
            self.pool.unlink()
            return
        self.figures["persist"] += 1
        self.figures["points"] += 1
        if point % 8 == 0:
            self.check()
        again = self.figures["recovery_point"]
        if point > TWO_KILLS_UP_TO and point % 4 != 0:
            self.run_to_end(["--verify"])
        elif self.run_to_end(["--verify"], f"persist:kill@{again}"):
            self.figures["persist"] += 1
            self.figures["recovery_point"] += 1
            self.run_to_end(["--verify"])
        else:
            self.figures["recovery_point"] = 1  # that recovery has no further point

    def random_once(self, kill):
        dice = random.Random(f"{self.options.seed}/{self.name}/{kill}")
        at_work = dice.random() > 1 / 3
        moment_s = dice.uniform(0, self.options.longest_ms if at_work else 12) / 1000
        process = self.start(["--threads", str(dice.choice((2, 3, 4)))],
                             wrapper=dice.choice((*WRAPPERS, *[()] * 6)) if self.options.wrappers else ())
        give_up = time.monotonic() + DEADLINE_S
        while at_work and process.poll() is None and self.notes.stage() < 2 and time.monotonic() < give_up:
            time.sleep(0.001)
        try:
            process.wait(moment_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self.judge(process):
            self.figures["random"] += 1
        if dice.random() < 0.05:
            self.check()
        if self.pool.exists() and self.pool.stat().st_size > POOL_MB_MAX << 20:
            self.run_to_end(["--verify"])
            self.new_pool()

    def run(self):
        if self.figures["kills"] >= self.wanted:
            return  # by an earlier call
        while self.figures["kills"] < self.wanted:
            self.figures["steps"] += 1
            if self.figures["sweep_done"] or self.figures["steps"] % 3 == 0:
                self.take_lane("random")
                self.random_once(self.figures["steps"])
            else:
                self.take_lane("sweep")
                self.sweep_once()
        self.take_lane("random")
        self.run_to_end(["--verify"])
        self.demand_reads()
        self.check()
        self.pool.unlink(missing_ok=True)
        self.notes.path.unlink(missing_ok=True)

    def command(self):
        return (f"python3 tests/kill/soak.py --seed {self.options.seed} --kills {self.wanted} --only {self.name} --fresh"
                + (f" --defect {self.options.defect}" if self.options.defect != "none" else "")
                + ("" if self.options.wrappers else " --no-wrappers"))

    def clean(self):
        for folder in {self.folder, self.pool_folder}:
            shutil.rmtree(folder, ignore_errors=True)


class Soak:
    """All arrangements, two at a time; what is done is kept in a file, and a later call continues from there."""

    def __init__(self, options):
        self.options = options
        self.stop = threading.Event()
        self.failures = []
        self.begin = time.monotonic()
        self.state = Path(options.folder) / "state.json"
        names = options.only.split(",") if options.only else list(ARRANGEMENTS)
        for name in names:
            if name not in ARRANGEMENTS:
                raise ToolError(f"no arrangement is called {name}; there are {', '.join(ARRANGEMENTS)}")
        self.key = f"seed {options.seed} kills {options.kills} defect {options.defect} of {' '.join(names)}"
        if options.fresh or options.no_resume or not self.load_key():
            shutil.rmtree(options.folder, ignore_errors=True)
        Path(options.folder).mkdir(parents=True, exist_ok=True)
        self.arrangements = [Arrangement(name, options, self.stop) for name in names]
        self.skipped = []

    def share_the_kills(self):
        weights = [BYTE_ADDRESSABLE_WEIGHT if one.medium == "memory" else 1 for one in self.arrangements]
        for one, weight in zip(self.arrangements, weights):
            one.wanted = math.ceil(self.options.kills * weight / sum(weights))

    def load_key(self):
        try:
            return json.loads(self.state.read_text())["key"] == self.key
        except (OSError, ValueError, KeyError):
            return False

    def resume(self):
        self.share_the_kills()
        if self.load_key():
            figures = json.loads(self.state.read_text())["figures"]
            for one in self.arrangements:
                one.figures.update(figures.get(one.name, {}))
            print(f"soak: continues after {self.total('kills')} kills (--fresh begins again)", flush=True)
        else:
            for one in self.arrangements:
                for old in (*one.pool_folder.glob("*.pool"), *one.folder.glob("*.notes")):
                    old.unlink()

    def save(self):
        figures = {one.name: one.figures for one in self.arrangements}
        part = self.state.with_suffix(".part")
        part.write_text(json.dumps({"key": self.key, "figures": figures}))
        part.replace(self.state)

    def total(self, figure):
        return sum(one.figures[figure] for one in self.arrangements)

    def drop_what_cannot_be(self):
        """An arrangement whose tracker or medium this machine refuses is left out, and named."""
        for one in list(self.arrangements):
            probe = one.pool_folder / "probe.pool"
            if not one.pool_folder.is_dir():
                self.arrangements.remove(one)
                self.skipped.append(f"{one.name}: cannot write to {self.options.memory_folder}")
                continue
            words = self.tool_words(one, probe)
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            probe.unlink(missing_ok=True)
            device = Notes(one.folder / "probe").of_this_run(DEVICE)
            (one.folder / "probe").unlink(missing_ok=True)
            if done.returncode == 0:
                one.demand_device(device)
                continue
            if done.returncode not in (EX_UNAVAILABLE, EX_CANTCREAT):
                raise ToolError(f"{one.name}: {done.stdout.strip()}")
            self.arrangements.remove(one)
            self.skipped.append(f"{one.name}: {done.stdout.strip().splitlines()[-1]}")

    def tool_words(self, one, probe):
        options = {"medium": one.medium, "durability": one.durability, "tracker": one.tracker, "pool_size_mb": 4,
                   "pool_max_mb": 256}
        return one.tool.run_words(probe, options, "soak_program", [one.folder / "probe", "--verify", "--defect", self.options.defect])

    def run_one(self, one):
        try:
            one.run()
        except Stop:
            pass
        except (Broken, ToolError, OSError) as failure:
            one.figures["lost"] += 1 if getattr(failure, "lost", False) else 0
            self.failures.append((one, failure))
            self.stop.set()

    def watch(self, futures):
        """Progress until all have ended, the time is up, or one has failed."""
        told = time.monotonic()
        while not all(future.done() for future in futures):
            time.sleep(0.1)
            now = time.monotonic()
            if self.options.limit_s and now - self.begin > self.options.limit_s:
                self.stop.set()
            if now - told > 10:
                told = now
                self.save()
                print(f"soak: {self.total('kills')} kills, {self.total('recoveries')} recoveries verified, "
                      f"{now - self.begin:.0f} s", flush=True)

    def run(self):
        self.drop_what_cannot_be()
        self.resume()
        with ThreadPoolExecutor(self.options.jobs) as pool:
            futures = [pool.submit(self.run_one, one) for one in self.arrangements]
            try:
                self.watch(futures)
            except KeyboardInterrupt:
                self.stop.set()
        self.save()
        self.report()
        return 1 if self.failures else 0

    def report(self):
        rows = []
        for one in self.arrangements:
            figures = one.figures
            points = f"all {figures['points']}" if figures["sweep_done"] else str(figures["points"])
            rows.append([one.name, figures["kills"], figures["random"], figures["persist"], points, figures["before_main"],
                         figures["recoveries"], figures["epochs"], figures["device_reads"] or "none", figures["lost"]])
        headings = ["arrangement", "kills", "random", "at points", "points met", "in opening", "verified", "epochs", "device reads", "lost"]
        rows.append(["all", self.total("kills"), self.total("random"), self.total("persist"), self.total("points"),
                     self.total("before_main"), self.total("recoveries"), "", self.total("device_reads"), self.total("lost")])
        print("\n".join(table(headings, rows)))
        for line in self.skipped:
            print(f"soak: left out: {line}")
        wanted = sum(one.wanted for one in self.arrangements)
        print(f"soak: seed {self.options.seed}: {self.total('kills')} of {wanted} kills in "
              f"{time.monotonic() - self.begin:.0f} s, {self.total('recoveries')} recoveries verified, "
              f"{self.total('checks')} pools checked, {self.total('device_reads')} reads by a device; acknowledged epochs lost: {self.total('lost')}")
        if not self.failures and not self.is_done():
            print("soak: stopped early" + ("" if self.options.no_resume else "; the same command continues from here"))
        for one, failure in self.failures:
            print(f"soak: BROKEN: {one.name}, kill {one.figures['kills']}, seed {self.options.seed}: {failure}\n"
                  f"soak: the pool is kept in {one.pool_folder}; to repeat it:\n  {one.command()}", file=sys.stderr)

    def is_done(self):
        return all(one.figures["kills"] >= one.wanted for one in self.arrangements)

    def clean(self):
        for one in self.arrangements:
            one.clean()
        shutil.rmtree(self.options.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10000, help="of all arrangements together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=0, help="stop after this time; 0: when all is done")
    parser.add_argument("--only", default="", help=f"some of: {', '.join(ARRANGEMENTS)}")
    parser.add_argument("--jobs", type=int, default=2, help="arrangements at a time")
    parser.add_argument("--longest-ms", type=float, default=50, help="of work before a random kill, at most")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier call with this seed has done")
    parser.add_argument("--no-resume", action="store_true", help="begin again, and keep nothing for a later call but failures")
    parser.add_argument("--defect", default="none", help="of the program: none, early-ack, torn, outside, leak, stale, unmarked, no-device")
    parser.add_argument("--wrappers", action=argparse.BooleanOptionalAction, default=True, help="start also through env, taskset, sh")
    parser.add_argument("--allow-no-device", action="store_true", help="also where there is no direct I/O for the notes' folder")
    parser.add_argument("--binaries", default=None, help="folder of the programs (default build/bin)")
    parser.add_argument("--folder", default=str(ROOT / "build" / "soak"), help="for pools, notes and what is done")
    parser.add_argument("--memory-folder", default="/dev/shm", help="for the pools in memory")
    options = parser.parse_args()
    try:
        soak = Soak(options)
        code = soak.run()
    except (ToolError, OSError) as failure:
        print(f"soak: {failure}", file=sys.stderr)
        return 2
    if code == 0 and (soak.is_done() or options.no_resume):
        soak.clean()
    return code


if __name__ == "__main__":
    sys.exit(main())
