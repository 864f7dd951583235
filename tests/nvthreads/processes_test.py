#!/usr/bin/env python3
"""threads=processes: unmodified programs of threads (the folder processes), what they leave after a kill, and what a thread's death leaves."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/nvhooks"))
from compiler_case import CC, TOOL  # noqa: E402  (the path must be set first)

SOURCES = sorted((Path(__file__).resolve().parent / "processes").glob("*.c"))
LIBRARY = Path(TOOL).parents[1] / "lib"
LEDGER = Path(TOOL).parent / "nvthreads_ledger"


def children_of(process):
    """The processes that `process` has made, in their order."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process and fields[0] != "Z":
                found.append(int(entry.name))
    return sorted(found)


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)
        cls.program = Path(cls.shared.name) / "program"
        subprocess.run([CC, "-O2", "-Wall", "-pthread", f"-I{ROOT}/include", *SOURCES, "-o", cls.program, f"-L{LIBRARY}", "-lstillpoint",
                        f"-Wl,-rpath,{LIBRARY}"], check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pool = Path(folder.name) / "a.pool"

    def words(self, *command, acknowledge="order", quiet=True):
        return [TOOL, "run", *(["--quiet"] if quiet else []), "--engine=nvthreads", "--threads=processes", "--durability=process",
                f"--acknowledge={acknowledge}", f"--pool={self.pool}", "--pool-size=4M", "--pool-max=64M", "--", *map(str, command)]

    def run_program(self, how, fault="", **options):
        environment = {**os.environ, **({"STILLPOINT_FAULT": fault} if fault else {})}
        return subprocess.run(self.words(self.program, how, **options), capture_output=True, text=True, check=False, timeout=60,
                              env=environment)

    def check_pool(self):
        check = subprocess.run([TOOL, "check", self.pool], capture_output=True, text=True, check=False)
        self.assertEqual(check.returncode, 0, check.stderr)

    def assert_works(self, how):
        for acknowledge in ("order", "unlock"):
            done = self.run_program(how, acknowledge=acknowledge)
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), f"{how} {acknowledge}: {done.stderr}")
            self.check_pool()

    def test_mutexes(self):
        self.assert_works("mutex")

    def test_mutexes_in_durable_memory(self):
        self.assert_works("durable-mutex")

    def test_bytes_of_one_page_under_several_locks(self):
        self.assert_works("bytes")

    def test_condition_variables(self):
        self.assert_works("condition")

    def test_barriers(self):
        self.assert_works("barrier")

    def test_semaphores(self):
        self.assert_works("semaphore")

    def test_reader_writer_locks_and_spin_locks(self):
        self.assert_works("rwlock")

    def test_kinds_of_mutexes(self):
        self.assert_works("kinds")

    def test_thread_local_state_values_and_cancellation(self):
        self.assert_works("threads")

    def test_the_volatile_heap(self):
        self.assert_works("heap")

    def test_the_durable_heap(self):
        self.assert_works("durable-heap")

    def test_a_race_is_named(self):
        done = self.run_program("race", quiet=False)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
        self.assertRegex(done.stderr, r"a race: two threads have written the byte at 0x\w+, at byte \d+ of the object \"root\"")

    def test_a_thread_that_dies_alone_leaves_nothing_of_its_section(self):
        done = self.run_program("death", quiet=False)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
        self.assertIn("died alone", done.stderr)
        self.check_pool()

    def test_a_death_in_a_section_that_others_have_seen_ends_the_program(self):
        done = self.run_program("open-death")
        self.assertEqual((done.returncode, done.stdout), (-9, ""), done.stderr)
        self.assertIn("of which other threads had seen a part", done.stderr)
        self.check_pool()
        self.assertEqual(self.run_program("look").stdout, "1 2\n")

    def test_programs_are_started_and_fork_is_refused(self):
        done = self.run_program("programs")
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)
        self.assertIn("fork is refused", done.stderr)

    def test_lines_stay_whole(self):
        done = self.run_program("lines")
        expected = sorted(f"thread {thread} line {line} of fifty" for thread in range(4) for line in range(50))
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, expected), done.stderr)

    def test_exit_of_any_thread_ends_the_program(self):
        done = self.run_program("exit")
        self.assertEqual((done.returncode, done.stdout), (3, "bye\n"), done.stderr)
        self.assertEqual(self.run_program("look").stdout.split()[0], "77")

    def test_the_program_outlives_its_first_thread(self):
        done = self.run_program("exit-main")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 50), done.stderr)

    def test_a_section_is_durable_when_its_unlock_has_returned_and_an_unfinished_one_leaves_nothing(self):
        died = self.run_program("killed", acknowledge="unlock")
        self.assertEqual(died.returncode, -9, died.stderr)
        self.check_pool()
        self.assertEqual(self.run_program("look").stdout.split()[0], "5")

    def test_a_kill_at_any_persist_point_leaves_what_was_acknowledged(self):
        for number in range(1, 60):
            self.pool.unlink(missing_ok=True)
            self.assertEqual(self.run_program("look").returncode, 0)
            died = self.run_program("count", fault=f"persist:kill@{number}", acknowledge="unlock")
            self.assertIn(died.returncode, (0, -9), died.stderr)
            self.check_pool()
            found = self.run_program("look")
            value, other = map(int, found.stdout.split())
            told = int((["0"] + died.stdout.split())[-1])
            self.assertGreaterEqual(value, told, f"kill at point {number}")
            self.assertIn(other, (0, ~value & 0xFFFFFFFFFFFFFFFF) if value == 0 else (~value & 0xFFFFFFFFFFFFFFFF,))
            if died.returncode == 0:
                break

    def test_a_failed_disk_is_told_and_the_program_goes_on(self):
        self.assertEqual(self.run_program("look").returncode, 0)
        for fault in ("write:EIO@8:always", "write:ENOSPC@10:always"):
            done = self.run_program("fail", fault=fault, acknowledge="unlock")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotEqual(done.stdout.split()[0], "0", f"{fault}: {done.stderr}")
            self.assertNotEqual(done.stderr, "")

    def test_a_section_that_is_too_large_ends_the_program_by_name(self):
        done = self.run_program("much")
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("too large for threads=processes", done.stderr)
        self.check_pool()
        self.assertEqual(self.run_program("look").stdout.split()[0], "0")

    def test_a_program_that_opens_its_pool_late_is_refused(self):
        done = subprocess.run(self.words("python3", "-c", f"import ctypes; ctypes.CDLL('{LIBRARY}/libstillpoint.so.1').sp_malloc(8)"),
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--open=start", done.stderr)

    def test_threads_that_are_killed_at_random_leave_whole_sections(self):
        """After each round either the others went on and all sums hold, or the program ended and recovery holds."""
        seed = random.SystemRandom().randrange(1 << 32)
        chance = random.Random(seed)
        told = self.pool.with_name("told")
        outcomes = {"went on": 0, "ended": 0, "was over": 0}
        for _ in range(int(os.environ.get("STILLPOINT_THREAD_KILLS", "12"))):
            process = subprocess.Popen(self.words(LEDGER, told, 4, 4000, acknowledge="unlock", quiet=False), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(chance.uniform(0.02, 0.4))
            threads = children_of(process.pid)[1:]
            if threads:
                try:
                    os.kill(chance.choice(threads), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            output, errors = process.communicate(timeout=120)
            self.assertNotIn("BROKEN", output, f"seed {seed}: {errors}")
            self.assertNotIn("LOST", output, f"seed {seed}: {errors}")
            if "Resource temporarily unavailable" in errors:
                self.assertEqual(process.returncode, -signal.SIGABRT, f"seed {seed}: {output} {errors}")  # Killed before it began.
            else:
                self.assertIn(process.returncode, (0, -signal.SIGKILL), f"seed {seed}: {output} {errors}")
            outcomes["ended" if process.returncode != 0 else "went on" if "died alone" in errors else "was over"] += 1
            self.check_pool()
        self.assertGreater(outcomes["went on"] + outcomes["ended"], 0, outcomes)


if __name__ == "__main__":
    unittest.main()
