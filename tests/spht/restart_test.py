"""Transactions over restarts: each that has returned is there after kill -9 and after a clean end, what was read is too, and one that
had not returned is there as a whole or not at all. On a byte-addressable medium and on a disk."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("STILLPOINT_BUILD", Path(__file__).resolve().parent.parent.parent / "build"))
TIMEOUT_S = 120
SP_E_IO = 15
PAGE_BYTES = 4096
CHUNK_MAGIC = b"\x93STREDOC"
OPTIONS = "engine=spht quiet pool_size_mb=8 pool_max_mb=64 durability=process interval_ms=20"


class Restarts:
    MEDIUM = ""
    options = OPTIONS

    def setUp(self):
        self.medium = self.MEDIUM
        folder = tempfile.TemporaryDirectory(dir=BUILD)
        self.addCleanup(folder.cleanup)
        self.pool = Path(folder.name) / "test.pool"

    def words(self, *commands):
        return [BUILD / "bin/spht_program", self.pool, f"{self.options} medium={self.medium}", *commands]

    def run_program(self, *commands, expect=0, **environment):
        done = subprocess.run(self.words(*commands), capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def killed(self, *commands):
        return self.run_program(*commands, "die", expect=-9)

    def counts(self):
        """How many transfers of each thread are there; what one transaction wrote is together."""
        output = self.run_program("show")
        self.assertRegex(output, r"^\d+ \d+ whole\n$")
        return [int(word) for word in output.split()[:2]]

    def killed_at_work(self, lines):
        """The lines that threads printed before a kill -9."""
        with subprocess.Popen(self.words("run"), stdout=subprocess.PIPE, text=True) as process:
            printed = [process.stdout.readline() for _ in range(lines)]
            process.kill()
            printed += process.stdout.readlines()
        return [line for line in printed if line.endswith("\n")]

    def test_each_that_has_returned_survives_a_kill_and_a_clean_end(self):
        self.assertEqual(self.killed("transfer=1", "show"), "1 0 whole\n")
        self.assertEqual(self.killed("show", "transfer=10"), "1 0 whole\n")
        self.assertEqual(self.run_program("show", "transfer=20"), "11 0 whole\n")
        self.assertEqual(self.killed("show", "transfer=1"), "31 0 whole\n")
        self.assertEqual(self.run_program("show"), "32 0 whole\n")

    def test_one_that_had_not_returned_leaves_nothing(self):
        self.killed("transfer=9")
        blocks = self.run_program("blocks")
        self.run_program("halfway", expect=-9)
        self.assertEqual(self.run_program("blocks"), blocks)
        self.assertEqual(self.counts(), [9, 0])

    def test_what_was_acknowledged_or_read_by_threads_survives_a_kill(self):
        self.run_program("transfer=1")
        done = [1, 0]
        for lines in (50, 400, 1500):
            seen = list(done)
            for line in self.killed_at_work(lines):
                if found := re.fullmatch(r"done (\d) (\d+)\n", line):
                    thread, count = int(found[1]), int(found[2])
                    done[thread] = max(done[thread], count)
                elif found := re.fullmatch(r"read (\d+) (\d+)\n", line):
                    seen = [max(seen[0], int(found[1])), max(seen[1], int(found[2]))]
            counts = self.counts()
            for thread in range(2):
                self.assertGreaterEqual(counts[thread], max(done[thread], seen[thread]), "something that was told is lost")
                self.assertLessEqual(counts[thread], done[thread] + 1, "there is more than had begun")
            done = counts

    def test_a_pool_may_change_its_kind_of_medium(self):
        self.run_program("transfer=1")
        count = 1
        for medium in ("memory", "file", "memory", "memory", "file", "file"):
            self.medium = medium
            for ends in (self.killed, self.run_program):
                self.assertEqual(ends("show", "transfer=3"), f"{count} 0 whole\n")
                count += 3

    def test_a_damaged_record_of_what_had_returned_is_refused(self):
        self.options = self.options.replace("interval_ms=20", "interval_ms=3600000")
        self.killed("transfer=5")
        whole = bytearray(self.pool.read_bytes())
        pages = range(0, len(whole), PAGE_BYTES)
        begin = next(page for page in pages if whole[page:page + 8] == CHUNK_MAGIC and whole[page + 24] == 1)
        payload = begin + 64 + 32
        for place in (payload, begin + 64):
            damaged = bytearray(whole)
            damaged[place] ^= 4
            self.pool.write_bytes(damaged)
            done = subprocess.run(self.words("show"), capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, "log 1 of run .*acknowledged|acknowledged transactions are missing")
            self.assertEqual(self.pool.read_bytes(), damaged, "a refused pool was changed")
        self.pool.write_bytes(whole)
        self.assertEqual(self.counts(), [5, 0])


class OnMemory(Restarts, unittest.TestCase):
    MEDIUM = "memory"


class OnADisk(Restarts, unittest.TestCase):
    MEDIUM = "file"

    def test_a_medium_that_fails_is_told_by_each_commit_and_what_had_returned_is_kept(self):
        self.run_program("transfer=1")
        output = self.run_program("fail", STILLPOINT_FAULT="write:EIO@60:always").splitlines()
        done = [int(line.split()[2]) for line in output if line.startswith("done")]
        self.assertEqual(output[-3:], [f"error {SP_E_IO}"] * 3)
        self.assertIn(self.counts()[0] - done[-1], (0, 1))


class InSimulatedHardware(OnMemory):
    options = OPTIONS + " executor=simulated executor_seed=3"


class InSimulatedHardwareOnADisk(OnADisk):
    options = OPTIONS + " executor=simulated executor_seed=4"


if __name__ == "__main__":
    unittest.main()
