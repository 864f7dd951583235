"""Debian's tcumttest, unmodified, under `stillpoint run`: threads on Tokyo Cabinet's databases on memory, which keep their memory and
have their locks replaced. Nothing of it is durable: it shows that interposed locks do for a foreign program what libc's do."""

import json
import shutil
import unittest

from programs import TOOL, PoolTest, skip_without

PROGRAM = shutil.which("tcumttest") or "/usr/bin/tcumttest"
CASES = ["combo 4 5000", "combo -rnd 4 5000", "combo -tr 4 5000", "combo -tr -rnd 4 3000", "typical 4 20000", "typical -nc 4 20000",
         "typical -tr 4 5000", "typical -rr 50 4 20000"]


class TokyoCabinet(PoolTest):
    def test_its_own_test_program_passes_under_run(self):
        for case in CASES:
            with self.subTest(case=case):
                self.assert_ended(self.plain(PROGRAM, *case.split()), 0)
                done = self.durable(PROGRAM, *case.split())
                self.assert_ended(done, 0)
                self.assertIn("ok", done.stdout)

    def test_the_pool_was_open_and_took_checkpoints(self):
        self.assert_ended(self.durable(PROGRAM, "typical", "4", "200000", options=("--open", "start")), 0)
        facts = self.plain(TOOL, "info", "--json", self.pool)
        self.assert_ended(facts, 0)
        self.assertGreater(json.loads(facts.stdout)["durable_epoch"], 1)
        self.assert_ended(self.plain(TOOL, "check", self.pool), 0)


if __name__ == "__main__":
    skip_without(PROGRAM)
    unittest.main()
