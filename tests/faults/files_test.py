"""The pool's file, descriptors and memory under tampering: cut off, deleted, copied, linked, closed, replaced, poisoned. What was
acknowledged before is there afterwards; nothing is acknowledged that is not; nothing of the program's own is written over."""

import os
import shutil
import subprocess
import unittest

from faulty_runs import BUILD, CLEAN, CRASHED, OPTIONS, TOOL, FaultyRun, facts_of

PROGRAM = BUILD / "bin/faults_files"
CANNOT = 77
PAGE = 4096


class TamperedRun(FaultyRun):
    program = PROGRAM

    def start(self, *arguments, pool=None, options=()):
        """A program that waits for lines; its first commit is done."""
        chosen = {**OPTIONS, **dict(options), "--pool": pool or self.pool}
        words = [TOOL, "run", *(word for option in chosen.items() for word in option), "--", PROGRAM, *arguments]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        process = subprocess.Popen([str(word) for word in words], cwd=self.folder, env=clean, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        lines = []
        while not lines or lines[-1] != "ready\n":
            lines.append(process.stdout.readline())
            self.assertNotEqual(lines[-1], "", lines)
        return process

    def finish(self, process):
        """Ends the process by ending its input. Returns what it said on standard error."""
        _, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, errors)
        return errors

    @staticmethod
    def end(process):
        if process.returncode is None:
            process.kill()
            process.communicate()

    def ask(self, process):
        process.stdin.write("\n")
        process.stdin.flush()
        lines = [process.stdout.readline()]
        while lines[-1] not in ("ready\n", ""):
            lines.append(process.stdout.readline())
        return "".join(lines)

    def media(self):
        """Every way that pages reach a file: queued, one by one, and by stores."""
        return ({"--medium": "file", "--durability": "power"}, {"--medium": "file", "--durability": "process"},
                {"--medium": "memory", "--durability": "process"})


class Truncation(TamperedRun):
    def assert_noticed(self, options, change, *messages):
        self.pool.unlink(missing_ok=True)
        process = self.start("wait", options=options)
        self.assertIn("result 0", self.ask(process))
        change()
        for _ in range(2):
            self.assertRegex(self.ask(process), r"commit \d+ result [1-9]")
        errors = self.finish(process)
        self.assertRegex(errors, r"error: .*a\.pool: .*nothing later becomes durable")
        for message in messages:
            self.assertRegex(errors, message)

    def test_of_a_file_under_a_program_ends_its_durability_with_an_error(self):
        for options in self.media():
            for size in (0, 5 * PAGE, 64 * PAGE):
                with self.subTest(options=options, size=size):
                    self.assert_noticed(options, lambda at=size: os.truncate(self.pool, at), "truncated")

    def test_before_an_opening_is_refused(self):
        self.assertEqual(self.run_program("wait").returncode, 0)
        whole = self.pool.read_bytes()
        for size in (0, 1, PAGE, 2 * PAGE, 3 * PAGE, 6 * PAGE, len(whole) // 2, len(whole) - PAGE, len(whole) - 1):
            with self.subTest(size=size):
                self.pool.write_bytes(whole[:size])
                done = self.assert_untouched_by(self.pool, self.run_program)
                self.assert_refused(done, 65, "a.pool")
        self.pool.write_bytes(whole)
        self.assert_starts(CLEAN, 1)

    def test_is_noticed_as_little_as_never_for_a_longer_file(self):
        self.assertEqual(self.run_program("wait").returncode, 0)
        with open(self.pool, "ab") as file:
            file.write(bytes(3 * PAGE))
        self.assert_starts(CLEAN, 1)

    def test_deletion_under_a_program_ends_its_durability_with_an_error(self):
        for options in self.media():
            with self.subTest(options=options):
                self.assert_noticed(options, self.pool.unlink, "deleted")


class OtherNames(TamperedRun):
    def test_a_renamed_pool_goes_on_under_its_new_name(self):
        process = self.start("wait")
        renamed = self.folder / "b.pool"
        self.pool.rename(renamed)
        self.assertIn("commit 2 result 0", self.ask(process))
        self.finish(process)
        self.assert_starts(CLEAN, 2, pool=renamed)

    def test_a_copy_is_a_pool_of_its_own(self):
        process = self.start("wait")
        copy = self.folder / "copy.pool"
        shutil.copy(self.pool, copy)  # At rest between two commits: as a crash would leave it.
        self.assertIn("commit 2 result 0", self.ask(process))
        other = self.start("wait", pool=copy)
        for commit in (3, 4):
            self.assertIn(f"commit {commit} result 0", self.ask(process))
        self.assertIn("commit 3 result 0", self.ask(other))
        for one in (process, other):
            self.finish(one)
        self.assert_starts(CLEAN, 4)
        self.assert_starts(CLEAN, 3, pool=copy)
        self.assertEqual(self.stillpoint("check", copy).returncode, 0)

    def test_a_copy_of_a_pool_that_is_being_written_is_whole_or_refused(self):
        process = self.start("wait")
        copy = self.folder / "copy.pool"
        outcomes = set()
        for _ in range(4):
            process.stdin.write("\n" * 40)
            process.stdin.flush()
            shutil.copyfile(self.pool, copy)
            done = self.run_program(pool=copy)
            self.assertIn(done.returncode, (0, 65), done.stderr)
            if done.returncode == 0:
                self.assertGreaterEqual(facts_of(done, r"count (-?\d+)$")[0][0], 1, done.stdout)
            outcomes.add(done.returncode)
            for _ in range(40):
                while process.stdout.readline() not in ("ready\n", ""):
                    pass
        self.assertLessEqual(outcomes, {0, 65})

    def test_a_second_name_of_an_open_pool_is_locked(self):
        process = self.start("wait")
        link = self.folder / "link.pool"
        os.link(self.pool, link)
        self.assert_refused(self.run_program(pool=link), 75, "link.pool", str(process.pid))
        symbolic = self.folder / "symbolic.pool"
        symbolic.symlink_to(self.pool)
        self.assert_refused(self.run_program(pool=symbolic), 75, "symbolic.pool", str(process.pid))


class Descriptors(TamperedRun):
    def assert_own_files_are_left_alone(self):
        for path in self.folder.glob("own*"):
            self.assertEqual(path.read_bytes(), b"mine", path.name)
            path.unlink()

    def test_of_the_runtime_cannot_be_closed_or_replaced_through_libc(self):
        for options in self.media():
            for how in ("closefrom", "close_range", "close", "dup2"):
                with self.subTest(options=options, how=how):
                    self.pool.unlink(missing_ok=True)
                    done = self.run_program("descriptors", how, options=options)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(facts_of(done, r"^commit (\d+) result (\d+)$"), [(1, 0), (2, 0), (3, 0), (4, 0)], done.stdout)
                    self.assertIn("grown yes\n", done.stdout)
                    self.assert_own_files_are_left_alone()
                    self.assert_starts(CLEAN, 4, options=options)

    def test_that_a_system_call_closed_or_replaced_are_noticed(self):
        for options in self.media():
            for how in ("raw", "raw dup2"):
                with self.subTest(options=options, how=how):
                    self.pool.unlink(missing_ok=True)
                    done = self.run_program("descriptors", how, options=options)
                    self.assertGreaterEqual(done.returncode, 0, done.stderr)
                    self.assertIn("error: ", done.stderr)
                    commits = facts_of(done, r"^commit (\d+) result (\d+)$")
                    self.assertEqual(commits[0], (1, 0))
                    self.assertTrue(all(result != 0 for _, result in commits[1:]), done.stdout)
                    self.assert_own_files_are_left_alone()
                    self.assert_starts(CRASHED, 1, options=options)


class Poison(TamperedRun):
    """A page that the hardware lost, as the kernel reports it: SIGBUS."""

    def poisoned(self, what, options):
        # Made by an earlier run: before a new pool has its name, its mapping goes by another.
        self.assertEqual(self.run_program("wait", options=options).returncode, 0)
        done = self.run_program(what, self.pool, options=options)
        if done.returncode == CANNOT:
            self.skipTest(done.stdout.splitlines()[-1])
        return done

    def test_of_durable_memory_ends_the_program_with_a_message(self):
        done = self.poisoned("poison page", {"--tracker": "mprotect"})
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertRegex(done.stderr, r"error: the memory at 0x[0-9a-f]+ is gone .*as it was at epoch \d+")
        self.assert_starts(CRASHED, 2)

    def test_of_a_mapped_medium_ends_durability_with_an_error(self):
        options = {"--medium": "memory"}
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("there is no /dev/shm")
        folder = self.folder
        self.pool = type(folder)(f"/dev/shm/{folder.name}.pool")
        self.addCleanup(lambda: self.pool.unlink(missing_ok=True))
        done = self.poisoned("poison medium", options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"error: .*\.pool: a page of it that was mapped is gone")
        self.assertRegex(done.stdout, r"commit 3 result [1-9]")


if __name__ == "__main__":
    unittest.main()
