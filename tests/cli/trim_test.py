"""`stillpoint trim`: the pool has less room on the disk, and is the same; killed in the middle it is the same, too."""

import random
import shutil
import subprocess
import time
import unittest

from command_line import BUILD, SMALL, TOOL, CommandLineTest

BANK = BUILD / "bin/bank"


def disk_bytes(path):
    return path.stat().st_blocks * 512


class Trim(CommandLineTest):
    def bank(self, transfers, *options, accounts=200000):
        """The program verifies the whole bank first."""
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, *options, "--", BANK, "--accounts", accounts, "--threads", 2,
                               "--transfers", transfers)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_pool_is_the_same_and_goes_on(self):
        for options in ((), ("--medium", "memory", "--durability", "power")):
            with self.subTest(options=options):
                self.bank(20000, "--pool-max", "64M", "--pool-size", "32M", *options)
                shutil.copy(self.pool, self.folder / "before.pool")
                before = disk_bytes(self.pool)
                done = self.stillpoint("trim", self.pool)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("given back", done.stdout)
                self.assertLess(disk_bytes(self.pool), before * 2 // 3)
                self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)
                self.assertEqual(self.stillpoint("diff", "before.pool", self.pool).returncode, 0)
                self.assertEqual(self.stillpoint("trim", self.pool).returncode, 0)
                self.bank(40000, *options)
                self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)
                self.pool.unlink()

    def test_pools_of_each_engine_with_two_copies(self):
        for engine, *more in (("pmthreads",), ("pronto",), ("spht",), ("nvthreads", "--threads", "processes")):
            with self.subTest(engine=engine):
                path = self.folder / f"{engine}.pool"
                for _ in range(2):
                    self.assertEqual(self.run_counter(pool=path, options=("--engine", engine, *more)).returncode, 0)
                    done = self.stillpoint("trim", path)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(self.stillpoint("check", path).returncode, 0)
        path = self.folder / "respct.pool"
        self.assertEqual(self.run_counter(pool=path, options=("--engine", "respct")).returncode, 0)
        self.assert_refused(self.stillpoint("trim", path), 65, "one copy")

    def test_after_a_crash_and_killed_in_the_middle_nothing_is_lost(self):
        chance = random.Random(26)
        self.bank(10000, "--pool-max", "64M", "--pool-size", "8M", "--interval", "5ms", accounts=20000)
        for turn in range(10):
            words = (TOOL, "--quiet", "run", "--pool", self.pool, "--interval", "5ms", "--", BANK, "--accounts", 20000,
                     "--transfers", 10**8)
            with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL) as program:
                time.sleep(chance.uniform(0.05, 0.15))
                program.kill()
            with subprocess.Popen([str(word) for word in (TOOL, "trim", self.pool)], stdout=subprocess.DEVNULL) as trims:
                if turn % 2 == 0:
                    time.sleep(chance.uniform(0.002, 0.02))
                    trims.kill()
            self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)
            self.bank(1, accounts=20000)

    def test_a_damaged_pool_is_left_alone(self):
        self.bank(10000, *SMALL, accounts=20000)
        content = bytearray(self.pool.read_bytes())
        for page in range(6, 40):
            content[page * 4096 + 100] ^= 1
        self.pool.write_bytes(content)
        before = self.pool.read_bytes()
        self.assert_refused(self.stillpoint("trim", self.pool), 65, "restore")
        self.assertEqual(self.pool.read_bytes(), before)


if __name__ == "__main__":
    unittest.main()
