"""`stillpoint copy` and `stillpoint restore`: a whole, verified pool under the new name, or none and a clear refusal. Copies of busy
programs have a loop of their own: tests/kill/copy_loop.py."""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

from command_line import BUILD, COUNTER, SMALL, TOOL, CommandLineTest

BANK = BUILD / "bin/bank"


class CopyTest(CommandLineTest):
    def setUp(self):
        super().setUp()
        self.new = self.folder / "new.pool"
        self.unfinished = self.folder / "new.pool.partial"

    def names(self):
        return sorted(entry.name for entry in self.folder.iterdir())

    def words(self, *words):
        return [str(word) for word in words]

    def run_in_background(self, *program, pool=None, options=SMALL):
        process = subprocess.Popen(self.words(TOOL, "run", "--quiet", "--pool", pool or self.pool, *options, "--", *program),
                                   cwd=self.folder, stdout=subprocess.PIPE, text=True)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(end)
        return process

    def waiting_program(self, options=SMALL):
        program = self.run_in_background(COUNTER, "wait", options=options)
        self.assertEqual([program.stdout.readline() for _ in range(2)][1], "ready\n")
        return program

    def large_pool(self, accounts=20000):
        """Some MiB of data."""
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, "--durability", "process", "--pool-size", "64M", "--pool-max", "256M",
                               "--", BANK, "--accounts", accounts, "--transfers", 100)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_bank_is_sound(self, pool):
        done = self.stillpoint("run", "--quiet", "--pool", pool, "--", BANK, "--accounts", 20000, "--transfers", 1)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Copy(CopyTest):
    def test_of_a_pool_at_rest_is_the_same_bytes_and_sparse(self):
        self.new_pool()
        done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("copy", self.pool, self.new))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"new\.pool: made from .*a\.pool, and sound at epoch \d+")
        self.assertEqual(self.names(), ["a.pool", "new.pool"])
        self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())
        self.assertEqual(self.new.stat().st_mode, self.pool.stat().st_mode)
        self.assertLess(self.new.stat().st_blocks * 512, self.pool.stat().st_size // 2)
        again = self.folder / "again.pool"
        self.assertEqual(self.stillpoint("copy", self.new, again).returncode, 0)
        self.assertTrue(again.read_bytes() == self.pool.read_bytes())
        self.assertIn("run 2 start ", self.run_counter(pool=again).stdout)

    def test_of_a_pool_in_use_is_consistent_and_leaves_the_program_alone(self):
        for options in (SMALL, ("--durability", "power", *SMALL[2:]), ("--medium", "memory", *SMALL)):
            with self.subTest(options=options):
                program = self.waiting_program(options)
                done = self.stillpoint("copy", "--json", self.pool, self.new)
                self.assertEqual(done.returncode, 0, done.stderr)
                figures = json.loads(done.stdout)
                self.assertEqual((figures["in_use"], figures["process"], figures["paused"]), (True, program.pid, False))
                self.assertLess(figures["held_ns"], 2_000_000_000)
                self.assertIn("run 2 start ", self.stillpoint("run", "--quiet", "--pool", self.new, "--", COUNTER).stdout)
                self.assertIsNone(program.poll())
                program.kill()
                program.wait()
                self.new.unlink()
                self.pool.unlink()

    def test_refuses_bad_input_and_leaves_nothing(self):
        self.new_pool()
        (self.folder / "text").write_text("no pool\n" * 2000)
        self.assert_refused(self.stillpoint("copy", self.folder / "text", self.new), 65, "not sound")
        self.assert_refused(self.stillpoint("copy", self.folder, self.new), 65, "not a regular file")
        self.assert_refused(self.stillpoint("copy", self.folder / "gone.pool", self.new), 66, "gone.pool")
        self.assert_refused(self.stillpoint("copy", self.pool, self.folder / "gone/new.pool"), 66)
        self.assert_refused(self.stillpoint("copy", self.pool), 64, "NEW")
        self.assert_refused(self.stillpoint("copy", "--hold-max", "1h", self.pool, self.new), 64, "hold-max")
        self.assert_refused(self.stillpoint("copy", "--json", self.pool, "-"), 64, "--json")
        self.assertEqual(self.names(), ["a.pool", "text"])

    def test_refuses_names_that_are_taken(self):
        self.new_pool()
        self.new.write_text("something else")
        self.assert_refused(self.assert_untouched_by(self.new, lambda: self.stillpoint("copy", self.pool, self.new)), 73, "exists already")
        self.new.unlink()
        self.unfinished.write_text("mine\n" * 5000)
        done = self.assert_untouched_by(self.unfinished, lambda: self.stillpoint("copy", self.pool, self.new))
        self.assert_refused(done, 73, "not an unfinished copy")
        self.assert_refused(self.stillpoint("copy", self.pool, self.pool), 73, "exists already")

    def test_refuses_a_damaged_pool(self):
        self.large_pool()
        with self.pool.open("r+b") as file:
            for page in range(0, self.pool.stat().st_size // 4096):
                file.seek(page * 4096 + 512)
                file.write(b"damaged")
        self.assert_refused(self.stillpoint("copy", self.pool, self.new), 65, "not sound")
        self.assertEqual(self.names(), ["a.pool"])

    def test_goes_on_after_a_kill_and_never_shows_half_a_copy(self):
        self.large_pool()
        resumed = 0
        for attempt in range(40):
            process = subprocess.Popen(self.words(TOOL, "copy", self.pool, self.new), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            while attempt % 2 == 1 and process.poll() is None and not self.unfinished.exists():
                pass  # However slow the machine is, some kills come in the middle.
            time.sleep(0.001 * (attempt // 2))
            process.kill()
            process.communicate()
            if self.new.exists():  # With the mark of an unfinished copy after its end, where the kill came before that was removed.
                self.assertTrue(self.new.read_bytes()[:self.pool.stat().st_size] == self.pool.read_bytes())
                self.assertEqual(self.stillpoint("check", self.new).returncode, 0)
                self.new.unlink()
            resumed += self.unfinished.exists()
        self.assertGreater(resumed, 0)
        self.assertEqual(self.stillpoint("copy", self.pool, self.new).returncode, 0)
        self.assertEqual(self.names(), ["a.pool", "new.pool"])
        self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())
        self.assert_bank_is_sound(self.new)

    def test_says_that_the_disk_is_full_and_goes_on_later(self):
        self.large_pool()

        def limit(): resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
        done = subprocess.run(self.words(TOOL, "copy", self.pool, self.new), preexec_fn=limit, capture_output=True, text=True, check=False)
        self.assert_refused(done, 73, "new.pool.partial")
        self.assertFalse(self.new.exists())
        self.assertEqual(self.stillpoint("copy", self.pool, self.new).returncode, 0)
        self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())

    def test_of_a_program_whose_writes_cannot_be_held(self):
        program = self.waiting_program(("--medium", "memory", "--engine", "respct", *SMALL))
        self.assert_refused(self.stillpoint("copy", self.pool, self.new), 75, f"process {program.pid}.*--pause")
        self.assertEqual(self.names(), ["a.pool"])
        figures = json.loads(self.stillpoint("copy", "--pause", "--json", self.pool, self.new).stdout)
        self.assertEqual((figures["in_use"], figures["paused"]), (True, True))
        self.assertNotIn("T", self.state_of(program))

    def state_of(self, program):
        with open(f"/proc/{program.pid}/stat", encoding="utf8") as file:
            return file.read().rpartition(")")[2].split()[0]

    def test_lets_a_paused_program_go_on_when_the_copier_is_killed(self):
        self.large_pool()
        program = self.waiting_program_on_bank()
        for attempt in range(25):
            process = subprocess.Popen(self.words(TOOL, "copy", "--pause", self.pool, self.new), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            time.sleep(0.002 * attempt)
            process.kill()
            process.communicate()
            self.new.unlink(missing_ok=True)
        deadline = time.monotonic() + 10
        while self.state_of(program) == "T" and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertNotEqual(self.state_of(program), "T")

    def waiting_program_on_bank(self):
        return self.run_in_background(BANK, "--accounts", 20000, "--transfers", 1 << 39, options=())

    def test_goes_through_a_pipe(self):
        self.large_pool()
        with (self.folder / "stream").open("wb") as stream:
            done = subprocess.run(self.words(TOOL, "copy", self.pool, "-"), stdout=stream, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "stream").read_bytes() == self.pool.read_bytes())
        with (self.folder / "stream").open("rb") as stream:
            done = subprocess.run(self.words(TOOL, "restore", "-", self.new), stdin=stream, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.names(), ["a.pool", "new.pool", "stream"])
        self.assert_bank_is_sound(self.new)
        with (self.folder / "stream").open("r+b") as stream:
            stream.truncate(5 << 20)
            done = subprocess.run(self.words(TOOL, "restore", "-", self.folder / "cut.pool"), stdin=stream, capture_output=True, text=True,
                                  check=False)
        self.assert_refused(done, 65, "not sound")
        self.assertEqual(self.names(), ["a.pool", "new.pool", "stream"])


class Restore(CopyTest):
    def test_takes_all_room_and_replaces_only_by_force(self):
        self.large_pool()
        self.assertEqual(self.stillpoint("copy", self.pool, self.new).returncode, 0)
        self.assert_refused(self.stillpoint("restore", self.new, self.pool), 73, "--force")
        done = self.stillpoint("restore", "--force", "--json", self.new, self.pool)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())
        self.assertGreaterEqual(self.pool.stat().st_blocks * 512, self.pool.stat().st_size)
        self.assert_bank_is_sound(self.pool)

    def test_refuses_a_pool_or_a_copy_in_use(self):
        self.new_pool()
        self.assertEqual(self.stillpoint("copy", self.pool, self.new).returncode, 0)
        program = self.waiting_program()
        self.assert_refused(self.stillpoint("restore", "--force", self.new, self.pool), 75, f"process {program.pid}")
        self.assert_refused(self.stillpoint("restore", self.pool, self.folder / "b.pool"), 75, "copy it first")
        self.assertIsNone(program.poll())

    def test_leaves_the_old_pool_or_the_new_one_after_each_kill(self):
        self.large_pool()
        old = self.pool.read_bytes()
        self.assertEqual(self.stillpoint("copy", self.pool, self.new).returncode, 0)
        self.assert_bank_is_sound(self.pool)
        for attempt in range(30):
            process = subprocess.Popen(self.words(TOOL, "restore", "--force", self.new, self.pool), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            time.sleep(0.004 * attempt)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            checked = self.stillpoint("check", self.pool)
            self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(self.stillpoint("restore", "--force", self.new, self.pool).returncode, 0)
        self.assertTrue(self.pool.read_bytes() == old)


if __name__ == "__main__":
    os.environ.pop("STILLPOINT_POOL", None)
    unittest.main()
