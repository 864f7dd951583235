"""A refused pool is never changed: whatever the reason, engine and medium, its bytes, length and mode are as they were, and a run that is
not refused finds the state that was durable. Each pool here has an unfinished epoch, so that recovery has something to change."""

import fcntl
import resource
import shutil
import subprocess
import unittest

from command_line import BUILD, TOOL, CommandLineTest
from support import engines

ENGINES = engines.names_for_any_compiler()
# A mapped medium on any file system: what recovery stores there is in the file at once.
MEDIA = ("file", "memory")
PAGE = 4096
UNFINISHED = BUILD / "bin/cli_unfinished"
LAUNCHER = BUILD / "bin/faults_launcher"


class RefusedPools(CommandLineTest):
    def crashed_pool(self, engine, medium, program=UNFINISHED):
        pool = self.folder / f"{engine}-{medium}-{program.name}.pool"
        done = self.run_on(pool, medium, program=program, options=("--engine", engine, "--durability", "process",
                                                                  "--pool-size", "8M", "--pool-max", "64M"))
        self.assertEqual(done.returncode, -9, done.stderr)
        return pool

    def run_on(self, pool, medium, *arguments, program=UNFINISHED, options=(), before=(), **environment):
        words = ("run", "--quiet", "--pool", pool, "--medium", medium, "--interval", "1h", *options, "--", program, *arguments)
        tool, *rest = (*before, TOOL)
        return self.stillpoint(*rest, *words, tool=tool, **environment)

    def each_pool(self):
        for engine in ENGINES:
            for medium in MEDIA:
                yield engine, medium, self.crashed_pool(engine, medium)

    def assert_left_alone(self, pool, medium, exit_code, message, *arguments, **how):
        done = self.assert_untouched_by(pool, lambda: self.run_on(pool, medium, *arguments, **how))
        self.assert_refused(done, exit_code, message)

    def assert_it_still_opens(self, pool, medium):
        done = self.run_on(pool, medium, "look")
        self.assertEqual((done.returncode, done.stdout), (0, "run start 3\n"), done.stderr)

    def test_because_another_engine_is_asked_for(self):
        for engine, medium, pool in self.each_pool():
            other = ENGINES[(ENGINES.index(engine) + 1) % len(ENGINES)]
            self.assert_left_alone(pool, medium, 65, f"engine {engine}", "look", options=("--engine", other))
            self.assert_it_still_opens(pool, medium)

    def test_because_the_addresses_are_taken(self):
        for _, medium, pool in self.each_pool():
            self.assert_left_alone(pool, medium, 69, "in use in this process", "look", LD_PRELOAD=str(BUILD / "lib/libcli_window.so"))
            self.assert_it_still_opens(pool, medium)

    def test_because_the_durable_globals_differ_or_cannot_be_kept(self):
        for engine, medium, pool in self.each_pool():
            if engine in engines.names(engines.RESTART_POINTS):
                self.assert_left_alone(pool, medium, 69, "SP_PERSISTENT", "look", program=BUILD / "bin/cli_unfinished_globals")
                self.assert_it_still_opens(pool, medium)
                continue
            pool = self.crashed_pool(engine, medium, BUILD / "bin/cli_unfinished_globals")
            # A program of the same name, with a variable of another size.
            other = self.folder / "other/cli_unfinished_globals"
            other.parent.mkdir(exist_ok=True)
            shutil.copy(BUILD / "bin/cli_unfinished_more_globals", other)
            self.assert_left_alone(pool, medium, 65, "SP_PERSISTENT", "look", program=other)

    def test_because_the_kernel_lacks_what_is_forced(self):
        for engine, medium, pool in self.each_pool():
            if engine in engines.names(engines.RESTART_POINTS, engines.TRANSACTIONS):
                continue  # No page is loaded at its first touch.
            done = self.assert_untouched_by(pool, lambda: self.run_on(
                pool, medium, "look", options=("--recovery", "lazy"), before=(LAUNCHER, "userfaultfd", "1")))
            self.assertEqual((done.returncode, done.stdout), (69, ""), done.stderr)
            self.assert_it_still_opens(pool, medium)

    def test_because_there_is_no_memory(self):
        """The n-th allocation fails: either the program runs, or the pool is as it was."""
        for _, medium, pool in self.each_pool():
            before = pool.read_bytes()
            refused = 0
            for n in (*range(2, 40, 6), *range(40, 400, 60)):
                done = self.run_on(pool, medium, "look", FAULTS_MEMORY=str(n), LD_PRELOAD=str(BUILD / "lib/libfaults_memory.so"))
                if done.stdout == "":
                    refused += 1
                    self.assertIn(done.returncode, (71, -6), f"allocation {n}: {done.stderr}")  # -6: in the command, by libstdc++.
                    self.assertTrue(pool.read_bytes() == before, f"allocation {n}: the pool was changed. {done.stderr}")
                pool.write_bytes(before)
            self.assertGreater(refused, 3)

    def test_because_there_is_no_address_space(self):
        for _, medium, pool in self.each_pool():
            def limit(): resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
            words = [TOOL, "run", "--quiet", "--pool", pool, "--medium", medium, "--", UNFINISHED, "look"]
            before = pool.read_bytes()
            done = subprocess.run([str(word) for word in words], preexec_fn=limit, capture_output=True, text=True, check=False,
                                  timeout=600)
            if done.returncode != 0:  # Otherwise everything that this medium maps fits.
                self.assert_refused(done, 71, "ulimit -v|address")
                self.assertTrue(pool.read_bytes() == before, f"the pool was changed. {done.stderr}")

    def test_because_it_is_damaged(self):
        """A flipped bit in each of many pages: either the program runs, or the pool is as it was."""
        for engine, medium, pool in self.each_pool():
            sound = pool.read_bytes()
            refused = 0
            written = [at for at in range(0, len(sound), PAGE) if any(sound[at:at + PAGE])]
            for page in written[:8] + written[8::max(1, (len(written) - 8) // 12)]:
                damaged = bytearray(sound)
                place = next(at for at in range(page, page + PAGE) if damaged[at])
                damaged[place] ^= 0x81
                pool.write_bytes(damaged)
                # Loaded later, a damaged page ends a program that has begun already: no refusal.
                done = self.run_on(pool, medium, "look", options=("--recovery", "eager"))
                if done.stdout == "":
                    refused += 1
                    self.assertTrue(pool.read_bytes() == damaged, f"{place:#x}: the pool was changed. {done.stderr}")
            self.assertGreater(refused, 0, "no damage was noticed")

    def test_because_its_end_is_missing(self):
        for _, medium, pool in self.each_pool():
            with open(pool, "r+b") as file:
                file.truncate(pool.stat().st_size - PAGE)
            self.assert_left_alone(pool, medium, 65, "bytes", "look")

    def test_because_it_is_open_elsewhere(self):
        for _, medium, pool in self.each_pool():
            with open(pool, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self.assert_left_alone(pool, medium, 75, "open in", "look")
            self.assert_it_still_opens(pool, medium)


if __name__ == "__main__":
    unittest.main()
