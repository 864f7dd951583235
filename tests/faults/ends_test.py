"""Crashes, signals, and ends of a process: each ends as it would without us, and leaves the documented state."""

import signal
import unittest

from faulty_runs import CLEAN, CRASHED, FRESH, FaultyRun
from support import engines


class Crash(FaultyRun):
    def for_each_tracker(self, check):
        for tracker in self.trackers():
            with self.subTest(tracker=tracker):
                self.pool.unlink(missing_ok=True)
                check({"--tracker": tracker})

    def assert_dies(self, number, options, *arguments):
        """By that signal, without a word; the pool comes back at its checkpoint."""
        done = self.run_program(*arguments, options=options)
        self.assertEqual((done.returncode, done.stdout), (-number, f"start {FRESH} count 0\n"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assert_starts(CRASHED, 1, options=options)

    def test_of_two_threads_at_once_by_their_faults(self):
        self.for_each_tracker(lambda options: self.assert_dies(signal.SIGSEGV, options, "crash", "fault"))

    def test_of_two_threads_at_once_by_abort(self):
        self.for_each_tracker(lambda options: self.assert_dies(signal.SIGABRT, options, "crash", "abort"))

    def test_by_a_null_pointer_without_a_handler(self):
        self.for_each_tracker(lambda options: self.assert_dies(signal.SIGSEGV, options, "end", "null"))

    def test_that_the_programs_own_handler_catches_and_jumps_out_of(self):
        def check(options):
            for count, how in ((0, "sigaction"), (3, "signal")):
                done = self.run_program("handler", how, options=options)
                self.assertEqual((done.returncode, done.stdout.splitlines()[1:]), (0, ["handled 3"]), done.stderr)
                self.assert_starts(CLEAN, count + 3, options=options)
        self.for_each_tracker(check)


class End(FaultyRun):
    def assert_end(self, how, code, kind, count):
        done = self.run_program("end", how)
        self.assertEqual((done.returncode, done.stdout), (code, f"start {FRESH} count 0\n"), done.stderr)
        self.assert_starts(kind, count)
        return done

    def test_by_exit_is_clean(self):
        self.assert_end("exit", 5, CLEAN, 2)

    def test_by_underscore_exit_is_clean(self):
        self.assert_end("_exit", 5, CLEAN, 2)

    def test_by_quick_exit_is_clean(self):
        self.assert_end("quick_exit", 5, CLEAN, 2)

    def test_by_abort_is_a_crash(self):
        self.assert_end("abort", -signal.SIGABRT, CRASHED, 1)

    def test_by_exit_with_a_lock_held_warns_and_is_a_crash(self):
        done = self.assert_end("holding", 5, CRASHED, 1)
        self.assertRegex(done.stderr, r"error: the program ends inside a failure-atomic section .*stays at epoch \d+")

    def test_with_another_thread_in_its_section_says_what_is_lost_even_when_quiet(self):
        """The exit code is the program's own; the line on standard error is not silenced."""
        for words, kind, count, lost in ((("end", "held"), CRASHED, 1, "what was done after it is lost"),
                                         (("held",), FRESH, 0, "no work of this run is kept")):
            with self.subTest(words=words):
                self.pool.unlink(missing_ok=True)
                done = self.stillpoint("run", "--quiet", "--pool", self.pool, "--durability", "process", "--interval", "1h", "--",
                                       self.program, *words)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_one_error(done, f"no quiescent state .* epoch {count}; thread \\d+ was in a section", lost)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                after = self.stillpoint("run", "--quiet", "--pool", self.pool, "--", self.program)
                self.assertEqual(after.stdout, f"start {kind} count {count}\n", after.stderr)

    def test_while_another_thread_goes_on_is_as_without_it(self):
        """Memory that it touches while the process ends is still there."""
        for engine in engines.names_that_keep_stores():
            self.pool.unlink(missing_ok=True)
            for _ in range(6 if engine in engines.names(engines.RESTART_POINTS) else 2):
                with self.subTest(engine=engine):
                    done = self.run_program("end", "going", options={"--engine": engine, "--interval": "5ms"})
                    self.assertEqual(done.returncode, 5, done.stderr)

    def test_by_exec_is_clean_for_the_next_program(self):
        done = self.run_program("end", "exec")
        self.assertEqual((done.returncode, done.stdout), (0, f"start {FRESH} count 0\nstart {CLEAN} count 2\n"), done.stderr)

    def test_by_exec_of_what_cannot_run_is_an_end_with_71(self):
        """That is known only after the pool was closed."""
        nonsense = self.folder / "nonsense"
        nonsense.write_bytes(b"\x7fELF and nothing else")
        nonsense.chmod(0o755)
        done = self.run_program("end", "exec", nonsense)
        self.assertEqual((done.returncode, done.stdout), (71, f"start {FRESH} count 0\n"), done.stderr)
        self.assertIn("exec failed", done.stderr)
        self.assert_starts(CLEAN, 2)


class Fork(FaultyRun):
    def test_detaches_the_child_which_is_told_once_and_leaves_the_parent_alone(self):
        for tracker in self.trackers():
            with self.subTest(tracker=tracker):
                self.pool.unlink(missing_ok=True)
                options = {"--tracker": tracker}
                done = self.run_program("fork", options=options)
                self.assertEqual((done.returncode, done.stdout), (0, f"start {FRESH} count 0\nchild 0 commit 0 count 1\n"),
                                 done.stderr)
                self.assertEqual(done.stderr.count("is a child made by fork"), 1, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
                self.assert_starts(CLEAN, 1, options=options)


if __name__ == "__main__":
    unittest.main()
