"""One measured process (bench/worker/worker.cpp, bench/harness/commands.hpp): told what to do line by line, each answer a JSON object on a line."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time

from .errors import WorkerFailed

ANSWER_LIMIT_S = 600
SAID_BYTES = 2000


def how_it_ended(code, said):
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"ended with {how}: {said.strip() or 'it said nothing'}"


class Process:
    """A process that has its data and has given its first answer. `name`: what an error calls it."""

    def __init__(self, name, words, environment=None):
        self.name = name
        self.pending = b""
        self.began_ns = time.monotonic_ns()
        # A group of its own: Ctrl-C reaches the driver, which ends the processes itself.
        # A file, not a pipe: a process that says much must not wait for a reader.
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said,
                                        bufsize=0, env={**os.environ, **(environment or {})}, start_new_session=True)
        try:
            self.ready = self._answer()
        except BaseException:
            self.destroy()
            raise

    @property
    def first_operation_ns(self):
        """From the start of the process to the end of its first operation."""
        return self.ready["first_operation_ns"] - self.began_ns

    def _answer(self):
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise WorkerFailed(f"the worker of \"{self.name}\" gave no answer for {ANSWER_LIMIT_S} s")
            some = os.read(self.process.stdout.fileno(), 1 << 16)
            if not some:
                raise WorkerFailed(self._how_it_ended())
            self.pending += some
        line, self.pending = self.pending.split(b"\n", maxsplit=1)
        return json.loads(line)

    def _how_it_ended(self):
        code = self.process.wait()
        self.said.seek(max(0, self.said.seek(0, os.SEEK_END) - SAID_BYTES))
        return f"the worker of \"{self.name}\" {how_it_ended(code, self.said.read().decode(errors='replace'))}"

    def ask(self, command, *words):
        try:
            self.process.stdin.write((" ".join(map(str, (command, *words))) + "\n").encode())
        except BrokenPipeError:
            raise WorkerFailed(self._how_it_ended()) from None
        return self._answer()

    def slice(self, milliseconds, timed=False):
        return self.ask("timed" if timed else "slice", int(milliseconds * 1e6))

    def end(self):
        """Ends it normally, with its last checkpoint, and raises WorkerFailed if it found its data wrong."""
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise WorkerFailed(self._how_it_ended())
        self._close()

    def kill(self):
        """SIGKILL, as a crash comes. Returns the monotonic time in ns just before."""
        moment_ns = time.monotonic_ns()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close()
        return moment_ns

    def _close(self):
        for stream in (self.process.stdin, self.process.stdout, self.said):
            if stream and not stream.closed:
                stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def destroy(self):
        """After a failure: no process is left."""
        if self.process.poll() is None:
            self.kill()
        self._close()
