"""One measured process (bench/worker/worker.cpp has its commands)."""

import json
import os
import select
import signal
import subprocess
import time

from .errors import WorkerFailed

ANSWER_LIMIT_S = 600


class Worker:
    """A worker that has its data and has done one operation. `restarted`: its pool was there already."""

    def __init__(self, installation, configuration, workload, settings, pool):
        self.configuration = configuration
        words, environment = installation.words(configuration, workload, settings, pool)
        self.words = words
        self.began_ns = time.monotonic_ns()
        # A group of its own: Ctrl-C reaches the driver, which ends the workers itself.
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                                        env={**os.environ, **environment}, start_new_session=True)
        self.pending = b""
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
                raise WorkerFailed(f"the worker of \"{self.configuration.name}\" gave no answer for {ANSWER_LIMIT_S} s")
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
        return f"the worker of \"{self.configuration.name}\" ended with {how}: {said or 'it said nothing'}"

    def ask(self, command):
        try:
            self.process.stdin.write(command.encode() + b"\n")
        except BrokenPipeError:
            raise WorkerFailed(self._how_it_ended()) from None
        return self._answer()

    def slice(self, milliseconds, timed=False):
        return self.ask(f"{'timed' if timed else 'slice'} {int(milliseconds * 1e6)}")

    def end(self):
        """Ends it normally, and raises WorkerFailed if it found its data wrong."""
        fault = self.ask("end")["fault"]
        self.process.stdin.close()
        self.process.wait()
        self._close()
        if fault:
            raise WorkerFailed(f"\"{self.configuration.name}\" gave a wrong result: {fault}")

    def kill(self):
        """SIGKILL, as a crash comes. Returns the monotonic time in ns just before."""
        moment_ns = time.monotonic_ns()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close()
        return moment_ns

    def _close(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream and not stream.closed:
                stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def destroy(self):
        """After a failure: no process is left behind."""
        if self.process.poll() is None:
            self.kill()
        self._close()
