"""A daemon rrdcached that is started, killed and started again, and connections to it."""

import os
import signal
import socket
import subprocess
import time
import weakref

LISTEN_S_MAX = 60  # far beyond what any machine needs
END_S_MAX = 60


class Daemon:
    """One life of a daemon whose files lie in `folder`. `options` are its words after those for the socket and the folder."""

    def __init__(self, program, folder, options=(), environment=None):
        self.address = folder / "socket"
        self.address.unlink(missing_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        self.log = folder / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [program, "-g", "-l", f"unix:{self.address}", "-p", folder / "pid", "-b", folder, *map(str, options)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=kept | (environment or {}))
        give_up = time.monotonic() + LISTEN_S_MAX
        while True:
            try:
                Connection(self).ask("PING")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > give_up:
                    self.end()
                    raise AssertionError(f"rrdcached does not listen: {self.log.read_text()[-2000:]}") from None
                time.sleep(0.002)

    def must_run(self):
        """Fails if the daemon has ended by itself."""
        assert self.process.poll() is None, f"rrdcached has ended with {self.process.returncode}: {self.log.read_text()[-2000:]}"

    def kill(self):
        """SIGKILL: no warning, no handler."""
        self.must_run()
        self.process.kill()
        self.process.wait()

    def close(self):
        """A clean end. Returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S_MAX)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Connection:
    def __init__(self, daemon):
        self.socket = socket.socket(socket.AF_UNIX)
        weakref.finalize(self, self.socket.close)
        self.socket.settimeout(END_S_MAX)
        self.socket.connect(str(daemon.address))
        self.rest = b""

    def line(self):
        while b"\n" not in self.rest:
            more = self.socket.recv(65536)
            if not more:
                raise OSError("rrdcached closed the connection")
            self.rest += more
        found, self.rest = self.rest.split(b"\n", 1)
        return found.decode()

    def ask(self, *words):
        """(status, message, further lines): a negative status is an error, another one counts the lines."""
        self.socket.sendall(" ".join(map(str, words)).encode() + b"\n")
        status, _, message = self.line().partition(" ")
        return int(status), message, [self.line() for _ in range(max(0, int(status)))]

    def batch(self, commands):
        """Returns how many of the commands were refused."""
        status, message, _ = self.ask("BATCH")
        assert status == 0, message
        self.socket.sendall("".join(f"{command}\n" for command in commands).encode())
        return self.ask(".")[0]

    def pending(self, file):
        return self.ask("PENDING", file)[2]
