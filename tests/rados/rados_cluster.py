"""A cluster for the tests of one file, and programs that have pools in it. Run as a program's first import: it ends with 77 where Ceph is
not installed, or where the tests have no script for a cluster."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["STILLPOINT_BUILD"])
TOOL = BUILD / "bin" / "stillpoint"
AGENT = BUILD / "bin" / "stillpoint-rados-agent"
BANK = BUILD / "bin" / "bank"
SKIPPED = 77
CEPH_POOL = "stillpoint"

sys.path[:0] = [str(SOURCE / "tests" / "cluster"), str(SOURCE / "tests")]
try:
    import cluster as clusters
except ImportError:
    print("rados: skipped: tests/cluster has no script that starts a cluster")
    sys.exit(SKIPPED)
if clusters.missing_packages():
    print("rados: skipped: not installed: " + " ".join(clusters.missing_packages()))
    sys.exit(SKIPPED)

from support.rados_pool import RadosPool  # noqa: E402  (the path must be set first)


def processes_with(configuration, name):
    """The processes of that name whose environment names this cluster: other tests may have their own."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.path.basename(words[0]).decode(errors="replace") == name and f"CEPH_CONF={configuration}".encode() in environment:
            found.append(int(folder.name))
    return found


class Bank:
    """examples/bank at work on a pool; acknowledged transfers go to a file."""

    def __init__(self, case, pool, *options, lease_ms=2000, transfers=1 << 39, environment=None, acknowledged=None,
                 command="run"):
        self.acknowledged = acknowledged or case.folder / f"{time.monotonic_ns()}.ack"
        self.output = case.folder / f"{time.monotonic_ns()}.out"
        words = [TOOL, command, "--pool", str(pool), "--interval", "20ms", "--lease-ms", str(lease_ms), *options, "--", BANK,
                 "--accounts", "500", "--threads", "2", "--transfers", str(transfers), "--acknowledge", self.acknowledged,
                 "--acknowledge-ms", "1"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen([str(word) for word in words], stdout=output, stderr=subprocess.STDOUT,
                                            env=environment or case.environment)
        case.addCleanup(self.kill)

    def text(self):
        return self.output.read_text(errors="replace")

    def lines(self):
        if not self.acknowledged.exists():
            return []
        return [line for line in self.acknowledged.read_text(errors="replace").splitlines(keepends=True) if line.endswith("\n")]

    def wait_for_acknowledgements(self, count=3, seconds=30):
        end = time.monotonic() + seconds
        before = len(self.lines())
        while len(self.lines()) < before + count:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{count} acknowledgements did not come: exit code {self.process.poll()}: {self.text()}")
            time.sleep(0.01)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def end(self, seconds=60):
        return self.process.wait(seconds)


class RadosTest(unittest.TestCase):
    """Each test has a pool's name of its own in a cluster that all tests of the file share."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="rados-", dir=BUILD)
        cls.addClassCleanup(cls.place.cleanup)
        cls.cluster = clusters.Cluster(Path(cls.place.name) / "cluster")
        cls.enterClassContext(cls.cluster) if hasattr(cls, "enterClassContext") else cls.start_cluster()

    @classmethod
    def start_cluster(cls):
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=self.place.name))
        self.environment = {name: value for name, value in self.cluster.environment("client.stillpoint").items()
                            if not name.startswith("STILLPOINT_")}
        self.pool = RadosPool(TOOL, CEPH_POOL, re.sub("[^a-z_]", "", self.id().rsplit(".", 1)[1])[:80], self.environment)

    def stillpoint(self, *words, environment=None, timeout=60):
        return subprocess.run([str(TOOL), *map(str, words)], env=environment or self.environment, capture_output=True, text=True,
                              timeout=timeout, check=False)

    def agents(self):
        return processes_with(self.cluster.configuration, "stillpoint-rados-agent")

    def run_bank(self, *options, transfers=0, **arguments):
        """Runs it to its end."""
        bank = Bank(self, self.pool, *options, transfers=transfers, **arguments)
        code = bank.end()
        return code, bank.text()
