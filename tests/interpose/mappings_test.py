"""Calls that would map over durable memory, take it away or blind the tracker are refused, with every engine and tracker; nothing is lost."""

import os
import signal
import subprocess
import tempfile
import unittest

BUILD = os.environ["STILLPOINT_BUILD"]
TOOL = os.path.join(BUILD, "bin", "stillpoint")
PROGRAM = os.path.join(BUILD, "bin", "interpose_mappings")
CALLS = ["madvise", "mmap with MAP_FIXED", "mprotect", "mremap or remap_file_pages", "mseal", "munmap", "shmat with SHM_REMAP"]


class Mappings(unittest.TestCase):
    def test_over_durable_memory_are_refused_and_lose_nothing(self):
        for choice in (("--tracker", "uffd"), ("--tracker", "mprotect"), ("--tracker", "hooks"), ("--engine", "pronto"),
                       ("--engine", "respct")):
            with self.subTest(choice=choice), tempfile.TemporaryDirectory() as folder:
                words = [TOOL, "run", "--quiet", "--pool", "p", "--pool-max", "64M", "--durability", "process", "--interval", "1h", *choice,
                         "--", PROGRAM]
                done = self.run_in(folder, words)
                self.assertEqual((done.returncode, done.stdout), (-signal.SIGKILL, ""), done.stderr)
                told = sorted(line.split(": error: ")[1].split(" of 0x")[0] for line in done.stderr.splitlines() if "(EPERM)" in line)
                self.assertEqual(told, CALLS)  # each kind once
                done = self.run_in(folder, words)
                self.assertEqual((done.returncode, done.stdout.count("\n"), done.stderr), (0, 1, ""), done.stdout)

    def run_in(self, folder, words):
        return subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)


if __name__ == "__main__":
    unittest.main()
