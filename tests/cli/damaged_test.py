"""Damaged pools: what a start does of them by option `damaged`, and what becomes of a damaged commit record."""

import json
import random
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from command_line import BUILD, ROOT, SMALL, TOOL, CommandLineTest
from support import json_schema

sys.path.insert(0, str(ROOT / "tests/nvhooks"))
from compiler_case import CLANG, PLUGINS  # noqa: E402  (the path must be set first)

PAGE = 4096
RECORDS = 2  # The first page of the commit records.
READ_ONLY = 12  # SP_E_POOL_READ_ONLY


def newest_record(content):
    """Epoch of the newest commit record, and the first page of its pair."""
    epochs = [struct.unpack_from("<Q", content, (RECORDS + page) * PAGE + 24)[0] for page in (0, 2)]
    newest = max(epochs)
    return newest, RECORDS + 2 * (newest % 2)


def witness_of(epoch):
    return (RECORDS + (2 if epoch % 2 == 0 else 1)) * PAGE + 2048


class Damaged(CommandLineTest):
    """The engines whose checksums cover the program's data; nvthreads needs programs of its own compiler."""

    @classmethod
    def setUpClass(cls):
        cls.programs = {"pmthreads": BUILD / "bin/cli_damage", "pronto": BUILD / "bin/cli_damage", "spht": BUILD / "bin/cli_damage_spht"}
        if CLANG and PLUGINS:
            shared = tempfile.TemporaryDirectory()
            cls.addClassCleanup(shared.cleanup)
            cls.programs["nvthreads"] = Path(shared.name) / "cli_damage"
            source = Path(__file__).resolve().parent / "cli_damage.c"
            done = subprocess.run([TOOL, "cc", "--runtime=nvthreads", "-O1", "-pthread", source, "-o", cls.programs["nvthreads"]],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    def engine_of_pool(self):
        with self.pool.open("rb") as file:
            return file.read(64)[48:64].rstrip(b"\0").decode()

    def run_damage(self, *arguments, engine="", options=()):
        program = self.programs.get(engine or (self.engine_of_pool() if self.pool.exists() else ""), BUILD / "bin/cli_damage")
        made_by = ("--engine", engine) if engine else ()
        if "--interval-ms" not in options:
            options = ("--interval-ms", "100", *options)  # The program waits for an epoch.
        return self.stillpoint("run", "--pool", self.pool, *SMALL, *made_by, *options, "--", program, *arguments)

    def pool_of(self, engine, runs=3):
        """The bytes of a pool after so many runs that ended normally."""
        for _ in range(runs):
            done = self.run_damage(engine=engine)
            self.assertEqual(done.returncode, 0, done.stderr)
        return bytearray(self.pool.read_bytes())

    def write(self, content):
        self.pool.write_bytes(content)

    def killed_pool_of(self, engine):
        """Three runs that ended normally, and a fourth that was killed right after its checkpoint: nothing was written since."""
        self.pool_of(engine)
        done = self.run_damage("kill", options=("--interval-ms", "60000"))
        self.assertIn("checkpoint 0", done.stdout, done.stderr)
        return bytearray(self.pool.read_bytes())

    def with_damaged_data(self, engine, value):
        """One byte of the copy of the data of that run is another one."""
        content = self.pool_of(engine) if value == 3 else self.killed_pool_of(engine)
        at = content.find(struct.pack("<q", value) * 400)
        self.assertGreater(at, 0)
        content[at + 1000] ^= 0x10
        self.write(content)
        return content

    def values(self, done):
        return done.stdout.split("\n")[0].split(":")[1].split()

    def test_both_newest_commit_records_are_made_up_for_by_the_third(self):
        for engine in (*self.programs, "respct"):
            with self.subTest(engine):
                self.pool.unlink(missing_ok=True)
                content = self.pool_of(engine)
                epoch, first = newest_record(content)
                for page in (first, first + 1):
                    content[page * PAGE:page * PAGE + 64] = b"\x5a" * 64
                self.write(content)
                checked = self.stillpoint("check", self.pool)
                self.assertEqual(checked.returncode, 0, checked.stderr)
                self.assertIn("their third copy", checked.stdout)
                self.assertIn(f"sound at epoch {epoch}", checked.stdout)
                done = self.run_damage()
                self.assertEqual(done.returncode, 0, done.stderr)
                if engine != "respct":  # There only logged variables are data.
                    self.assertEqual(set(self.values(done)), {"3"})
                self.assertNotIn("third copy", self.stillpoint("check", self.pool).stdout)

    def test_all_three_look_as_after_an_interrupted_commit_and_check_says_so(self):
        content = self.pool_of("pmthreads")
        epoch, first = newest_record(content)
        for at in (first * PAGE, (first + 1) * PAGE, witness_of(epoch)):
            content[at:at + 64] = b"\x5a" * 64
        self.write(content)
        checked = self.stillpoint("check", self.pool)
        self.assertIn("a newer epoch than", checked.stdout + checked.stderr)

    def test_refuse_is_the_default_and_says_what_helps(self):
        for engine in self.programs:
            with self.subTest(engine):
                self.pool.unlink(missing_ok=True)
                self.with_damaged_data(engine, 3)
                done = self.assert_untouched_by(self.pool, lambda: self.run_damage(options=("--recovery", "eager")))
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertIn(f"stillpoint check {self.pool}", done.stderr)

    def test_read_only_opens_what_is_sound_and_changes_nothing(self):
        for engine in self.programs:
            with self.subTest(engine):
                self.pool.unlink(missing_ok=True)
                self.with_damaged_data(engine, 3)
                done = self.assert_untouched_by(self.pool, lambda: self.run_damage(options=("--damaged", "read-only")))
                self.assertEqual(done.returncode, 0, done.stderr)
                values = self.values(done)
                self.assertEqual(len([value for value in values if value != "3"]), 1, done.stdout)
                self.assertRegex(done.stdout, f"checkpoint {READ_ONLY} .*reading only")
                self.assertIn(f"wait {READ_ONLY}", done.stdout)
                self.assertIn("opened for reading only", done.stderr)
                self.assertRegex(done.stderr, "pages are sound, (1 are older and 0 are|0 are older and 1 are) lost")

    def test_read_only_of_a_sound_pool_changes_nothing_either(self):
        for engine in self.programs:
            with self.subTest(engine):
                self.pool.unlink(missing_ok=True)
                self.pool_of(engine)
                for arguments in ((), ("kill",)):
                    done = self.assert_untouched_by(self.pool,
                                                    lambda: self.run_damage(*arguments, options=("--damaged", "read-only")))
                    self.assertEqual(set(self.values(done)), {"3"}, done.stderr)
                self.assertEqual(set(self.values(self.run_damage())), {"3"})

    def test_read_only_of_respct_takes_the_names_that_are_proved(self):
        content = self.pool_of("respct")
        done = self.assert_untouched_by(self.pool, lambda: self.run_damage(options=("--damaged", "read-only")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("lost", done.stderr)
        at = content.find(b"data\0")
        self.assertGreater(at, 0)
        while at >= 0:
            content[at + 20] ^= 1
            at = content.find(b"data\0", at + 1)
        self.write(content)
        self.assertEqual(self.stillpoint("check", self.pool).returncode, 65)
        self.assertEqual(self.assert_untouched_by(self.pool, self.run_damage).returncode, 65)
        done = self.assert_untouched_by(self.pool, lambda: self.run_damage(options=("--damaged", "read-only")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "pages are sound, (1 are older and 0 are|0 are older and 1 are) lost")
        self.assertIn(f"wait {READ_ONLY}", done.stdout)

    def test_read_only_needs_a_pool(self):
        done = self.run_damage(options=("--damaged", "read-only"))
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertFalse(self.pool.exists())

    def test_older_epoch_goes_back_where_the_epoch_before_is_sound(self):
        for engine in self.programs:
            with self.subTest(engine):
                self.pool.unlink(missing_ok=True)
                content = self.with_damaged_data(engine, 4)
                epoch, _ = newest_record(content)
                done = self.run_damage(options=("--damaged", "older-epoch"))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"went back from epoch {epoch} to epoch ", done.stderr)
                # The logs still have the section of nvthreads, and the transactions of spht: they are done again.
                kept = 4 if engine in ("nvthreads", "spht") else 3
                self.assertEqual(set(self.values(done)), {str(kept)})
                again = self.run_damage()
                self.assertEqual(set(self.values(again)), {str(kept + 1)}, again.stderr)
                self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)

    def test_older_epoch_is_refused_where_the_epoch_before_is_damaged_too(self):
        content = self.with_damaged_data("pmthreads", 3)  # A last epoch without changes came after it.
        done = self.run_damage(options=("--damaged", "older-epoch"))
        self.assert_refused(done, 65, "does not help")
        self.assertEqual(bytes(content), self.pool.read_bytes())

    def test_older_epoch_leaves_a_sound_pool_alone(self):
        self.pool_of("pmthreads")
        done = self.run_damage(options=("--damaged", "older-epoch"))
        self.assertEqual(set(self.values(done)), {"3"}, done.stderr)
        self.assertNotIn("went back", done.stderr)

    def test_older_epoch_is_refused_where_no_checksum_proves_it(self):
        content = self.pool_of("respct")
        _, first = newest_record(content)
        for page in range(RECORDS, RECORDS + 4):
            content[page * PAGE:page * PAGE + 64] = b"\x5a" * 64
            content[page * PAGE + 2048:page * PAGE + 2112] = b"\x5a" * 64
        self.write(content)
        done = self.assert_untouched_by(self.pool, lambda: self.run_damage(options=("--damaged", "older-epoch")))
        self.assert_refused(done, 65, "does not help")

    def salvaged(self, new, exit_code=1):
        done = self.assert_untouched_by(self.pool, lambda: self.stillpoint("salvage", "--json", self.pool, new))
        self.assertEqual(done.returncode, exit_code, done.stderr)
        found = json.loads(done.stdout)
        json_schema.validate(found, "salvage")
        return found

    def run_on(self, pool):
        self.pool = self.folder / pool
        done = self.run_damage()
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.values(done)

    def test_salvage_keeps_every_page_but_the_damaged_one(self):
        for number, engine in enumerate(self.programs):
            with self.subTest(engine):
                self.pool = self.folder / f"{engine}.pool"
                self.with_damaged_data(engine, 3)
                found = self.salvaged(f"new-{number}.pool")
                self.assertEqual(found["pages_older"] + found["pages_lost"], 1)
                self.assertEqual([row["handle"] for row in found["handles"]], ["data"])
                values = self.run_on(f"new-{number}.pool")
                self.assertEqual(len([value for value in values if value != "3"]), 1, values)

    def test_a_damaged_log_of_nvthreads_is_found_and_its_pages_are_salvaged(self):
        if "nvthreads" not in self.programs:
            self.skipTest("no compiler for such programs")
        content = self.killed_pool_of("nvthreads")
        last = content.rfind(struct.pack("<q", 4) * 400)  # The record of the last section, which no page copy has yet.
        self.assertGreater(last, 0)
        content[last + 1000] ^= 0x10
        self.write(content)
        checked = self.stillpoint("check", "--json", self.pool)
        report = json.loads(checked.stdout)
        if report["result"] == "sound":  # A replay was quicker: the record is not needed any more.
            return
        self.assertIn("logs", [part["part"] for part in report["parts"]])
        self.assertIn("pages", report["parts_sound"])
        found = self.salvaged("new.pool")
        self.assertEqual((found["pages_older"], found["pages_lost"]), (0, 0))
        self.assertGreater(found["findings_total"], 0)

    def test_salvage_makes_a_lost_image_header_again(self):
        for number, engine in enumerate(self.programs):
            with self.subTest(engine):
                self.pool = self.folder / f"{engine}.pool"
                content = self.pool_of(engine)
                magic = b"\x93STIMAGE"
                at = content.find(magic)
                self.assertGreaterEqual(at, 0)
                while at >= 0:
                    content[at:at + 256] = b"\x5a" * 256
                    at = content.find(magic)
                self.write(content)
                self.assertEqual(self.run_damage().returncode, 65)
                found = self.salvaged(f"new-{number}.pool")
                self.assertTrue(found["header_made_again"])
                self.assertEqual(found["findings_total"], 0)
                self.assertEqual(self.stillpoint("check", f"new-{number}.pool").returncode, 0)
                self.assertEqual(set(self.run_on(f"new-{number}.pool")), {"3"})

    def test_killed_while_it_goes_back_the_pool_is_at_the_older_epoch_or_as_it_was(self):
        content = self.with_damaged_data("pmthreads", 4)
        chance = random.Random(3)
        for _ in range(12):
            self.write(content)
            command = (TOOL, "run", "--quiet", "--pool", self.pool, "--damaged", "older-epoch", "--", BUILD / "bin/cli_damage",
                       "kill")
            with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(chance.uniform(0, 0.05))
                process.kill()
            done = self.run_damage(options=("--damaged", "older-epoch"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(set(self.values(done))), 1)
            self.assertIn(self.values(done)[0], ("3", "4"))  # 4 once the program that was killed had made it durable again.


if __name__ == "__main__":
    unittest.main()
