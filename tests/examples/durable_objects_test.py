"""examples/durable-queue and examples/leaderboard: what they were told is there after kills and restarts."""

import random
import re
import subprocess
import time
import unittest

from examples_test import BINARIES, ExampleTest

JOBS, PRODUCERS = 4000, 4
KILLED_FOR_S = 8
TIMEOUT_S = 60
HAS_ENGINE = "pronto" in subprocess.run([BINARIES / "stillpoint", "run", "--help"], capture_output=True, text=True, check=False).stdout


@unittest.skipUnless(HAS_ENGINE, "the engine pronto is not there")
class DurableObjects(ExampleTest):
    def test_the_leaderboard_keeps_the_best_scores(self):
        first = self.run_program("leaderboard", "--pool", self.pool, "ann=30", "bob=20", "cyd=25", "ann=10")
        self.assertIn("      30  ann\n      25  cyd\n      20  bob\n", first)
        second = self.run_program("leaderboard", "--pool", self.pool, "bob=31", "cyd=")
        self.assertIn("      31  bob\n      30  ann\n", second)
        self.assertNotIn("cyd", second)

    def test_without_a_pool_they_say_what_to_do(self):
        for name in ("leaderboard", "durable-queue"):
            self.assertIn("stillpoint run --engine pronto", self.run_program(name, expect=1))

    def test_wrong_arguments_are_refused(self):
        self.run_program("durable-queue", "--jobs", "none", expect=64)
        self.run_program("durable-queue", "--pool", expect=64)
        self.run_program("leaderboard", "--pool", self.pool, "ann", expect=64)

    def test_an_acknowledged_job_that_is_missing_is_noticed(self):
        (self.folder / "acknowledged").write_text("put 5.\ndone 6.\nput 7", encoding="utf-8")  # the last line is cut off and does not count
        output = self.run_program("durable-queue", "--pool", self.pool, "--acknowledge", self.folder / "acknowledged", expect=3)
        self.assertIn("LOST: put of job 5", output)
        self.assertIn("LOST: done of job 6", output)
        self.assertNotIn("job 7", output)

    def test_the_queue_loses_no_acknowledged_job_over_many_kills(self):
        command = [BINARIES / "durable-queue", "--pool", self.pool, "--acknowledge", self.folder / "acknowledged", "--jobs", str(JOBS)]
        moments = random.Random(3)
        begun = time.monotonic()
        kills = 0
        for _ in range(100):
            running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                is_late = time.monotonic() - begun > KILLED_FOR_S
                output, _ = running.communicate(timeout=TIMEOUT_S if is_late else moments.uniform(0.03, 0.2))
            except subprocess.TimeoutExpired:
                running.kill()
                output, _ = running.communicate()
                kills += 1
            self.assertNotIn("LOST", output)
            if running.returncode == 0:
                break
            self.assertEqual(running.returncode, -9, output)
        self.assertGreater(kills, 0)
        done, total = re.search(r"all (\d+) jobs done, sum of squares (\d+)", output).groups()
        self.assertEqual((int(done), int(total)), (JOBS, PRODUCERS * sum(place * place for place in range(JOBS // PRODUCERS))))


if __name__ == "__main__":
    unittest.main()
