"""The two clients: our own generator, and memaslap of libmemcached-tools."""

import json
import re
import shutil
import subprocess
from pathlib import Path

from driver.build import make_sure_of
from driver.errors import UNAVAILABLE, BenchError, WorkerFailed

WARM_UP_SECONDS = 0.3
LOADING_PIPELINE = 8
# The time that the client may take beyond the seconds that it was asked for.
PATIENCE_SECONDS = 120


class Generator:
    """memcached_load_generator, with what is the same in every run of it."""

    def __init__(self, options):
        self.program = options.binaries / "memcached_load_generator"
        make_sure_of([self.program])
        if not self.program.is_file():
            raise BenchError(f"{self.program} is missing: build first (make)", 69)
        self.settings = {"keys": options.keys, "value_bytes": options.value_bytes, "connections": options.connections,
                         "protocol": options.protocol}
        self.is_zipf = int(options.zipf)
        self.warm_up_seconds = min(WARM_UP_SECONDS, options.slice / 2)

    def run(self, server, mode, may_fall_behind=False, **settings):
        settings = {"port": server.port, "mode": mode, **self.settings, **settings}
        command = [str(self.program), *(f"{name}={value}" for name, value in settings.items())]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise WorkerFailed(f"the client of \"{server.kind.name}\" did not end within {PATIENCE_SECONDS} s") from None
        if done.returncode == UNAVAILABLE and may_fall_behind and done.stdout:
            return json.loads(done.stdout)
        if done.returncode != 0:
            raise WorkerFailed(f"the client of \"{server.kind.name}\" ended with exit code {done.returncode}: "
                               f"{(done.stderr or done.stdout).strip()[-300:]}")
        return json.loads(done.stdout)

    def load(self, server):
        return self.run(server, "load", pipeline=LOADING_PIPELINE)

    def check(self, server):
        """Reads every key: each must be there, and whole."""
        return self.run(server, "check", pipeline=LOADING_PIPELINE)

    def closed(self, server, reads, seconds, seed, pipeline=1):
        return self.run(server, "closed", zipf=self.is_zipf, reads=reads, seconds=seconds, warm_up=self.warm_up_seconds, seed=seed,
                        pipeline=pipeline)

    def open(self, server, reads, seconds, seed, rate):
        """The result says "behind" of a server that does not keep up."""
        return self.run(server, "open", zipf=self.is_zipf, reads=reads, seconds=seconds, warm_up=self.warm_up_seconds, seed=seed,
                        rate=f"{rate:.0f}", histogram=1, may_fall_behind=True)


class Memaslap:
    """Asks the same as our client, and is not ours. Debian names it memcaslap."""

    REMEDY = "apt-get install libmemcached-tools"

    def __init__(self, options, folder):
        self.program = shutil.which("memcaslap") or shutil.which("memaslap")
        self.options = options
        self.folder = Path(folder)

    @property
    def is_here(self):
        return self.program is not None

    def closed(self, server, reads, seconds):
        """A throughput in the shape of the generator's."""
        settings = self.folder / "memaslap.cnf"
        settings.write_text(f"key\n16 16 1\nvalue\n{self.options.value_bytes} {self.options.value_bytes} 1\n"
                            f"cmd\n0 {1 - reads / 100:.2f}\n1 {reads / 100:.2f}\n", encoding="utf-8")
        words = [self.program, "-s", f"127.0.0.1:{server.port}", "-T", "1", "-c", str(self.options.connections), "-F", str(settings),
                 "-t", f"{max(1, round(seconds))}s", "-w", "10k"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE_SECONDS)
        rate = re.search(r"Ops: (\d+) TPS: (\d+)", done.stdout)
        if done.returncode != 0 or not rate:
            raise WorkerFailed(f"{self.program} against \"{server.kind.name}\": exit code {done.returncode}: {done.stdout.strip()[-200:]}")
        return {"operations": int(rate[1]), "rate_per_s": float(rate[2]), "requests_in_all": int(rate[1]), "updates_in_all": None}
