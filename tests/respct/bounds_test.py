"""How much a crash and an end of the program lose with the engine respct where a thread comes late to its restart point, and where a thread
stands that waits for an epoch. bounds.cpp is the program. No upper limit of a time is judged here."""

import json
import subprocess
import time
import unittest

from command_line import BUILD, SMALL, TOOL, CommandLineTest

PROGRAM = BUILD / "bin/respct_bounds"
INSIDE_FASE = 22
FOREVER_MS = 60_000


class Bounds(CommandLineTest):
    def words(self, interval, *arguments):
        return [str(word) for word in (TOOL, "run", "--quiet", "--engine", "respct", "--pool", self.pool, *SMALL, "--interval", interval,
                                       "--", PROGRAM, *arguments)]

    def figures(self):
        return json.loads(self.stillpoint("stats", "--json", self.pool).stdout)

    def wait_until(self, holds):
        limit = time.monotonic() + 60
        while not holds(self.figures()):
            self.assertLess(time.monotonic(), limit, self.figures())
            time.sleep(0.01)

    def late(self, goes_on):
        """Returns what the program found at its start; it is killed where one thread is late, or where that has come."""
        with subprocess.Popen(self.words("5ms", "late"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            found = process.stdout.readline().strip()
            before = self.figures()["withdrawn_attempts"]
            self.wait_until(lambda now: now["withdrawn_attempts"] >= before + 3)
            held_up = self.figures()["durable_epoch"]
            self.wait_until(lambda now: now["withdrawn_attempts"] >= before + 4)
            self.assertEqual(self.figures()["durable_epoch"], held_up)
            if goes_on:
                process.stdin.write("\n")
                process.stdin.flush()
                self.wait_until(lambda now: now["durable_epoch"] > held_up)
            process.kill()
        return found

    def test_a_crash_loses_what_was_done_since_the_slowest_thread_passed_its_restart_point(self):
        """By every thread: also by those that have passed theirs."""
        self.assertEqual(self.late(goes_on=False), "late 0 early 0")
        self.assertEqual(self.late(goes_on=True), "late 0 early 0")
        self.assertEqual(self.late(goes_on=False), "late 1 early 1")

    def test_a_thread_that_waits_for_an_epoch_stands_at_its_last_restart_point(self):
        """A checkpoint has what it did between that point and the call; it continues at the point. With a lock held it may not wait."""
        for found in ("place 0 count 0", "place 7 count 1", "place 7 count 2"):
            done = self.stillpoint(*self.words("1h", "waiting")[1:])
            self.assertEqual(done.stdout.splitlines(), [found, "checkpoint 0 locked" + f" {INSIDE_FASE}" * 4], done.stderr)

    def test_the_end_waits_two_seconds_for_the_others(self):
        done = self.stillpoint(*self.words("1h", "end", 300)[1:])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "late 0 early 0\n", ""))
        begun = time.monotonic()
        done = self.stillpoint(*self.words("1h", "end", FOREVER_MS)[1:])
        self.assertGreaterEqual(time.monotonic() - begun, 2)
        self.assertEqual((done.returncode, done.stdout), (0, "late 1 early 1\n"), done.stderr)
        self.assertRegex(done.stderr, "no quiescent state for a last checkpoint.*no work of this run is kept")
        self.assertEqual(self.stillpoint(*self.words("1h", "end", 300)[1:]).stdout, "late 1 early 1\n")


if __name__ == "__main__":
    unittest.main()
