"""The tracker hooks, with programs that mark by hand: what is marked survives, what is not does not; which programs are refused."""

import errno
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from command_line import BUILD, SMALL, TOOL, CommandLineTest  # noqa: E402

KILLED = -9
# Pages are copied ahead; then a checkpoint waits for the lock, or pauses between two attempts.
COPIED_AHEAD = (("--interval", "1"), ("--interval", "10", "--stop-attempt", "1"))


class HooksTracker(CommandLineTest):
    def run_with(self, *words, program="hooks_counter", tracker="hooks", options=()):
        return self.stillpoint("run", "--pool", self.pool, *SMALL, "--tracker", tracker, *options, "--",
                               BUILD / "bin" / program, *words)

    def assert_prints(self, done, line, exit_code=0):
        self.assertEqual((done.returncode, done.stdout), (exit_code, f"{line}\n"), done.stderr)

    def test_what_is_marked_survives_a_normal_end_and_a_kill(self):
        for program in ("hooks_counter", "hooks_counter_calls"):
            with self.subTest(program=program):
                self.pool.unlink(missing_ok=True)
                self.assert_prints(self.run_with("count", program=program), "1 1 mutex 0")
                self.assert_prints(self.run_with("kill", program=program), "2 2 mutex 0", KILLED)
                self.assert_prints(self.run_with("kill", program=program, options=("--recovery", "eager")), "3 3 mutex 0", KILLED)
                self.assert_prints(self.run_with("count", program=program), "4 4 mutex 0")

    def test_what_is_not_marked_is_not_durable(self):
        """Shows that it is the marks that the other tests rely on, and nothing else."""
        self.assert_prints(self.run_with("count"), "1 1 mutex 0")
        self.assert_prints(self.run_with("forget"), "2 2 mutex 0", KILLED)
        self.assert_prints(self.run_with("count"), "3 2 mutex 0")

    def test_what_the_library_and_the_kernel_store_is_marked_by_the_library(self):
        self.assert_prints(self.run_with("read"), "41 42 mutex 0")
        self.assert_prints(self.run_with("count"), "42 43 mutex 0")

    def test_blocks_that_the_heap_zeroed_or_moved_are_marked_by_it(self):
        self.assert_prints(self.run_with("blocks"), "0 0 mutex 0", KILLED)
        verified = self.run_with("verify")
        self.assertEqual((verified.returncode, verified.stdout), (0, ""), verified.stderr)

    def test_locks_that_were_held_while_their_page_was_copied_are_free_after_a_crash(self):
        for options in COPIED_AHEAD:
            for held, then, line in (("locks", "count", "1 1 mutex 0"), ("rwlocks", "free", "free")):
                with self.subTest(held=held, options=options):
                    self.pool.unlink(missing_ok=True)
                    self.assertEqual(self.run_with(held, options=options).returncode, KILLED)
                    self.assert_prints(self.run_with(then), line)

    def test_locks_alone_make_no_page_written(self):
        self.assert_prints(self.run_with("idle", options=("--interval", "1h")), "0 pages")

    def test_a_child_made_by_fork_marks_on_to_no_effect(self):
        self.assert_prints(self.run_with("fork"), "1 1 mutex 0")
        self.assert_prints(self.run_with("count"), "2 2 mutex 0")

    def test_trackers_may_change_from_run_to_run_and_marks_do_no_harm_with_others(self):
        for runs, tracker in enumerate(("auto", "hooks", "mprotect", "hooks"), 1):
            self.assert_prints(self.run_with("kill", tracker=tracker), f"{runs} {runs} mutex 0", KILLED)

    def test_a_kernel_that_lacks_something(self):
        """Without membarrier only stops look at the cards; without userfaultfd pages are loaded before main."""
        launcher = BUILD / "bin/faults_launcher"
        for lack, answer in (("membarrier", errno.EPERM), ("userfaultfd", errno.EPERM)):
            self.pool.unlink(missing_ok=True)
            for runs in (1, 2, 3):
                done = self.stillpoint(lack, answer, TOOL, "run", "--pool", self.pool, *SMALL, "--tracker", "hooks", "--interval", "2",
                                       "--", BUILD / "bin/hooks_counter", "kill", tool=launcher)
                if done.returncode == 125:
                    self.skipTest("seccomp filters cannot be installed here")
                self.assert_prints(done, f"{runs} {runs} mutex 0", KILLED)

    def test_the_start_line_tells_the_tracker_and_how_many_units_mark(self):
        self.assertIn("tracker hooks (1 instrumented unit)", self.run_with("count").stderr)

    def test_a_program_that_cannot_be_served_is_refused_before_a_pool_is_made(self):
        for program, messages in (
                ("hooks_counter_without", ("nothing in this program marks", "stillpoint cc", "tracker auto")),
                ("hooks_counter_other_layer", ("nothing in this program marks",)),
                ("hooks_counter_other_abi", ("hooks_counter_other_abi", "by hand", "version 77", "has version 2")),
                ("hooks_counter_other_cards", ("hooks_counter_other_cards", "by hand", "cards of 512", "cards of 64")),
                ("hooks_counter_damaged", ("hooks_counter_damaged", "damaged", "0x1122334455667788"))):
            with self.subTest(program=program):
                self.assert_refused(self.run_with("count", program=program), 69, *messages)
                self.assertFalse(self.pool.exists())

    def test_addresses_of_the_card_table_that_something_else_has(self):
        done = self.stillpoint("taken", self.pool, tool=BUILD / "bin/hooks_counter")
        self.assertRegex(done.stdout, r"^\d+ the addresses 0x47f000000000 to 0x47f410000000 of the card tables are in use .*/proc/self/maps")
        self.assertFalse(self.pool.exists())

    def test_a_pool_is_left_alone_by_a_refusal(self):
        self.assert_prints(self.run_with("count"), "1 1 mutex 0")
        self.assert_untouched_by(self.pool, lambda: self.run_with("count", program="hooks_counter_without"))


if __name__ == "__main__":
    unittest.main()
