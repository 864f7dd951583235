"""A program of standard containers by stillpoint.hpp, killed at random moments with each engine whose sections are atomic: its containers
agree at each start, and no run begins with less than an earlier one had found. The other engines refuse it, with what to do."""

import random
import subprocess
import time
import unittest

from command_line import BUILD, SMALL, CommandLineTest
from support import engines

LEDGER = BUILD / "bin/cxx_ledger"
KILLS = 6
SEED = 20260711
OPTIONS = {engines.CRITICAL_SECTIONS: ("--threads", "processes")}


class Ledger(CommandLineTest):
    def words(self, engine, *arguments):
        return [BUILD / "bin/stillpoint", "run", "--quiet", "--engine", engine.name, *OPTIONS.get(engine.programs, ()), "--pool", self.pool,
                "--interval-ms", "5", *SMALL, "--", LEDGER, *arguments]

    def killed_run(self, engine, delay_s):
        """How many sections it has found at its start."""
        with subprocess.Popen(self.words(engine, "100000000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            found = run.stdout.readline()
            time.sleep(delay_s)
            run.kill()
            rest, errors = run.communicate()
        self.assertEqual(run.returncode, -9, found + rest + errors)
        return int(found)

    def test_kills(self):
        moments = random.Random(SEED)
        for engine in engines.engines():
            if engine.programs in (engines.TRANSACTIONS, engines.RESTART_POINTS):
                continue
            with self.subTest(engine=engine.name):
                before = 0
                for _ in range(KILLS):
                    found = self.killed_run(engine, moments.uniform(0, 0.3))
                    self.assertGreaterEqual(found, before)
                    before = found
                done = subprocess.run(self.words(engine, "10"), capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertGreater(int(done.stdout), 0)
                checked = self.stillpoint("check", self.pool)
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
                self.pool.unlink()

    def test_engines_that_want_to_be_told_of_stores(self):
        for engine in engines.engines():
            if engine.programs in (engines.TRANSACTIONS, engines.RESTART_POINTS):
                done = subprocess.run(self.words(engine, "1"), capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertRegex(done.stdout, "told of each store: use the engine's own header")
                self.pool.unlink(missing_ok=True)


if __name__ == "__main__":
    unittest.main()
