"""`stillpoint grow` and `copy --pool-max`: a pool that was full goes on; killed in the middle it has the old maximum or the new one."""

import json
import random
import shutil
import subprocess
import time
import unittest

from command_line import BUILD, COUNTER, TOOL, CommandLineTest

BANK = BUILD / "bin/bank"
ENGINES = {"pmthreads": (), "pronto": (), "spht": (), "nvthreads": ("--threads", "processes")}


class Grow(CommandLineTest):
    def bank(self, transfers, *options, pool=None, accounts=20000):
        """The program verifies the whole bank first."""
        return self.stillpoint("run", "--quiet", "--pool", pool or self.pool, *options, "--", BANK, "--accounts", accounts, "--threads", 2,
                               "--transfers", transfers)

    def assert_ends_well(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def maximum(self, pool):
        return json.loads(self.stillpoint("info", "--json", pool).stdout)["image_bytes_max"]

    def assert_sound(self, pool):
        self.assert_ends_well(self.stillpoint("check", pool))

    def test_a_program_goes_on_where_the_pool_was_too_small(self):
        self.assert_ends_well(self.bank(1000, "--pool-max", "8M"))
        for size, what in (("64M", "64 MiB"), ("4G", "4 GiB")):
            done = self.stillpoint("grow", self.pool, "--pool-max", size)
            self.assert_ends_well(done)
            self.assertIn(what, done.stdout)
            self.assert_sound(self.pool)
            self.assert_ends_well(self.bank(2000))
            self.assert_sound(self.pool)
        self.assertEqual(self.maximum(self.pool), 4 << 30)

    def count(self, pool, *options):
        self.assert_ends_well(self.stillpoint("run", "--quiet", "--pool", pool, *options, "--", COUNTER))

    def test_each_engine_that_can(self):
        for engine, more in ENGINES.items():
            with self.subTest(engine=engine):
                path = self.folder / f"{engine}.pool"
                self.count(path, "--engine", engine, "--pool-max", "16M", *more)
                for size in ("32M", "1G"):
                    self.assert_ends_well(self.stillpoint("grow", path, "--pool-max", size))
                    self.assert_sound(path)
                    self.count(path, *more)
                    self.assert_sound(path)
                self.assertEqual(self.maximum(path), 1 << 30)

    def test_engines_that_cannot_say_what_does(self):
        path = self.folder / "respct.pool"
        self.count(path, "--engine", "respct")
        self.assert_refused(self.stillpoint("grow", path, "--pool-max", "64G"), 65, "--pool-max")
        path = self.folder / "objects.pool"
        subprocess.run([BUILD / "bin/cli_objects", path], capture_output=True, check=True)
        self.assert_refused(self.stillpoint("grow", path, "--pool-max", "64G"), 65, "stillpoint compact")

    def test_what_it_refuses(self):
        self.assert_ends_well(self.bank(10, "--pool-max", "64M"))
        before = self.pool.read_bytes()
        self.assert_refused(self.stillpoint("grow", self.pool), 64, "--pool-max")
        self.assert_refused(self.stillpoint("grow", self.pool, "--pool-max", "32M"), 64, "64 MiB")
        self.assert_refused(self.stillpoint("grow", self.pool, "--pool-max", "much"), 64, "512M")
        self.assert_refused(self.bank(1, "--pool-max", "128M"), 64, "stillpoint grow")
        self.assertEqual(self.pool.read_bytes(), before)
        self.assert_ends_well(self.stillpoint("grow", self.pool, "--pool-max", "64M"))
        self.assertEqual(self.maximum(self.pool), 64 << 20)

    def test_a_copy_may_have_more(self):
        self.assert_ends_well(self.bank(1000, "--pool-max", "16M"))
        self.assert_ends_well(self.stillpoint("copy", self.pool, "large.pool", "--pool-max", "1G"))
        self.assertEqual(self.maximum(self.pool), 16 << 20)
        large = self.folder / "large.pool"
        self.assertEqual(self.maximum(large), 1 << 30)
        self.assertEqual(self.stillpoint("diff", self.pool, large).returncode, 0)
        self.assert_ends_well(self.bank(2000, pool=large))
        self.assert_sound(large)

    def test_a_copy_that_is_killed_has_more_or_no_name(self):
        self.assert_ends_well(self.bank(1000, "--pool-max", "16M"))
        large = self.folder / "large.pool"
        copy = [str(word) for word in (TOOL, "copy", self.pool, large, "--pool-max", "1G")]
        begun = time.monotonic()
        subprocess.run(copy, stdout=subprocess.DEVNULL, check=True)
        whole_s = time.monotonic() - begun
        for turn in range(16):  # Closer and closer to its end.
            large.unlink(missing_ok=True)
            with subprocess.Popen(copy, stdout=subprocess.DEVNULL) as one:
                time.sleep(whole_s * (0.7 + turn / 40))
                one.kill()
            if large.exists():
                self.assertEqual(self.maximum(large), 1 << 30)
        self.assert_refused(self.stillpoint("copy", self.pool, "small.pool", "--pool-max", "8M"), 64, "16 MiB")
        self.assertFalse((self.folder / "small.pool").exists() or (self.folder / "small.pool.partial").exists())

    def test_killed_in_the_middle(self):
        """The command is killed, and the start that makes the tables longer: before its first checkpoint, and around it."""
        chance = random.Random(27)
        self.assert_ends_well(self.bank(1000, "--pool-max", "8M", "--interval", "5ms"))
        start = self.folder / "start.pool"
        shutil.copy(self.pool, start)
        for turn in range(16):
            shutil.copy(start, self.pool)
            grow = [str(word) for word in (TOOL, "grow", self.pool, "--pool-max", "256M")]
            with subprocess.Popen(grow, stdout=subprocess.DEVNULL) as one:
                if turn % 2 == 0:
                    time.sleep(chance.uniform(0.001, 0.02))
                    one.kill()
            self.assertIn(self.maximum(self.pool), (8 << 20, 256 << 20))
            self.assert_sound(self.pool)
            words = (TOOL, "--quiet", "run", "--pool", self.pool, "--interval", "5ms", "--", BANK, "--accounts", 20000,
                     "--transfers", 10**8)
            with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL) as program:
                time.sleep(chance.uniform(0.005, 0.15))
                program.kill()
            self.assert_sound(self.pool)
            self.assert_ends_well(self.bank(1))


if __name__ == "__main__":
    unittest.main()
