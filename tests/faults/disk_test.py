"""Disks that are full or fail: at creation, at growth, at checkpoints. The pool stays at its last durable epoch."""

import os
import subprocess
import unittest

from faulty_runs import CLEAN, CRASHED, FRESH, TOOL, FaultyRun, facts_of

READ_ONLY = 12  # SP_E_POOL_READ_ONLY


class FullDisk(FaultyRun):
    def test_at_creation_leaves_no_pool(self):
        done = self.run_program(fault="fallocate:ENOSPC@1")
        self.assert_refused(done, 73, "a.pool", "No space left", "free space")
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(self.run_program().returncode, 0)

    def test_at_growth_is_told_to_the_program_which_goes_on(self):
        done = self.run_program("grow", fault="fallocate:ENOSPC@2:always")
        self.assert_growth_refused(done)
        self.assert_starts(CLEAN, 1)

    def test_at_growth_once_lets_the_program_grow_later(self):
        done = self.run_program("grow", fault="fallocate:ENOSPC@2,fallocate:ENOSPC@3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("commit 0\n", done.stdout)
        self.assert_starts(CLEAN, 1)

    def test_that_is_really_full(self):
        disk = self.mount_small_disk("14M")
        for medium in ("file", "memory"):
            with self.subTest(medium=medium):
                options = {"--medium": medium}
                pool = disk / f"{medium}.pool"
                done = self.run_program(pool=pool, options={**options, "--pool-size": "32M"})
                self.assert_refused(done, 73, f"{medium}.pool", "No space left")
                self.assertEqual(os.listdir(disk), [])
                self.assert_growth_refused(self.run_program("grow", pool=pool, options=options))
                self.assert_starts(CLEAN, 1, pool=pool, options=options)
                pool.unlink()

    def mount_small_disk(self, size):
        disk = self.folder / "disk"
        disk.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, check=False)
        if mount.returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        return disk

    def fill_up(self, disk):
        """Returns the file that takes all room that is left."""
        filler = disk / "filler"
        with open(filler, "wb", buffering=0) as file:
            self.assertRaises(OSError, lambda: [file.write(bytes(4096)) for _ in range(40000)])
        return filler

    def filling_twice(self, *how, pool, options=()):
        words = self.words_of_run("fill_twice", *how, pool=pool, options=options)
        program = subprocess.Popen([TOOL, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        return program

    def test_in_memory_at_a_checkpoint_is_waited_for(self):
        disk = self.mount_small_disk("40M")
        for medium in ("file", "memory"):
            with self.subTest(medium=medium):
                pool = disk / "late.pool"
                with self.filling_twice(pool=pool, options={"--medium": medium}) as program:
                    self.assertEqual(program.stdout.readline(), f"start {FRESH} count 0\n")
                    self.assertEqual(program.stdout.readline(), "commit 0\n")
                    filler = self.fill_up(disk)
                    print(file=program.stdin, flush=True)
                    program.stderr.readline()  # The start line.
                    self.assertRegex(program.stderr.readline(), r"^stillpoint: warning: no space .*the program goes on")
                    self.assertIsNone(program.poll())
                    filler.unlink()
                    self.assertEqual(program.stdout.readline(), "commit 0\n")
                    self.assertRegex(program.stderr.read(), "room for a checkpoint again")
                    self.assertEqual(program.wait(), 0)
                self.assert_starts(CLEAN, 2, pool=pool, options={"--medium": medium})
                pool.unlink()

    def test_in_memory_at_the_end_keeps_the_last_epoch(self):
        disk = self.mount_small_disk("40M")
        pool = disk / "late.pool"
        with self.filling_twice("unsaved", pool=pool) as program:
            self.assertEqual([program.stdout.readline() for _ in range(2)], [f"start {FRESH} count 0\n", "commit 0\n"])
            filler = self.fill_up(disk)
            print(file=program.stdin, flush=True)
            self.assertRegex(program.stderr.read(), "error: no space .*stays at epoch")
            self.assertEqual(program.wait(), 0)
        filler.unlink()
        self.assert_starts(CRASHED, 1, pool=pool)

    def test_in_memory_where_all_room_is_taken_cannot_stop_a_checkpoint(self):
        disk = self.mount_small_disk("80M")
        pool = disk / "early.pool"
        self.run_program(pool=pool, options={"--reserve": "all"})
        self.fill_up(disk)
        self.assertIn("some errno 12", self.run_program("grow", pool=pool, options={"--reserve": "all"}).stdout)
        self.assert_starts(CLEAN, 1, pool=pool)

    def assert_growth_refused(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[1], r"^blocks some errno 12 error no space for \d+ more bytes of .*\.pool: .*free space")
        self.assertEqual(lines[2:], ["again ok", "commit 0"], done.stderr)
        self.assertNotIn("error: ", done.stderr)


class FailingDisk(FaultyRun):
    """The n-th write or sync fails, for each n of the start and of the first commits."""

    def assert_survives(self, fault, exit_code, options, *messages):
        """Refused at the start, or stopped at a commit. Returns the last commit that was acknowledged; None: no fault was met."""
        self.pool.unlink(missing_ok=True)
        self.assertEqual(self.run_program("commits", "1", options=options).returncode, 0)
        done = self.run_program("commits", "3", fault=fault, options=options)
        if done.returncode != 0:
            self.assert_refused(done, exit_code, *messages)
            return 1
        commits = facts_of(done, r"^commit (\d+) result (\d+)$")
        acknowledged = max((count for count, result in commits if result == 0), default=1)
        if commits[-1][1] == 0:
            return None if "error: " not in done.stderr else acknowledged
        self.assertEqual(commits[-1][1], READ_ONLY, done.stdout)
        self.assertIn(f"wait {READ_ONLY} checkpoint {READ_ONLY} count {commits[-1][0] + 1}\n", done.stdout)
        self.assert_one_error(done, *messages, "read-only from here on", "last durable state is intact", "stays at epoch")
        self.assertRegex(done.stdout, "error .*a.pool")
        return acknowledged

    def assert_last_commit_stands(self, point, failure, exit_code, text, options=()):
        message = r"writing \d+ bytes at offset \d+ of \S*a\.pool failed" if point == "write" else r"syncing \S*a\.pool \(bytes "
        met_while_running = 0
        for number in range(1, 20):
            with self.subTest(call=number):
                count = self.assert_survives(f"{point}:{failure}@{number}", exit_code, options, message, text)
                if count is None:
                    break
                met_while_running += 1
                after = self.run_program(options=options)
                found = facts_of(after, r"^start (\d) count (-?\d+)$")
                self.assertEqual(after.returncode, 0, after.stderr)
                # The commit whose last write or sync failed may be there, whole, without having been acknowledged.
                self.assertIn(found[0][1], (count, count + 1), after.stdout)
                self.assertIn(found[0][0], (CLEAN, CRASHED))
        self.assertGreater(met_while_running, 2)

    def test_full_at_a_write(self):
        self.assert_last_commit_stands("write", "ENOSPC", 73, "No space left")

    def test_with_an_input_output_error_at_a_write(self):
        self.assert_last_commit_stands("write", "EIO", 74, "Input/output error")

    def test_with_an_input_output_error_at_a_sync(self):
        self.assert_last_commit_stands("sync", "EIO", 74, "Input/output error", {"--durability": "power"})

    def test_that_goes_on_failing_is_told_of_once(self):
        self.assertEqual(self.run_program("commits", "1").returncode, 0)
        done = self.run_program("commits", "3", fault="write:EIO@3:always")
        self.assert_one_error(done, "Input/output error")

    def test_that_cannot_read_one_superblock_uses_and_mends_the_other(self):
        self.assertEqual(self.run_program("commits", "1").returncode, 0)
        for number in (1, 2):
            with self.subTest(call=number):
                done = self.run_program(fault=f"read:EIO@{number}")
                self.assertEqual((done.returncode, done.stdout), (0, f"start {CLEAN} count 1\n"), done.stderr)
                self.assertIn("warning: ", done.stderr)
        self.assert_starts(CLEAN, 1)

    def test_that_cannot_read_anything_refuses_and_changes_nothing(self):
        self.assertEqual(self.run_program("commits", "1").returncode, 0)
        done = self.assert_untouched_by(self.pool, lambda: self.run_program(fault="read:EIO@1:always"))
        self.assert_refused(done, 74, r"a\.pool: no good superblock: copy 0 at offset 0 is unreadable", "check the disk")
        self.assert_starts(CLEAN, 1)

    def test_that_cannot_read_the_tables_refuses_and_changes_nothing(self):
        self.assertEqual(self.run_program("commits", "1").returncode, 0)
        done = self.assert_untouched_by(self.pool, lambda: self.run_program(fault="read:EIO@3:always"))
        self.assert_refused(done, 74, r"reading \d+ bytes at offset \d+ of \S*a\.pool failed: .*Input/output error")
        self.assert_starts(CLEAN, 1)

    def test_that_does_half_of_each_piece_of_work_is_not_noticed(self):
        for fault in ("write:short@1:always", "read:short@1:always", "write:EINTR@2,read:EINTR@1,write:EAGAIN@4"):
            with self.subTest(fault=fault):
                self.pool.unlink(missing_ok=True)
                for count in (0, 3):
                    done = self.run_program("commits", "3", fault=fault)
                    self.assertEqual((done.returncode, facts_of(done, r"count (\d+)$"), facts_of(done, r"result (\d+)$")),
                                     (0, [(count,)], [(0,)] * 3), done.stderr)
                self.assert_starts(CLEAN, 6)


if __name__ == "__main__":
    unittest.main()
