"""A soak that finds nothing proves something only if it would find something: given what must not be, it must say so."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import durable_case
import pymemcache_library
from durable_case import BUILD, SERVER

SOAK = Path(__file__).with_name("soak.py")
# Where one moment explains the earlier value that a reading was given, the model believes it, and the next reading of the true state
# contradicts it: the server itself, or what comes back after the next kill.
CONTRADICTED = "at another time|cannot have|no one moment|came back as missing|to its only writer"
FOUND = {
    "no-pool": "the server has no pool",
    "early-ack": "acknowledged epoch is lost",
    "torn": "torn value",
    "resurrected": CONTRADICTED,
    "older": CONTRADICTED,
    "reused-cas": "CAS .* has stood for",
}


class SoakFindsDefects(unittest.TestCase):
    def soak(self, defect, kills):
        with tempfile.TemporaryDirectory(prefix="memcached-defect-", dir=BUILD) as folder:
            words = [sys.executable, "-B", str(SOAK), "--defect", defect, "--kills", str(kills), "--seed", "5", "--limit-s", "40",
                     "--longest-ms", "400", "--no-evict", "--server", str(SERVER), "--folder", f"{folder}/soak"]
            return subprocess.run(words, capture_output=True, text=True, check=False, timeout=150)

    def test_each_defect_is_found_and_named(self):
        for defect, words in FOUND.items():
            with self.subTest(defect):
                done = self.soak(defect, 40)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stderr, words)
                self.assertIn(f"--defect {defect}", done.stderr)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    pymemcache_library.find_or_exit()
    durable_case.main()
