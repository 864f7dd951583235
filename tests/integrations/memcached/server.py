"""A memcached server that is started, killed and started again."""

import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

HOST = "127.0.0.1"
LISTEN_S_MAX = 60  # from exec to the first accepted connection: far beyond what any machine needs
END_S_MAX = 60
POLL_S = 0.001


class ServerFailed(Exception):
    """The server did not start, or ended by itself; the message has what it printed."""


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Server:
    """One life of a server.

    `options` are its words after those for port, address and user. With a pool it is durable, and `pool_options` are the
    runtime's (`interval_ms=100 durability=process`), or None for a server that takes none; without a pool it is as Debian's.
    `environment` is added to its own.
    """

    def __init__(self, path, options=(), pool=None, pool_options="interval_ms=100 durability=process", stderr=None,
                 environment=None):
        self.path, self.pool = Path(path), pool
        self.port = free_port()
        self.began = self.listening = None  # monotonic seconds
        self.kept_stderr = stderr
        self.log = []
        words = [str(path), "-l", HOST, "-p", str(self.port), "-U", "0", "-u", "root", *map(str, options)]
        if pool:
            words += ["-o", f"pool={pool}"]
        if pool and pool_options is not None:
            words += ["-o", f"pool_options={pool_options}"]
        self.words = words
        self.environment = environment or {}
        self.process = None

    def start(self):
        """Returns when it accepts connections. Raises ServerFailed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        environment |= self.environment
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env=environment)
        threading.Thread(target=self.read_stderr, args=(self.process.stderr,), daemon=True).start()
        return self

    def wait_until_it_listens(self):
        give_up = self.began + LISTEN_S_MAX
        while True:
            if self.process.poll() is not None:
                raise ServerFailed(f"{self.path.name} ended with {self.process.returncode} before it listened: {self.stderr()}")
            try:
                socket.create_connection((HOST, self.port), 1).close()
            except OSError:
                if time.monotonic() > give_up:
                    self.kill()
                    raise ServerFailed(f"{self.path.name} did not listen after {LISTEN_S_MAX} s: {self.stderr()}") from None
                time.sleep(POLL_S)
                continue
            self.listening = time.monotonic()
            return self

    def read_stderr(self, pipe):
        with pipe:
            for line in pipe:
                self.log.append(line.decode(errors="replace"))

    def stderr(self):
        """The output so far; the last lines, where that is much."""
        return "".join(self.log[-20:]).strip()

    @property
    def address(self):
        return (HOST, self.port)

    def runs(self):
        return self.process.poll() is None

    def kill(self):
        """SIGKILL: no warning, no handler. Returns the monotonic time just before. Raises ServerFailed if it had ended by itself."""
        ran = self.runs()
        moment = time.monotonic()
        if ran:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if not ran or self.process.returncode != -signal.SIGKILL:
            raise ServerFailed(f"{self.path.name} had ended by itself with {self.process.returncode}: {self.stderr()}")
        return moment

    def close(self, word=signal.SIGTERM):
        """A clean close. Returns the exit code."""
        if self.runs():
            os.kill(self.process.pid, word)
        try:
            self.process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise ServerFailed(f"{self.path.name} did not end {END_S_MAX} s after a signal: {self.stderr()}") from None
        return self.process.returncode

    def __enter__(self):
        return self.start().wait_until_it_listens()

    def __exit__(self, *_):
        if self.runs():
            self.process.kill()
        self.process.wait()
