"""Calls whose results the kernel stores into durable memory: none fails, and what is stored is in the next checkpoint, with every tracker."""

import os
import signal
import subprocess
import tempfile
import unittest

BUILD = os.environ["STILLPOINT_BUILD"]
TOOL = os.path.join(BUILD, "bin", "stillpoint")
PROGRAM = os.path.join(BUILD, "bin", "interpose_kernel_stores")


class KernelStores(unittest.TestCase):
    def test_of_every_call_are_followed_by_every_tracker(self):
        for choice in (("--tracker", "uffd"), ("--tracker", "mprotect"), ("--tracker", "hooks"), ("--engine", "pronto")):
            with self.subTest(choice=choice), tempfile.TemporaryDirectory() as folder:
                words = [TOOL, "run", "--quiet", "--pool", "p", "--pool-max", "64M", "--durability", "process", "--interval", "1h", *choice,
                         "--", PROGRAM]
                for code, said in ((-signal.SIGKILL, ""), (0, " calls\n")):
                    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                                          check=False)
                    self.assertEqual((done.returncode, done.stdout.count("\n")), (code, said.count("\n")), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
