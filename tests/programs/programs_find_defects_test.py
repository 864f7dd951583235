"""Programs that find nothing prove something only if they would find something: with a rule broken on purpose the driver must
say so, reduce the program, and print the command that repeats it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs.py")
BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class ProgramsFindDefects(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="programs-", dir=BUILD))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_programs(self, *words):
        return subprocess.run([sys.executable, "-B", str(PROGRAMS), "--binaries", str(BUILD / "bin"), "--folder",
                               str(self.folder / "made"), "--json", str(self.folder / "figures.json"), *words],
                              capture_output=True, text=True, check=False, timeout=600)

    def assert_found(self, defect, message, only="file-process-uffd,file-process-mprotect"):
        done = self.run_programs("--defect", defect, "--only", only, "--seed", "7",
                                 "--seconds", "120", "--minimise-s", "6")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        findings = json.loads((self.folder / "figures.json").read_text())["findings"]
        self.assertRegex(findings[0]["finding"], message)
        self.assertIn(f"--defect {defect}", findings[0]["command"])
        whole, reduced = Path(findings[0]["program"]), Path(findings[0]["minimal"])
        self.assertLessEqual(len(reduced.read_text()), len(whole.read_text()), done.stdout)

    def test_a_store_after_the_section(self):
        self.assert_found("torn", "program: ")

    def test_an_acknowledgement_that_comes_too_early(self):
        self.assert_found("early", "is lost|was acknowledged")

    def test_a_store_that_is_not_told(self):
        self.assert_found("untold", "an entry of a log", "respct-file-process")

    def test_the_same_seed_makes_the_same_program(self):
        first, second = (self.run_programs("--show", "--seed", "5").stdout for _ in range(2))
        self.assertIn("run_program", first)
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
