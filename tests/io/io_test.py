"""Reads into durable memory by the ways that the kernel has, killed: each chunk holds what was read, and no call fails or is short. A
short form of io_kills.py, of which the old library failed every part for its tracker."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

KILLS = Path(__file__).with_name("io_kills.py")
BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parents[2] / "build"))
LOCAL = BUILD / "tmp"  # On the disk: a file system in memory may have no direct I/O.


class ReadsIntoDurableMemory(unittest.TestCase):
    def assert_whole(self, *arguments):
        LOCAL.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="io-", dir=LOCAL) as folder:
            done = subprocess.run([sys.executable, "-B", str(KILLS), "--binaries", str(BUILD / "bin"), "--folder", folder, *arguments],
                                  capture_output=True, text=True, check=False, timeout=800)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("whole", done.stdout)

    def test_by_a_device_are_in_the_epoch_that_was_acknowledged(self):
        self.assert_whole("--ways", "pread-direct,preadv-direct,syscall-direct", "--trackers", "uffd,mprotect,hooks", "--kills", "4")

    def test_by_a_device_outside_sections_are_in_the_checkpoint_after_them(self):
        self.assert_whole("--ways", "pread-direct", "--trackers", "uffd,mprotect,pronto,respct", "--calls", "40")

    def test_by_requests_that_come_back_later_are_followed(self):
        self.assert_whole("--ways", "uring,uring-fixed,kernel-aio,aio-direct", "--trackers", "uffd", "--kills", "5")
        self.assert_whole("--ways", "aio-direct", "--trackers", "mprotect,pronto", "--calls", "40")

    def test_by_the_kernel_neither_fail_nor_are_short(self):
        self.assert_whole("--ways", "pread,fread,recv,recvmsg,recvmmsg", "--trackers", "mprotect,pronto", "--calls", "150")


if __name__ == "__main__":
    unittest.main()
