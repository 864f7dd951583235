"""Pools that cannot be used: each command says why, with the documented code, and changes nothing."""

import json
import os
import shutil
import subprocess
import unittest

from command_line import BUILD, COUNTER, SMALL, TOOL, CommandLineTest

PAGE = 4096
FORGE = BUILD / "bin/cli_forge"


class BadPools(CommandLineTest):
    """`run`, `info` and `check` on the same bad file: the same code, the same reason, no byte changed."""

    def assert_bad(self, path, exit_code, *messages, commands=("run", "info", "check")):
        for command in commands:
            with self.subTest(command=command):
                done = self.assert_untouched_by(path, lambda: self.use(command, path))
                self.assert_refused(done, exit_code, str(path.name), *messages)

    def use(self, command, path):
        return self.run_counter(pool=path) if command == "run" else self.stillpoint(command, path)

    def test_a_missing_pool_is_made_by_run_only(self):
        for command in ("info", "check", "stats"):
            self.assert_refused(self.stillpoint(command, self.pool), 66, "a.pool")
        self.assertFalse(self.pool.exists())
        self.new_pool()

    def test_a_foreign_file(self):
        self.pool.write_bytes(b"#!/bin/sh\necho not a pool\n" * 4096)
        self.assert_bad(self.pool, 65, "not a")

    def test_an_empty_file(self):
        self.pool.write_bytes(b"")
        self.assert_bad(self.pool, 65)

    def test_a_folder(self):
        self.pool.mkdir()
        for command in ("info", "check"):
            self.assert_refused(self.stillpoint(command, self.pool), 65, "a.pool")

    def test_a_truncated_pool(self):
        pool = self.new_pool()
        with open(pool, "r+b") as file:
            file.truncate(pool.stat().st_size // 2)
        self.assert_bad(pool, 65, "bytes|shorter|truncated|ends")

    def test_a_pool_whose_superblocks_are_both_damaged(self):
        pool = self.new_pool()
        with open(pool, "r+b") as file:
            for copy in (0, 1):
                file.seek(copy * PAGE + 64)
                file.write(b"\xa5" * 16)
        self.assert_bad(pool, 65)

    def test_a_pool_whose_superblocks_hold_what_this_version_does_not_know(self):
        for field, message in (("version", "version"), ("engine", "otherengine"), ("base", "base|address|window"),
                               ("layout", "layout"), ("feature", "feature")):
            pool = self.folder / f"{field}.pool"
            self.assertEqual(self.run_counter(pool=pool).returncode, 0)
            subprocess.run([FORGE, pool, field], check=True)
            self.assert_bad(pool, 65, message)

    def test_a_pool_that_another_process_has_open(self):
        pool = self.new_pool()
        holder = subprocess.Popen([TOOL, "run", "--quiet", "--pool", pool, *SMALL, "--", COUNTER, "wait"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual([holder.stdout.readline() for _ in range(2)][1], "ready\n")
            for command in ("run", "check"):
                self.assert_refused(self.use(command, pool), 75, "a.pool", str(holder.pid))
            info = self.stillpoint("info", "--json", pool)
            self.assertEqual(json.loads(info.stdout)["open_by_pid"], holder.pid, info.stderr)
            self.assert_stats_of(holder.pid)
        finally:
            holder.kill()
            holder.wait()
            holder.stdout.close()
        self.assert_refused(self.stillpoint("stats", pool), 69, "no process has the pool open")
        self.assertEqual(self.stillpoint("check", pool).returncode, 0)

    def assert_stats_of(self, process):
        done = self.stillpoint("stats", "--json", self.pool)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(done.stdout)
        self.assertEqual((figures["process"], figures["program"]), (process, "cli_counter"))
        self.assertGreaterEqual(figures["durable_epoch"], 1)
        self.assertIn("durable_epoch", self.stillpoint("stats", self.pool).stdout)

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_a_pool_that_may_not_be_written_or_read(self):
        pool = self.new_pool()
        self.folder.chmod(0o755)
        pool.chmod(0o444)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if shutil.which("setpriv") is None:
            self.skipTest("there is no setpriv")
        if subprocess.run([*as_nobody, "test", "-r", str(pool), "-a", "-x", str(TOOL)], check=False).returncode != 0:
            self.skipTest("another user cannot reach the build's folder")
        def run(): return subprocess.run([*as_nobody, TOOL, "run", "--quiet", "--pool", pool, "--", COUNTER],
                                         capture_output=True, text=True, check=False, timeout=600)
        self.assert_refused(self.assert_untouched_by(pool, run), 77, "a.pool")

    def test_a_folder_that_does_not_exist(self):
        self.assert_refused(self.run_counter(pool=self.folder / "gone/a.pool"), 66, "gone/a.pool")

    def test_a_damaged_page_is_found_by_check(self):
        pool = self.new_pool()
        self.assertEqual(self.stillpoint("check", pool).returncode, 0)
        content = bytearray(pool.read_bytes())
        place = next(at for at in range(len(content) - 8 * PAGE, 0, -1) if content[at] not in (0, 0xff))
        content[place] ^= 0xff
        pool.write_bytes(bytes(content))
        done = self.assert_untouched_by(pool, lambda: self.stillpoint("check", "--json", pool))
        # The byte may belong to the copy that is not in force: then the pool is sound.
        result = json.loads(done.stdout)["result"]
        self.assertIn((done.returncode, result), ((65, "damaged"), (0, "sound")))


    def test_check_tells_every_damage_and_not_only_the_first(self):
        pool = self.new_pool()
        content = bytearray(pool.read_bytes())
        table_end = (6 + 4 * 5) * PAGE  # Five table pages, in four copies each.
        in_use = [at for at in range(table_end, len(content), PAGE) if any(content[at:at + PAGE])]
        for at in in_use:
            content[at + 100] ^= 1
        content[2 * PAGE + 30] ^= 1  # And one of each pair of commit records.
        content[4 * PAGE + 30] ^= 1
        pool.write_bytes(bytes(content))
        done = self.assert_untouched_by(pool, lambda: self.stillpoint("check", "--json", pool))
        self.assertEqual(done.returncode, 65, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["result"], report["findings_total"]), ("damaged", len(report["findings"])))
        self.assertGreater(report["findings_total"], 2)
        pages = [found["finding"] for found in report["findings"] if "does not match its checksum" in found["finding"]]
        self.assertEqual(len(pages), len(set(pages)))
        self.assertGreater(len(pages), 2)
        self.assertEqual(done.stderr.count("stillpoint: also: "), report["findings_total"] - 1, done.stderr)

    def test_check_tells_of_a_commit_record_whose_twin_serves(self):
        pool = self.new_pool()
        content = bytearray(pool.read_bytes())
        for page in (2, 4):
            content[page * PAGE + 30] ^= 1
        pool.write_bytes(bytes(content))
        done = self.stillpoint("check", pool)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("one of the two commit records in file pages", done.stdout)
        self.assertEqual(self.run_counter().returncode, 0)


    def test_check_tells_of_a_table_page_whose_twin_serves(self):
        pool = self.new_pool()
        sound = pool.read_bytes()
        told = 0
        for page in (6, 7, 16, 17):  # The first table page: two copies in each of two places, of which one is in force.
            content = bytearray(sound)
            content[page * PAGE:(page + 1) * PAGE] = b"\xee" * PAGE
            pool.write_bytes(bytes(content))
            done = self.stillpoint("check", pool)
            self.assertEqual(done.returncode, 0, done.stderr)
            told += "one of the two copies of the table page" in done.stdout
            self.assertEqual(self.run_counter().returncode, 0)
        self.assertEqual(told, 2)


class GoodPools(CommandLineTest):
    def test_info_tells_identity_state_and_handles(self):
        pool = self.new_pool()
        facts = json.loads(self.stillpoint("info", "--json", "--handles", pool).stdout)
        self.assertEqual((facts["engine"], facts["durability"], facts["clean"]), ("pmthreads", "process", True))
        self.assertEqual([handle["handle"] for handle in facts["handles"]], ["runs"])
        text = self.stillpoint("info", pool).stdout
        self.assertIn("closed normally", text)
        self.assertEqual(self.run_counter("kill").returncode, -9)
        self.assertIn("crashed", self.stillpoint("info", pool).stdout)

    def test_info_and_check_change_nothing_of_a_crashed_pool(self):
        self.assertEqual(self.run_counter("kill").returncode, -9)
        for command in ("info", "check"):
            done = self.assert_untouched_by(self.pool, lambda name=command: self.stillpoint(name, self.pool))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sound at epoch", self.stillpoint("check", self.pool).stdout)

    def test_a_pool_with_one_damaged_superblock_is_usable_and_mended(self):
        pool = self.new_pool()
        with open(pool, "r+b") as file:
            file.seek(64)
            file.write(b"\xa5" * 16)
        self.assertIn("one of the two superblocks is damaged", self.stillpoint("check", pool).stdout)
        self.assertEqual(self.run_counter().returncode, 0)
        self.assertNotIn("superblocks is damaged", self.stillpoint("check", pool).stdout)


class Doctor(CommandLineTest):
    def test_tells_what_a_folder_can_promise_and_leaves_nothing(self):
        done = self.stillpoint("doctor", "--json", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = json.loads(done.stdout)
        self.assertEqual(facts["file_system"]["folder"], str(self.folder.resolve()))
        self.assertIn(facts["verdict"]["durability"], ("power", "process"))
        self.assertEqual(list(self.folder.iterdir()), [])

    @unittest.skipUnless(os.path.ismount("/dev/shm"), "there is no /dev/shm")
    def test_promises_no_power_durability_in_memory(self):
        done = self.stillpoint("doctor", "/dev/shm")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "durability +process only: tmpfs is memory")

    def test_refuses_folders_that_are_missing_or_cannot_hold_files(self):
        self.assert_refused(self.stillpoint("doctor", self.folder / "gone"), 66, "gone")
        done = self.stillpoint("doctor", "/proc")
        self.assertEqual(done.returncode, 69)
        self.assertIn("a file cannot be made in /proc", done.stdout)

    @unittest.skipIf(os.geteuid() != 0 or shutil.which("setpriv") is None, "needs root to become another user")
    def test_reports_nothing_that_it_did_not_try(self):
        """Another user may make no file here: then nothing is known of what files can do."""
        self.folder.chmod(0o755)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TOOL, "doctor"]
        done = subprocess.run([*as_nobody, self.folder], capture_output=True, text=True, check=False, timeout=600)
        if done.returncode in (126, 127):
            self.skipTest("another user cannot reach the build's folder")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"fallocate, O_DIRECT +not tried, not tried\n +DAX \(MAP_SYNC\) +not tried\n")
        self.assertIn("a file cannot be made in", done.stdout)
        done = subprocess.run([*as_nobody, "--json", self.folder], capture_output=True, text=True, check=False, timeout=600)
        tried = json.loads(done.stdout)["file_system"].keys() & {"fallocate", "locks", "o_direct", "map_sync"}
        self.assertEqual(tried, set())

    def test_says_the_same_as_a_run_then_takes(self):
        verdict = json.loads(self.stillpoint("doctor", "--json", self.folder).stdout)["verdict"]
        done = self.stillpoint("run", "--pool", self.pool, "--", COUNTER)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(verdict["tracker"], done.stderr)


if __name__ == "__main__":
    unittest.main()
