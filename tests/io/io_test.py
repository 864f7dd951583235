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


class Kills(unittest.TestCase):
    def kill(self, *arguments):
        LOCAL.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="io-", dir=LOCAL) as folder:
            return subprocess.run([sys.executable, "-B", str(KILLS), "--binaries", str(BUILD / "bin"), "--folder", folder, *arguments],
                                  capture_output=True, text=True, check=False, timeout=800)

    def assert_whole(self, *arguments):
        done = self.kill(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("whole", done.stdout)

    def assert_lost(self, *arguments):
        """In each arrangement: a limit that the documents name."""
        done = self.kill(*arguments)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertNotIn("whole", done.stdout)
        for line in done.stdout.splitlines():
            self.assertRegex(line, r"FAILED: epoch \d+: [1-9]\d* of \d+ pages are stale")


class ReadsIntoDurableMemory(Kills):
    def test_by_a_device_are_in_the_epoch_that_was_acknowledged(self):
        self.assert_whole("--ways", "pread-direct,preadv-direct,syscall-direct", "--trackers", "uffd,mprotect,hooks", "--kills", "4")

    def test_by_the_other_calls_that_read_from_a_device_are_too(self):
        self.assert_whole("--ways", "read-direct,readv-direct,preadv2-direct", "--trackers", "uffd,mprotect", "--kills", "3")
        self.assert_whole("--ways", "read-direct,readv-direct,preadv2-direct", "--trackers", "pronto", "--calls", "20")

    def test_by_a_device_outside_sections_are_in_the_checkpoint_after_them(self):
        self.assert_whole("--ways", "pread-direct", "--trackers", "uffd,mprotect,pronto,respct", "--calls", "40")

    def test_by_requests_that_come_back_later_are_followed(self):
        self.assert_whole("--ways", "uring,uring-fixed,kernel-aio,aio-direct", "--trackers", "uffd", "--kills", "5")
        self.assert_whole("--ways", "aio-direct", "--trackers", "mprotect,pronto", "--calls", "40")

    def test_by_the_kernel_neither_fail_nor_are_short(self):
        self.assert_whole("--ways", "pread,fread,recv,recvmsg,recvmmsg", "--trackers", "mprotect,pronto", "--calls", "150")


class StoresByAnotherProcess(Kills):
    """By process_vm_writev or, as debuggers do, by /proc/PID/mem: what each tracker and engine makes of it. No checkpoint comes in
    between: with uffd one may lose pages, by chance."""

    ONCE = ("--calls", "20", "--interval-ms", "3600000")

    def test_are_found_with_uffd_by_the_checkpoint_after_them(self):
        self.assert_whole("--ways", "process_vm_writev,ptrace", "--trackers", "uffd", *self.ONCE)

    def test_by_process_vm_writev_fail_where_pages_are_protected(self):
        for tracker in ("mprotect", "pronto"):
            done = self.kill("--ways", "process_vm_writev", "--trackers", tracker, *self.ONCE)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"process_vm_writev: -?\d+ of \d+ bytes \((Bad address|short)\)")

    def test_by_a_debuggers_way_are_lost_where_pages_are_protected(self):
        self.assert_lost("--ways", "ptrace", "--trackers", "mprotect,pronto", *self.ONCE)

    def test_are_lost_where_stores_are_told_and_nobody_tells(self):
        self.assert_lost("--ways", "process_vm_writev,ptrace", "--trackers", "hooks,respct", *self.ONCE)


if __name__ == "__main__":
    unittest.main()
