"""A ledger program that owns a pool of the cluster: what it was told is durable, and what it found when it began.

Every start has a file of acknowledgements of its own. So each owner's promises are known apart, also those
of an owner that was shut out and wakes up again.
"""

import contextlib
import os
import re
import signal
import struct
import subprocess
import time

LEASE_MS = 1000
WAIT_S = 60
IN_USE = 75
REFUSED = 65


class Broken(Exception):
    """A promise that was not kept."""


class Diverged(Broken):
    """A start is refused: a pool and its replica each have what the other lacks."""


class Bank:
    """examples/bank: the engine of programs with locks. It appends a line "epoch transfers" for each epoch that is durable."""

    under_way = 1  # so many acknowledgements may still come when nothing later can become durable
    pool_size = "16M"
    opens_pool = False  # itself: it can neither be a standby nor have a replica

    name, engine = "bank", "pmthreads"
    start = re.compile(r"; (\d+) transfers done")
    sound = re.compile(r"at the start: .*: holds")

    @staticmethod
    def arguments(acknowledged, _pause_ms=0):
        return ["--accounts", 500, "--threads", 2, "--transfers", 1 << 39, "--acknowledge", acknowledged, "--acknowledge-ms", 1]

    @staticmethod
    def last(acknowledged):
        """(epoch, transfers) of its newest acknowledgement."""
        with contextlib.suppress(OSError):
            lines = [line for line in acknowledged.read_text().splitlines(keepends=True) if line.endswith("\n")]
            if lines:
                epoch, transfers = lines[-1].split()
                return int(epoch), int(transfers)
        return 0, 0

    @staticmethod
    def told(acknowledged):
        """How often it was told that something is durable."""
        return acknowledged.read_bytes().count(b"\n") if acknowledged.exists() else 0

    @staticmethod
    def contradiction(_earlier, _later):
        """Finds what the file of an owner says against the file of its successor; empty: nothing more than transfers."""
        return ""


class RespctLedger(Bank):
    """tests/kill/respct_ledger.cpp: the engine of programs with restart points."""

    name, engine = "respct_ledger", "respct"
    start = re.compile(r"ledger at the start: (\d+) transfers")
    sound = re.compile(r"ledger at the start: (?!.*BROKEN).*\n")

    @staticmethod
    def arguments(acknowledged, _pause_ms=0):
        return [acknowledged, 2, 1 << 39]


class ProntoLedger(RespctLedger):
    """tests/kill/pronto_ledger.cpp: the engine of durable objects. Its threads note operations in a file as tests/kill/told.hpp has it."""

    name, engine = "pronto_ledger", "pronto"
    sound = re.compile(r"ledger at the start: (?!.*(BROKEN|LOST)).*\n")
    kinds = ("transfers", "entries", "texts", "in shards", "handovers")
    under_way = threads = 2

    @staticmethod
    def arguments(acknowledged, pause_ms=0):
        return [acknowledged, 2, 1 << 39, "wait", pause_ms]

    @classmethod
    def words(cls, acknowledged):
        """The durable epoch, and for each thread the numbers by kind that it found, began and was told of. None: no start has noted any."""
        kinds, size = len(cls.kinds), 8 * (2 + 3 * len(cls.kinds) * cls.threads)
        data = acknowledged.read_bytes()[:size] if acknowledged.exists() else b""
        epoch, has_begun, *numbers = struct.unpack(f"<{size // 8}Q", data.ljust(size, b"\0"))
        rows = [numbers[i:i + kinds] for i in range(0, len(numbers), kinds)]
        return epoch, [rows[i:i + 3] for i in range(0, len(rows), 3)] if has_begun else None

    @classmethod
    def last(cls, acknowledged):
        epoch, threads = cls.words(acknowledged)
        return epoch, sum(told[0] for _, _, told in threads or [])

    @classmethod
    def told(cls, acknowledged):
        return sum(sum(told) - sum(found) for found, _, told in cls.words(acknowledged)[1] or [])

    @classmethod
    def contradiction(cls, earlier, later):
        """Each thread has done, of each kind, at least what the owner before was told, and at most what it began."""
        before, after = cls.words(earlier)[1], cls.words(later)[1]
        for thread in range(cls.threads if before and after else 0):
            for kind, begun, told, found in zip(cls.kinds, before[thread][1], before[thread][2], after[thread][0]):
                if not told <= found <= begun:
                    return f"{kind} of thread {thread}: {begun} begun, {told} acknowledged, and then {found} found"
        return ""


class SphtLedger(ProntoLedger):
    """tests/kill/spht_ledger.cpp: the engine of transactions."""

    name, engine = "spht_ledger", "spht"
    kinds = ("transfers", "entries", "texts", "handovers")


class BreezeOwner(ProntoLedger):
    """breeze_owner.cpp: the engine of typed objects, whose programs open their pools themselves."""

    name, engine = "breeze_owner", "breeze"
    opens_pool = True
    kinds = ("transactions",)


PROGRAMS = {"bank": Bank, "respct-ledger": RespctLedger, "pronto-ledger": ProntoLedger, "spht-ledger": SphtLedger,
            "breeze-owner": BreezeOwner}


class Owner:
    """One start of the program on a machine. `pool`: the history's where None; `more`: options of its own; `pause_ms`: between operations,
    of programs that wait for each."""

    def __init__(self, history, machine, take_over=False, command="run", pool=None, more=(), pause_ms=0):
        self.history, self.machine, self.program = history, machine, history.program
        self.pool, self.more, self.pause_ms = pool or history.pool, more, pause_ms
        self.floor = None  # (epoch, transfers) that must survive, where that is less than what it was told
        number = len(history.owners)
        self.acknowledgements = history.folder / f"{number}.ack"
        self.output_path = history.folder / f"{number}.out"
        self.found = None  # transfers at its start
        self.take_over = take_over
        self.command = command
        self.process = None
        history.owners.append(self)

    def words(self):
        binaries = self.history.binaries
        if self.program.opens_pool:
            return [binaries / self.program.name, self.pool, self.acknowledgements, self.program.threads]
        options = ["--pool-size", self.program.pool_size, "--interval", 20, "--lease", LEASE_MS, "--engine", self.program.engine,
                   *(["--take-over"] if self.take_over else []), *self.more]
        warnings = ["--log-level", "warning"] if self.command == "run" else []
        return [binaries / "stillpoint", self.command, *warnings, "--pool", self.pool, *options, "--", binaries / self.program.name,
                *self.program.arguments(self.acknowledgements, self.pause_ms)]

    def variables(self):
        """Options of a program that opens its pool itself."""
        if not self.program.opens_pool:
            return {}
        return {"STILLPOINT_LEASE_MS": str(LEASE_MS), **({"STILLPOINT_TAKE_OVER": "1"} if self.take_over else {})}

    def start(self):
        with self.output_path.open("wb") as output:
            self.process = self.machine.start(self.words(), {**self.history.environment, **self.variables()}, output)

    def stand_by(self, is_warm, seconds=WAIT_S):
        """Starts it as a standby, until it waits, or has the pool in memory."""
        self.start()
        end = time.monotonic() + seconds
        while ("warm, " if is_warm else "stands by") not in self.output():
            if time.monotonic() > end or self.process.poll() is not None:
                raise Broken(f"{self.name()} does not stand by, exit code {self.process.poll()}: {self.output()}")
            time.sleep(0.01)

    def begin(self, seconds=WAIT_S):
        """Starts it again and again while another owner's lease runs, until it is at work: the transfers that it found. A standby runs."""
        end = time.monotonic() + seconds
        while True:
            if self.process is None or self.command == "run":
                self.start()
            while time.monotonic() < end and self.process.poll() is None:
                if self.has_begun():
                    return self.found
                self.judge()
                time.sleep(0.01)
            self.judge()
            if self.process.poll() == REFUSED and "Nothing is merged" in self.output():
                raise Diverged(f"{self.name()} is refused: {self.output()}")
            if self.process.poll() != IN_USE or self.command == "standby" or time.monotonic() > end:
                raise Broken(f"{self.name()} has not begun after {seconds} s, exit code {self.process.poll()}: {self.output()}")
            time.sleep(0.05)

    def has_begun(self):
        if self.program.sound.search(self.output()):
            self.found = int(self.program.start.search(self.output()).group(1))
        return self.found is not None

    def promise(self):
        """(epoch, transfers) that every later start must find."""
        return self.floor or self.last()

    def name(self):
        return f"owner {self.history.owners.index(self)} on {self.machine.name}"

    def output(self):
        return self.output_path.read_text(errors="replace") if self.output_path.exists() else ""

    def judge(self):
        text = self.output()
        refused = re.findall(r"^refused: (.*)", text, re.MULTILINE)
        strange = [reason for reason in refused if str(self.pool) not in reason and self.history.pool not in reason]
        if "BROKEN" in text or "LOST" in text or strange:
            raise Broken(f"{self.name()}: {text}")

    def last(self):
        """(epoch, transfers) of its newest acknowledgement."""
        return self.program.last(self.acknowledgements)

    def told(self):
        """How often it was told that something is durable."""
        return self.program.told(self.acknowledgements)

    def await_acknowledgements(self, count=2, seconds=WAIT_S):
        """Waits until it is told of so many more epochs: how long that took."""
        begin = time.monotonic()
        for _ in range(count):
            before = self.told()
            while self.told() <= before:
                if self.process.poll() is not None:
                    raise Broken(f"{self.name()} has ended with exit code {self.process.returncode}: {self.output()}")
                if time.monotonic() - begin > seconds:
                    raise Broken(f"{self.name()} is told of nothing new within {seconds} s; the last epoch is {self.last()[0]}")
                time.sleep(0.005)
        return time.monotonic() - begin

    def must_end_shut_out(self, seconds=WAIT_S):
        """Another process owns the pool: it ends, says so, and acknowledges nothing."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.name()} goes on for {seconds} s after it was shut out; the last epoch it was told of is {self.last()[0]}") from None
        self.judge()
        if code != IN_USE:
            raise Broken(f"{self.name()} was shut out and ends with exit code {code}, not {IN_USE}: {self.output()}")

    def kill_program(self):
        """Only the process of the program; what it started lives as long as it wants."""
        if self.process.poll() is None:
            os.kill(self.machine.program_of(self.process), signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Whatever became of it, also while it stands still."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def kill_machine(self):
        """The program, and all that it started."""
        if self.machine.first:
            self.machine.kill()
            self.process.wait()
        else:
            self.kill_program()


class History:
    """All owners of one pool, in the order of their starts."""

    def __init__(self, program, pool, folder, binaries, environment):
        self.program, self.pool, self.folder, self.binaries, self.environment = program, pool, folder, binaries, environment
        self.owners = []
        folder.mkdir(parents=True)

    def judge(self):
        """Whatever an owner was told before its successor began, or at any time afterwards, the successor found."""
        for owner in self.owners:
            owner.judge()
        begun = [owner for owner in self.owners if owner.found is not None]
        for earlier, later in zip(begun, begun[1:]):
            epoch, transfers = earlier.promise()
            if transfers > later.found:
                raise Broken(f"{earlier.name()} was told that epoch {epoch} with {transfers} transfers is durable; "
                             f"{later.name()} found {later.found}")
            if later.found < earlier.found:
                raise Broken(f"{earlier.name()} found {earlier.found} transfers, {later.name()} after it {later.found}")
            wrong = "" if earlier.floor else self.program.contradiction(earlier.acknowledgements, later.acknowledgements)
            if wrong:
                raise Broken(f"{earlier.name()} and {later.name()} after it: {wrong}")

    def end(self):
        """No process of it is left."""
        for owner in self.owners:
            owner.end()

    def promised_epoch(self):
        return max((owner.promise()[0] for owner in self.owners), default=0)
