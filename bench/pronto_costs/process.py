"""One measured process (pronto_costs/commands.hpp): started with settings, told what to do line by line."""

import json
import os
import select
import signal
import subprocess
import time

from driver.errors import WorkerFailed

ANSWER_LIMIT_S = 300


class Process:
    """A process that has given its first answer. `name`: what an error calls it."""

    def __init__(self, name, words, environment=None, answer_limit_s=ANSWER_LIMIT_S):
        self.name = name
        self.answer_limit_s = answer_limit_s
        self.pending = b""
        self.began_ns = time.monotonic_ns()
        # A group of its own: Ctrl-C reaches the driver, which ends the processes itself.
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        bufsize=0, env={**os.environ, **(environment or {})}, start_new_session=True)
        try:
            self.ready = self._answer()
        except BaseException:
            self.destroy()
            raise

    def _answer(self):
        deadline = time.monotonic() + self.answer_limit_s
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise WorkerFailed(f"\"{self.name}\" gave no answer for {self.answer_limit_s} s")
            some = os.read(self.process.stdout.fileno(), 1 << 16)
            if not some:
                raise WorkerFailed(self._how_it_ended())
            self.pending += some
        line, self.pending = self.pending.split(b"\n", maxsplit=1)
        return json.loads(line)

    def _how_it_ended(self):
        code = self.process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = self.process.stderr.read().decode(errors="replace").strip()
        return f"\"{self.name}\" ended with {how}: {said or 'it said nothing'}"

    def ask(self, command, *numbers):
        try:
            self.process.stdin.write((" ".join([command, *map(str, numbers)]) + "\n").encode())
        except BrokenPipeError:
            raise WorkerFailed(self._how_it_ended()) from None
        return self._answer()

    def end(self):
        """Ends it normally, so that it takes its last snapshot."""
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise WorkerFailed(self._how_it_ended())
        self._close()

    def kill(self):
        """As a crash comes: no warning, no handler."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close()

    def _close(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream and not stream.closed:
                stream.close()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure is None and self.process.poll() is None:
            self.end()
        self.destroy()

    def destroy(self):
        """After a failure: no process is left behind."""
        if self.process.poll() is None:
            self.kill()
        self._close()
