"""A named database is found again after a normal end; one that was made otherwise is refused with a message and not changed; without
a pool nothing is durable and everything works."""

import shlex
import unittest

from programs import FOLDER, TOOL, PoolTest, skip_without

LEDGER = FOLDER / "durable/ledger"
EXIT_REFUSED = 70


class Durable(PoolTest):
    def test_each_class_is_found_again(self):
        for kind in ("cache", "hash", "tree"):
            with self.subTest(kind=kind):
                self.pool.unlink(missing_ok=True)
                self.assert_ended(self.durable(LEDGER, kind, "--seconds", "0.3"), 0)
                first = self.durable(LEDGER, kind, "--count")
                second = self.durable(LEDGER, kind, "--count")
                self.assertGreater(int(first.stdout), 64, first.stderr)
                self.assertEqual(first.stdout, second.stdout)

    def test_other_tuning_is_refused(self):
        self.assert_ended(self.durable(LEDGER, "cache", "--seconds", "0.1"), 0)
        refused = self.durable(LEDGER, "cache", "--buckets", "999", "--verify")
        self.assert_ended(refused, EXIT_REFUSED)
        self.assertIn("has bnum=1024 opts=0, tuned are bnum=999", refused.stderr)
        self.assertIn("OTRUNCATE", refused.stderr)
        self.assert_ended(self.durable(LEDGER, "cache", "--verify"), 0)

    def test_another_class_is_refused(self):
        self.assert_ended(self.durable(LEDGER, "tree", "--seconds", "0.1"), 0)
        for kind in ("cache", "hash"):
            refused = self.durable(LEDGER, kind, "--verify")
            self.assert_ended(refused, EXIT_REFUSED)
            self.assertIn("open it with the class and the build that made it", refused.stderr)
        self.assert_ended(self.durable(LEDGER, "tree", "--verify"), 0)

    def test_a_second_object_with_the_same_name_is_refused(self):
        refused = self.durable(LEDGER, "cache", "--twice")
        self.assert_ended(refused, EXIT_REFUSED)
        self.assertIn("another database object has it open", refused.stderr)

    def test_a_full_pool_is_an_exception_and_the_database_stays_whole(self):
        small = ("--pool-size", "16M", "--pool-max", "32M")
        for kind in ("cache", "hash", "tree"):
            with self.subTest(kind=kind):
                self.pool.unlink(missing_ok=True)
                run = (TOOL, "run", "--quiet", "--durability", "process", *small,
                       "--pool", self.pool, "--", LEDGER, kind)
                filled = self.plain(*run, "--fill")
                self.assert_ended(filled, 0)
                self.assertIn("filled", filled.stdout)
                self.assert_ended(self.plain(*run, "--verify"), 0)

    def test_a_kill_shows_what_is_torn_and_what_is_acknowledged_early(self):
        for mistake, message in (("--torn", "accounts with"), ("--early", "acknowledged ")):
            with self.subTest(mistake=mistake):
                done = self.plain(TOOL, "crashtest", "--quiet", "--kills", "60", "--seed", "3", "--moments", "random", "--min-ms", "100",
                                  "--max-ms", "300", "--interval-ms", "20", "--durability", "process", "--check",
                                  f"{shlex.quote(str(LEDGER))} cache --verify", "--", LEDGER, "cache", mistake)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(message, done.stderr + done.stdout)

    def test_without_a_pool_it_works_in_ordinary_memory(self):
        for kind in ("cache", "hash", "tree"):
            self.assert_ended(self.plain(LEDGER, kind, "--seconds", "0.1"), 0)


if __name__ == "__main__":
    skip_without(LEDGER)
    unittest.main()
