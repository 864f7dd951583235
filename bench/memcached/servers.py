"""The servers: how they are started, what they use, how they end. Nothing outlives the driver."""

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from driver.errors import BenchError, Unavailable
from driver.sides import ROOT

from .command_line import BUILD_REMEDY

FLAGS = ["-m", "1024", "-t", "2", "-c", "1024", "-U", "0", "-l", "127.0.0.1"]
START_SECONDS = 60
END_SECONDS = 60
SETTLE_SECONDS = 5
BLOCK_BYTES = 512


@dataclasses.dataclass(frozen=True)
class Kind:
    """A program, and how it keeps its items: durability None is a server without a pool, interval_ms None one without checkpoints."""

    name: str
    program: Path
    durability: str = None
    interval_ms: int = None
    pool_options: str = ""

    @property
    def is_stock(self):
        return self.durability is None

    @property
    def has_checkpoints(self):
        return self.interval_ms is not None

    def facts(self):
        return {"name": self.name, "engine": self.name, "kind": "volatile" if self.is_stock else "engine",
                "program": shown_path(self.program), "interval_ms": self.interval_ms, "durability": self.durability}


def shown_path(path):
    """From the project's folder where it lies there."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server that answers. `folder`: of its own, for its pool and its messages."""

    def __init__(self, kind, folder, tool):
        self.kind, self.tool = kind, tool
        self.folder = folder
        self.pool = None if kind.is_stock else folder / "cache.pool"
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        began_ns = time.monotonic_ns()
        self.messages = (folder / "messages").open("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(self.words(), stdin=subprocess.DEVNULL, stdout=self.messages, stderr=subprocess.STDOUT)
        try:
            self.wait_for_answer()
        except BaseException:
            self.destroy()
            raise
        self.start_ns = time.monotonic_ns() - began_ns

    def words(self):
        words = [str(self.kind.program), *FLAGS, "-p", str(self.port)]
        if os.geteuid() == 0:
            words += ["-u", "root"]
        if self.pool:
            words += ["-o", f"pool={self.pool}"]
        if self.kind.has_checkpoints:
            options = f"interval_ms={self.kind.interval_ms} durability={self.kind.durability} {self.kind.pool_options}".strip()
            words += ["-o", f"pool_options={options}"]
        keeper = shutil.which("setpriv")  # it dies with the driver, also where that is killed
        return ([keeper, "--pdeathsig", "KILL"] if keeper else []) + words

    def wait_for_answer(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self.messages.seek(0)
                raise BenchError(f"{self.kind.program} ended with exit code {self.process.returncode}: "
                                 f"{self.messages.read().strip() or 'it said nothing'}", 70)
            try:
                self.ask("version")
                return
            except OSError:
                time.sleep(0.02)
        raise BenchError(f"{self.kind.program} did not answer within {START_SECONDS} s", 70)

    def ask(self, command):
        """The reply's lines up to END, or the one line of a short reply."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(command.encode() + b"\r\n")
            reply = b""
            while not reply.endswith(b"END\r\n") and not (reply.startswith(b"VERSION") and reply.endswith(b"\r\n")):
                more = connection.recv(65536)
                if not more:
                    raise OSError("the server closed the connection")
                reply += more
        return reply.decode(errors="replace").splitlines()

    def facts(self):
        """`stats` as a dictionary of texts."""
        return dict(line.split(" ", 2)[1:] for line in self.ask("stats") if line.startswith("STAT "))

    def statistics(self):
        """The statistics of its runtime; None: it has none."""
        return self.tool.stats(self.pool) if self.pool else None

    def settle(self):
        """Waits until what was written is durable: no checkpoint of this server shall run in another's slice."""
        if not self.kind.has_checkpoints:
            return
        first = self.statistics()
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            now = self.statistics()
            is_idle = now["empty_checkpoints"] > first["empty_checkpoints"] and now["durable_epoch"] + 1 >= now["epoch"]
            if now["durable_epoch"] >= first["epoch"] or is_idle:
                return
            time.sleep(min(0.02, self.kind.interval_ms / 1000))

    def cpu_ns(self):
        """CPU time of all its threads."""
        total = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue  # it has just ended
        return total

    def memory(self):
        """Bytes, of the process, and on the medium."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        rollup = dict(line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()[1:])
        kib = lambda text: int(text.split()[0]) * 1024  # noqa: E731  (three uses, and only here)
        files = [one.stat() for one in self.folder.iterdir() if one.name != "messages"] if self.pool else []
        return {"resident_bytes": kib(status["VmRSS"]), "resident_bytes_max": kib(status["VmHWM"]),
                "anonymous_bytes": kib(rollup["Anonymous"]), "disk_bytes": sum(one.st_blocks * BLOCK_BYTES for one in files),
                "file_bytes": sum(one.st_size for one in files)}

    def end(self):
        """A clean end: a last checkpoint. Raises BenchError if it is none."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.destroy()
            raise BenchError(f"{self.kind.program} did not end within {END_SECONDS} s of SIGTERM", 70) from None
        self.messages.close()
        if code not in (0, -signal.SIGTERM):
            raise BenchError(f"{self.kind.program} ended with exit code {code}", 70)

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.messages.close()


def stock_program(wanted):
    """The build without Stillpoint, of the same compiler and flags; otherwise the system's."""
    if wanted.is_file():
        return wanted
    found = shutil.which("memcached")
    if not found:
        raise Unavailable(f"there is neither {wanted} nor a memcached in PATH", f"{BUILD_REMEDY}, or apt-get install memcached")
    return Path(found)
