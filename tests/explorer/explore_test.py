"""The report of explore about a canary that nothing notices: its name, in bounded time, with an exit code of failure.

log-sync is pronto's, so campaigns of pmthreads cannot notice that it is gone."""

import json
import subprocess
import sys
import unittest

EXPLORE = sys.argv.pop(1)
UNNOTICED = ["--canary", "log-sync", "--campaign", "pmthreads/mprotect/page/bank"]


def explore(*arguments):
    return subprocess.run([EXPLORE, *arguments], capture_output=True, text=True, timeout=120)


class Survivors(unittest.TestCase):
    def test_a_survivor_ends_with_its_name_and_a_failure_when_its_seconds_are_over(self):
        run = explore(*UNNOTICED, "--seconds", "1")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("log-sync                   SURVIVED: the sync of a group commit", run.stdout)
        self.assertIn("0 of 1 canaries killed", run.stdout)
        self.assertTrue(run.stdout.endswith("SURVIVED: log-sync\n"), run.stdout)

    def test_json_names_the_survivors(self):
        run = explore(*UNNOTICED, "--seconds", "0.2", "--json")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        told = json.loads(run.stdout)
        self.assertEqual((told["canaries"], told["killed"], told["survivors"]), (1, 0, ["log-sync"]))

    def test_a_canary_that_is_noticed_ends_with_success(self):
        run = explore("--canary", "file-sync", "--quiet")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("1 of 1 canaries killed", run.stdout)

    def test_a_pool_in_rados_shows_what_a_missing_sync_loses(self):
        for canary, campaign in (("epoch-durable", "mprotect/rados/bank"), ("redo-log-sync", "transactions/rados/bank"),
                                 ("log-sync", "objects/rados/map")):
            with self.subTest(canary=canary):
                run = explore("--canary", canary, "--campaign", campaign, "--seconds", "60", "--quiet")
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
