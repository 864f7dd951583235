"""The shared part of the tests that need a Ceph cluster: one for all of a file, skipped with a message where Ceph is not installed."""


import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from cluster import Cluster, missing_packages


BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))
TOOL = BUILD / "bin/stillpoint"
SKIPPED = 77


class ClusterTest(unittest.TestCase):
    """`self.cluster` runs, and is active and clean when a test begins."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=BUILD))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.cluster = Cluster(cls.folder)
        cls.enterClassContext(cls.cluster)

    def stillpoint(self, *arguments, user="client.admin", **environment):
        clean = {name: value for name, value in self.cluster.environment().items() if not name.startswith("STILLPOINT_")}
        clean.pop("CEPH_ARGS")
        return subprocess.run([str(word) for word in (TOOL, *arguments)], env={**clean, **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=120)


def main():
    """Runs the tests of the file that calls this."""
    missing = missing_packages()
    if missing:
        print(f"skipped: {', '.join(missing)} not installed; scripts/setup.sh cluster installs what a cluster needs")
        sys.exit(SKIPPED)
    unittest.main()
