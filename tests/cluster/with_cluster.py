"""The shared part of the tests that need a Ceph cluster: one for all of a file, skipped with a message where Ceph is not installed."""


import argparse
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

    def rounds_by_a_seed(self, program, rounds):
        """A few rounds of a program of this folder, on a cluster of its own: for at most 25 seconds, and nothing may be lost."""
        words = [sys.executable, "-B", Path(__file__).with_name(program), "--rounds", rounds, "--seconds", 25, "--seed", 20,
                 "--binaries", BUILD / "bin", "--folder", self.folder / "rounds"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("nothing lost", done.stdout)
        print(done.stdout)

    def rounds_options(self, name):
        """As a test begins rounds itself, on the cluster of the file, with the program that is quickest."""
        folder = self.folder / name
        folder.mkdir()
        return argparse.Namespace(rounds=1, seconds=0, seed=1, first_pool=1, program="bank", only=None, binaries=BUILD / "bin",
                                  folder=folder, verbose=False)

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
