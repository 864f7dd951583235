"""Options that say what a new pool is like, given for a pool that exists: the pool keeps its engine, durability and sizes, without being
asked; an option that contradicts it is an error that names the option, the pool's own value and what to do. And the sizes of new pools."""

import json
import unittest

from command_line import COUNTER, CommandLineTest
from support import engines

ENGINES = engines.names_that_keep_stores()


class ExistingPools(CommandLineTest):
    def run_with(self, *options, **environment):
        return self.stillpoint("run", "--quiet", "--pool", self.pool, *options, "--", COUNTER, **environment)

    def assert_runs(self, done, number):
        self.assertEqual((done.returncode, done.stdout.split(" start ")[0]), (0, f"run {number}"), done.stderr)
        self.assertEqual(done.stderr, "")

    def facts(self):
        return json.loads(self.stillpoint("info", "--json", self.pool).stdout)

    def test_keep_their_engine_durability_and_sizes_without_being_asked(self):
        for engine in ENGINES:
            self.pool.unlink(missing_ok=True)
            self.assert_runs(self.run_with("--engine", engine, "--durability", "process", "--pool-size", "8M", "--pool-max", "32M"), 1)
            before = self.facts()
            done = self.stillpoint("run", "--pool", self.pool, "--", COUNTER)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"engine {engine}", done.stderr)
            self.assertIn("durability process", done.stderr)
            after = self.facts()
            for fact in ("engine", "durability", "image_bytes", "image_bytes_max"):
                self.assertEqual(before[fact], after[fact], fact)

    def test_accept_the_options_that_they_were_created_with(self):
        options = ("--engine", "pronto", "--durability", "process", "--pool-size", "8M", "--pool-max", "32M")
        self.assert_runs(self.run_with(*options), 1)
        self.assert_runs(self.run_with(*options), 2)
        self.assert_runs(self.run_with("--pool-size", "5M"), 3)  # The pool may have grown.

    def test_refuse_options_that_contradict_them(self):
        self.assert_runs(self.run_with("--engine", "pronto", "--durability", "process", "--pool-size", "8M", "--pool-max", "32M"), 1)
        for options, code, *messages in (
                (("--engine", "pmthreads"), 65, "engine pronto", "pmthreads"), (("--engine", "respct"), 65, "engine pronto", "respct"),
                (("--durability", "power"), 64, "durability process", "not power"),
                (("--pool-max", "64M"), 64, "pool_max_mb 32 MiB", "not 64"),
                (("--pool-max", "16M"), 64, "pool_max_mb 32 MiB", "not 16")):
            with self.subTest(options=options):
                done = self.assert_untouched_by(self.pool, lambda: self.run_with(*options))
                self.assert_refused(done, code, "leave the option", *messages)
        done = self.assert_untouched_by(self.pool, lambda: self.run_with(STILLPOINT_DURABILITY="power"))
        self.assert_refused(done, 64, "durability process")
        self.assert_runs(self.run_with(), 2)


    def test_warn_of_a_size_that_they_do_not_have_yet(self):
        self.assert_runs(self.run_with("--durability", "process", "--pool-size", "8M", "--pool-max", "32M"), 1)
        done = self.stillpoint("run", "--pool", self.pool, "--pool-size", "16M", "--", COUNTER)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: .*the pool has 8 MiB, and pool_size_mb \(16\).* is ignored: this one grows by itself up to 32 MiB")
        self.assertEqual(done.stderr.count("pool_size_mb"), 1, done.stderr)


class SizesOfNewPools(CommandLineTest):
    def make(self, *options):
        self.pool.unlink(missing_ok=True)
        return self.stillpoint("run", "--quiet", "--pool", self.pool, "--durability", "process", *options, "--", COUNTER)

    def test_too_small_for_the_tables_is_wrong_usage_and_names_what_is_enough(self):
        done = self.make("--engine", "respct", "--pool-size", "4M", "--pool-max", "1G")
        self.assert_refused(done, 64, "pool_size_mb", "engine respct", "leave the option out")
        self.assertFalse(self.pool.exists())
        enough = done.stderr.split("; use ")[1].split(",")[0]
        self.assertEqual(self.make("--engine", "respct", "--pool-size", f"{enough}M", "--pool-max", "1G").returncode, 0)

    def test_fit_a_maximum_that_is_given_alone(self):
        for engine in ENGINES:
            for maximum in ("8M", "32M", "1G", "1T"):
                done = self.make("--engine", engine, "--pool-max", maximum)
                self.assertEqual(done.returncode, 0, f"{engine} {maximum}: {done.stderr}")

    def test_that_contradict_each_other_are_wrong_usage(self):
        self.assert_refused(self.make("--pool-size", "2G", "--pool-max", "1G"), 64, "pool_size_mb", "pool_max_mb")
        self.assert_refused(self.make("--pool-size", "32G"), 64, "pool_size_mb", "pool_max_mb")
        self.assertFalse(self.pool.exists())


if __name__ == "__main__":
    unittest.main()
