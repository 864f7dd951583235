"""`stillpoint copy --incremental-since` and `stillpoint restore` of a copy with its increments: exactly the pool that was, or a clear
refusal and nothing made. Increments of busy programs: tests/kill/copy_loop.py."""

import json
import os
import random
import subprocess
import time
import unittest

from command_line import COUNTER, SMALL, TOOL
from copy_test import CopyTest


class IncrementTest(CopyTest):
    def copy(self, *words):
        done = self.stillpoint("copy", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def increment(self, base, new, pool=None):
        return self.copy("--incremental-since", base, pool or self.pool, new)

    def chain(self):
        """A copy, two increments, and the bytes of the pool after each."""
        self.new_pool()
        self.base, self.first, self.second = (self.folder / name for name in ("base", "first", "second"))
        self.copy(self.pool, self.base)
        states = [self.pool.read_bytes()]
        for base, new in ((self.base, self.first), (self.first, self.second)):
            self.run_counter()
            self.increment(base, new)
            states.append(self.pool.read_bytes())
        return states

    def restore(self, *words):
        return self.stillpoint("restore", *words, self.new)


class Increments(IncrementTest):
    def test_make_the_pool_that_was_at_each_of_them(self):
        states = self.chain()
        names = self.names()
        for count, increments in enumerate(((), (self.first,), (self.first, self.second))):
            done = self.restore(self.base, *increments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(self.new.read_bytes() == states[count])
            self.assertEqual(self.names(), sorted([*names, "new.pool"]))
            self.assertEqual(self.stillpoint("check", self.new).returncode, 0)
            self.assertIn(f"run {count + 2} start ", self.run_counter(pool=self.new).stdout)
            self.new.unlink()
        self.assertLess(self.first.stat().st_size, self.base.stat().st_blocks * 512)

    def test_of_a_pool_that_grows(self):
        self.large_pool(2000)
        base, first = self.folder / "base", self.folder / "first"
        self.copy(self.pool, base)
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, "--", TOOL.parent / "bank", "--accounts", 2000, "--transfers", 3000)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.increment(base, first)
        self.assertEqual(self.restore(base, first).returncode, 0)
        self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())

    def test_say_what_they_are(self):
        self.chain()
        facts = json.loads(self.stillpoint("info", "--json", self.second).stdout)
        epochs = [json.loads(self.stillpoint("info", "--json", path).stdout)["durable_epoch"] for path in (self.base, self.first)]
        self.assertEqual(facts["base_epoch"], epochs[1])
        self.assertGreater(facts["durable_epoch"], epochs[1])
        self.assertEqual(facts["increment_bytes"], self.second.stat().st_size)
        self.assertRegex(self.stillpoint("info", self.first).stdout, rf"follows +the copy of epoch {epochs[0]}\n")
        self.assertRegex(self.stillpoint("check", self.first).stdout, "an increment from epoch .* and sound")
        self.assertEqual(json.loads(self.stillpoint("check", "--json", self.first).stdout)["result"], "sound")
        for command in (("run", "--pool", self.first, "--", "true"), ("dump", self.first), ("copy", self.first, self.new)):
            done = self.stillpoint(*command)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertRegex(done.stderr, "an increment")
        self.assertFalse(self.new.exists())

    def test_tell_their_figures(self):
        self.new_pool()
        base = self.folder / "base"
        self.copy(self.pool, base)
        self.run_counter()
        figures = json.loads(self.copy("--json", "--incremental-since", base, self.pool, self.new).stdout)
        self.assertEqual((figures["verified"], figures["in_use"], figures["base"]), (True, False, str(base)))
        self.assertEqual(figures["increment_bytes"], self.new.stat().st_size)
        self.assertGreater(figures["changed_pages"], 0)
        again = json.loads(self.copy("--json", "--incremental-since", self.new, self.pool, self.folder / "same").stdout)
        self.assertEqual((again["verified"], again["changed_pages"], again["cleared_pages"]), (True, 0, 0))

    def test_of_a_program_at_work(self):
        for options in (SMALL, ("--durability", "power", *SMALL[2:]), ("--medium", "memory", *SMALL)):
            with self.subTest(options=options):
                program = self.waiting_program(options)
                base, first = self.folder / "base", self.folder / "first"
                self.copy(self.pool, base)
                figures = json.loads(self.copy("--json", "--incremental-since", base, self.pool, first).stdout)
                self.assertEqual((figures["in_use"], figures["process"], figures["verified"]), (True, program.pid, True))
                second = self.folder / "second"
                figures = json.loads(self.copy("--json", "--incremental-since", first, self.pool, second).stdout)
                self.assertEqual((figures["in_use"], figures["verified"]), (True, False))
                self.assertIsNone(program.poll())
                program.kill()
                program.wait()
                self.assertEqual(self.restore(base, first, second).returncode, 0)
                self.assertIn("run 2 start ", self.stillpoint("run", "--quiet", "--pool", self.new, "--", COUNTER).stdout)
                for path in (self.new, self.pool, base, first, second):
                    path.unlink()

    def test_go_through_pipes(self):
        states = self.chain()
        stream, names = self.folder / "stream", self.names()
        with stream.open("wb") as out:
            done = subprocess.run(self.words(TOOL, "copy", "--incremental-since", self.base, self.pool, "-"), stdout=out,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with stream.open("rb") as file:
            done = subprocess.run(self.words(TOOL, "restore", self.base, "-", self.new), stdin=file, capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.new.read_bytes() == states[2])
        self.assertEqual(self.names(), sorted([*names, "new.pool", "stream"]))
        self.assert_refused(self.stillpoint("restore", "-", "-", self.folder / "x"), 64, "given twice")

    def test_of_an_empty_one_stand_for_a_copy_that_is_elsewhere(self):
        self.new_pool()
        base, stand_in, first = (self.folder / name for name in ("base", "stand-in", "first"))
        self.copy(self.pool, base)
        self.increment(base, stand_in, pool=base)
        kept = base.rename(self.folder / "far-away")
        self.run_counter()
        self.increment(stand_in, first)
        for chain in ((kept, first), (kept, stand_in, first)):  # The empty one may be left out.
            self.assertEqual(self.restore(*chain).returncode, 0)
            self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())
            self.new.unlink()


class FromTheProgram(IncrementTest):
    """sp_copy and sp_copy_since, called by a program that has the pool open."""

    def chain_of_program(self, options=SMALL):
        chain = [self.folder / name for name in ("base", "first", "second")]
        for new, base in zip(chain, (None, *chain)):
            done = self.stillpoint("run", "--quiet", "--pool", self.pool, *options, "--", COUNTER, "copy", new, *([base] if base else []))
            self.assertEqual(done.returncode, 0, done.stderr)
        return chain

    def test_increments_make_the_pool_that_was(self):
        for options in (SMALL, ("--medium", "memory", *SMALL)):
            with self.subTest(options=options):
                chain = self.chain_of_program(options)
                self.assertEqual(self.names(), ["a.pool", "base", "first", "second"])
                self.assertLess(chain[1].stat().st_size, chain[0].stat().st_blocks * 512)
                for count in range(1, len(chain) + 1):
                    done = self.restore(*chain[:count])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"run {count + 1} start ", self.run_counter(pool=self.new).stdout)
                    self.new.unlink()
                # Increments of the program and of the command follow each other.
                third = self.folder / "third"
                self.increment(chain[-1], third)
                self.assertEqual(self.restore(*chain, third).returncode, 0)
                self.assertTrue(self.new.read_bytes() == self.pool.read_bytes())
                for path in (*chain, third, self.new, self.pool):
                    path.unlink()

    def test_what_is_refused_leaves_nothing(self):
        chain = self.chain_of_program()
        other = self.folder / "other.pool"
        self.run_counter(pool=other)
        names = self.names()
        for pool, new, base, message in ((other, self.new, chain[0], "of the same pool"), (self.pool, self.new, "none", "none"),
                                         (self.pool, chain[1], chain[0], "exists"), (self.pool, self.new, self.pool, "a.pool"),
                                         (self.pool, self.new, "rados://data/bank", "pools in files")):
            with self.subTest(message=message):
                done = self.run_counter("copy", new, base, pool=pool)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertEqual(self.names(), names)
        self.run_counter("copy", self.folder / "newer", chain[2])
        self.assertEqual(self.stillpoint("restore", "--force", *chain[:2], self.pool).returncode, 0)
        done = self.run_counter("copy", self.new, self.folder / "newer")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("restored from an older copy", done.stderr)
        self.assertFalse(self.new.exists())

    def test_a_program_that_is_killed_leaves_a_whole_increment_or_none(self):
        self.large_pool()
        base = self.folder / "base"
        self.copy(self.pool, base)
        words = ("run", "--quiet", "--pool", self.pool, "--", COUNTER, "copy", self.new, base)
        begin = time.monotonic()
        self.assertEqual(self.stillpoint(*words).returncode, 0)
        longest, chance = 1.2 * (time.monotonic() - begin), random.Random(11)
        self.new.unlink()
        for _ in range(15):
            process = self.run_in_background(COUNTER, "copy", self.new, base, options=())
            time.sleep(chance.uniform(0, longest))
            process.kill()
            process.wait()
            if self.new.exists():
                self.assertEqual(self.restore_to("restored", base, self.new).returncode, 0)
                self.new.unlink()
        self.assertEqual(self.stillpoint(*words).returncode, 0)
        self.assertEqual(self.names(), ["a.pool", "base", "new.pool"])
        self.assertEqual(self.restore_to("restored", base, self.new).returncode, 0)

    def restore_to(self, name, *words):
        """Restored, and removed again."""
        done = self.stillpoint("restore", *words, self.folder / name)
        (self.folder / name).unlink(missing_ok=True)
        return done


class Refusals(IncrementTest):
    def assert_nothing_made(self, done, exit_code, message):
        self.assert_refused(done, exit_code, message)
        self.assertEqual([name for name in self.names() if name.startswith("new")], [])

    def test_of_chains_that_do_not_fit(self):
        self.chain()
        self.assert_nothing_made(self.restore(self.base, self.second), 64, "is missing")
        self.assert_nothing_made(self.restore(self.base, self.second, self.first), 64, "is missing, or their order")
        self.assert_nothing_made(self.restore(self.base, self.first, self.first), 64, "is missing, or their order")
        self.assert_nothing_made(self.restore(self.first, self.second), 64, "name the full copy")
        self.assert_nothing_made(self.restore(self.base, self.base), 65, "not an increment")
        self.assert_nothing_made(self.restore(self.base, self.folder / "none"), 66, "none")
        self.assert_refused(self.stillpoint("restore", self.base), 64, "POOL is missing")

    def test_of_another_pool(self):
        self.chain()
        other = self.folder / "other.pool"
        self.run_counter(pool=other)
        self.assert_nothing_made(self.restore(other, self.first), 64, "of one pool")
        self.assert_nothing_made(self.stillpoint("copy", "--incremental-since", self.base, other, self.new), 64, "of the same pool")

    def test_of_a_pool_that_went_another_way(self):
        self.chain()
        self.assertEqual(self.stillpoint("restore", "--force", self.base, self.pool).returncode, 0)
        self.assert_nothing_made(self.stillpoint("copy", "--incremental-since", self.second, self.pool, self.new), 64,
                                 "restored from an older copy")
        self.run_counter()  # To the epoch of `first`, perhaps; the bytes are others.
        other = self.folder / "other"
        self.increment(self.base, other)
        self.assert_nothing_made(self.restore(self.base, other, self.second), 64, "bytes there are others|is missing")
        self.run_counter(pool=self.base)
        self.assert_nothing_made(self.restore(self.base, self.first), 64, "follow")

    def test_of_a_base_whose_bytes_were_changed(self):
        self.chain()
        with self.base.open("r+b") as file:
            file.seek(self.base.stat().st_size - 4096)
            file.write(b"other")
        self.assert_nothing_made(self.restore(self.base, self.first), 64, "the bytes there are others")

    def test_of_damaged_and_cut_increments(self):
        self.chain()
        sound = self.first.read_bytes()
        for at in (9, 200, 4100, len(sound) - 1):
            damaged = bytearray(sound)
            damaged[at] ^= 4
            self.first.write_bytes(damaged)
            self.assert_nothing_made(self.restore(self.base, self.first, self.second), 65, "damaged")
            self.assert_refused(self.stillpoint("check", self.first), 65, "damaged")
        for length in (20, 5000, len(sound) - 1):
            self.first.write_bytes(sound[:length])
            self.assert_nothing_made(self.restore(self.base, self.first), 65, "ends|missing")

    def test_of_a_damaged_pool(self):
        self.large_pool()
        base = self.folder / "base"
        self.copy(self.pool, base)
        first = self.folder / "first"
        self.increment(base, first)
        with self.pool.open("r+b") as file:
            for page in range(0, self.pool.stat().st_size // 4096):
                file.seek(page * 4096 + 512)
                file.write(b"damaged")
        for since in (base, first):
            done = self.stillpoint("copy", "--incremental-since", since, self.pool, self.new)
            self.assert_nothing_made(done, 65, "not (copied|sound)|damage|checksum")

    def test_of_bad_words(self):
        self.chain()
        since = ("copy", "--incremental-since")
        self.assert_nothing_made(self.stillpoint(*since, "12", self.pool, self.new), 64, "takes a file, not an epoch")
        self.assert_nothing_made(self.stillpoint(*since, "none", self.pool, self.new), 66, "none")
        self.assert_nothing_made(self.stillpoint("copy", "--incremental-since", self.base, "--pool-max", "1G", self.pool, self.new), 64,
                                 "exclude each other")
        self.assert_refused(self.stillpoint("copy", "--incremental-since", self.base, self.pool, self.first), 73, "exists already")
        self.unfinished.write_text("mine\n" * 5000)
        done = self.assert_untouched_by(self.unfinished, lambda: self.stillpoint(*since, self.base, self.pool, self.new))
        self.assert_refused(done, 73, "not an unfinished increment")

    def test_of_a_base_in_use(self):
        program = self.waiting_program()
        self.copy(self.pool, self.folder / "base")
        done = self.stillpoint("copy", "--incremental-since", self.pool, self.folder / "base", self.new)
        self.assert_nothing_made(done, 75, f"process {program.pid}")


class Kills(IncrementTest):
    def test_leave_a_whole_increment_or_none(self):
        self.large_pool()
        base = self.folder / "base"
        self.copy(self.pool, base)
        self.assert_bank_is_sound(self.pool)
        for attempt in range(25):
            process = subprocess.Popen(self.words(TOOL, "copy", "--incremental-since", base, self.pool, self.new), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            time.sleep(0.002 * attempt)
            process.kill()
            process.communicate()
            if self.new.exists():
                self.assertEqual(self.stillpoint("check", self.new).returncode, 0)
                self.new.unlink()
        self.increment(base, self.new)
        self.assertEqual(self.names(), ["a.pool", "base", "new.pool"])

    def test_of_a_restore_leave_the_old_pool_or_the_new_one(self):
        self.large_pool()
        base, first = self.folder / "base", self.folder / "first"
        self.copy(self.pool, base)
        self.assert_bank_is_sound(self.pool)
        self.increment(base, first)
        wanted = self.pool.read_bytes()
        for attempt in range(20):
            process = subprocess.Popen(self.words(TOOL, "restore", "--force", base, first, self.pool), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            time.sleep(0.005 * attempt)
            process.kill()
            process.communicate()
            self.assertTrue(self.pool.read_bytes()[:len(wanted)] == wanted)
        self.assertEqual(self.stillpoint("restore", "--force", base, first, self.pool).returncode, 0)
        self.assertTrue(self.pool.read_bytes() == wanted)


if __name__ == "__main__":
    os.environ.pop("STILLPOINT_POOL", None)
    unittest.main()
