"""Kernels and containers that lack something: the tracker `auto` does without, and what was forced is refused with the reason."""

import errno
import os
import unittest

from faulty_runs import BUILD, CLEAN, CRASHED, FRESH, LAUNCHER, FaultyRun


class KernelThatLacks(FaultyRun):
    def setUp(self):
        super().setUp()
        if self.stillpoint("userfaultfd", errno.EPERM, "/bin/true", tool=LAUNCHER).returncode != 0:
            self.skipTest("seccomp filters cannot be installed here")

    def assert_falls_back(self, lack, answer):
        launcher = (lack, answer)
        done = self.run_program("end", "null", launcher=launcher)
        self.assertEqual((done.returncode, done.stdout), (-11, f"start {FRESH} count 0\n"), done.stderr)
        self.assertIn("tracker mprotect", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = self.run_program("commits", "3", launcher=launcher)
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, f"start {CRASHED} count 1"), done.stderr)
        self.assertIn("tracker mprotect", done.stderr)
        self.assert_starts(CLEAN, 4, launcher=launcher)

    def assert_forced_is_refused(self, lack, answer, *messages):
        """Before the program starts; the pool is not touched, and was not opened as far as the next run can tell."""
        launcher = (lack, answer)
        done = self.assert_untouched_by(self.pool, lambda: self.run_program(options={"--tracker": "uffd"}, launcher=launcher))
        self.assert_refused(done, 69, "use the tracker mprotect", *messages)
        self.assert_starts(CLEAN, 4, launcher=launcher)

    def test_userfaultfd_for_want_of_permission(self):
        self.assert_falls_back("userfaultfd", errno.EPERM)
        self.assert_forced_is_refused("userfaultfd", errno.EPERM, "userfaultfd", os.strerror(errno.EPERM))

    def test_userfaultfd_at_all(self):
        self.assert_falls_back("userfaultfd", errno.ENOSYS)
        self.assert_forced_is_refused("userfaultfd", errno.ENOSYS, "userfaultfd", os.strerror(errno.ENOSYS))

    def test_the_scan_of_the_page_map(self):
        self.assert_falls_back("pagemap_scan", errno.ENOTTY)
        if "uffd" not in self.trackers():
            self.skipTest("there is no userfaultfd here, which is missed first")
        self.assert_forced_is_refused("pagemap_scan", errno.ENOTTY, "PAGEMAP_SCAN", "Linux 6.7")

    def test_io_uring_at_all_or_from_some_moment_on(self):
        for lack in (errno.ENOSYS, errno.EPERM):
            options = {"--medium": "file", "--durability": "power"}
            self.pool.unlink(missing_ok=True)
            done = self.run_program("commits", "3", options=options, launcher=("io_uring_setup", lack))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("pwritev", done.stderr)
            self.assert_starts(CLEAN, 3, options=options)
        self.pool.unlink()
        self.program = BUILD / "bin/faults_files"
        done = self.run_program("refuse io_uring", options=options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("result 0"), 4, done.stdout)
        self.assert_starts(CLEAN, 4, options=options)


if __name__ == "__main__":
    unittest.main()
