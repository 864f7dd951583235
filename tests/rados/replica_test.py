"""A pool in a file with a replica in Ceph. Invariants: what was acknowledged at replicate=sync is in the replica after the loss of the
machine; of replicate=async all but the last moments are; the replica alone is a pool like any other; a machine that comes back is brought
up to date, or refused where it may have acknowledged what the replica lacks; nothing is merged."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from rados_cluster import BUILD, SOURCE, TOOL, Bank, RadosTest

LEDGER_OF_NVTHREADS = BUILD / "bin" / "nvthreads_ledger"
WAITS_OF_NVTHREADS = SOURCE / "tests" / "rados" / "waits.c"
REFUSED = 65
TIMED_OUT = 23
# A line on standard input: a checkpoint, and a wait of so many milliseconds at both levels; prints the codes and the lag.
WAITS = '''
import ctypes, sys
pool = ctypes.CDLL(None)
pool.sp_durable_epoch.restype = ctypes.c_uint64
pool.sp_root.restype = ctypes.c_void_p
root = pool.sp_root(b"word", ctypes.c_size_t(8))
for line in sys.stdin:
    pool.sp_fase_begin()
    ctypes.c_uint64.from_address(root).value += 1
    pool.sp_fase_end()
    codes = [pool.sp_checkpoint()]
    epoch = ctypes.c_uint64(pool.sp_durable_epoch())
    codes += [pool.sp_wait_durable_at(epoch, level, ctypes.c_int64(int(line))) for level in (0, 1)]
    lag = ctypes.c_uint64()
    pool.sp_statistic(b"replica_lag_epochs", ctypes.byref(lag))
    print(*codes, lag.value, flush=True)
'''
TEMPORARY_FAILURE = 75


class Replica(RadosTest):
    def setUp(self):
        super().setUp()
        self.local = self.folder / "bank.pool"

    def bank(self, *options, **arguments):
        return Bank(self, self.local, "--replica", str(self.pool), *options, **arguments)

    def check_nothing_acknowledged_is_lost(self, bank, pool, *options):
        """The program compares what its file says with what the pool has."""
        last = Bank(self, pool, *options, transfers=0, acknowledged=bank.acknowledged)
        self.assertEqual(last.end(), 0, last.text())

    def check_sound(self, pool):
        checked = self.stillpoint("check", pool)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def epoch(self, pool):
        facts = self.stillpoint("info", "--json", pool)
        self.assertEqual(facts.returncode, 0, facts.stderr)
        return json.loads(facts.stdout)["durable_epoch"]

    def wait_until_quiet(self, seconds=20):
        """Until the record says that both have the same bytes: state 1, at byte 12."""
        record = self.folder / "bank.pool.replica"
        end = time.monotonic() + seconds
        while record.read_bytes()[12] != 1:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_what_sync_acknowledged_survives_the_machine_and_it_is_brought_up_to_date(self):
        owner = self.bank("--replicate", "sync")
        owner.wait_for_acknowledgements(20)
        owner.kill()
        # Another machine, which has nothing but the replica.
        successor = Bank(self, self.pool, acknowledged=owner.acknowledged)
        successor.wait_for_acknowledgements(20)
        successor.kill()
        # The first one comes back.
        returned = self.bank("--replicate", "sync", acknowledged=owner.acknowledged)
        returned.wait_for_acknowledgements(20)
        self.assertIn("is made of", returned.text())
        returned.kill()
        self.check_nothing_acknowledged_is_lost(owner, self.pool)
        self.check_sound(self.pool)

    def test_a_restart_after_a_kill_goes_on_with_both(self):
        for mode in ("sync", "async", "async", "sync"):
            owner = self.bank("--replicate", mode)
            owner.wait_for_acknowledgements(20)
            owner.kill()
            self.check_nothing_acknowledged_is_lost(owner, self.local, "--replica", str(self.pool), "--replicate", mode)
            self.check_nothing_acknowledged_is_lost(owner, self.copy_of_replica())
        self.check_sound(self.local)
        self.check_sound(self.pool)
        self.assertEqual(self.epoch(self.local), self.epoch(self.pool))

    def copy_of_replica(self):
        copy = self.folder / f"{time.monotonic_ns()}.pool"
        copied = self.stillpoint("copy", self.pool, copy)
        self.assertEqual(copied.returncode, 0, copied.stderr)
        return copy

    def test_a_machine_that_may_have_more_is_refused_and_its_pool_is_as_it_was(self):
        owner = self.bank("--replicate", "async")
        owner.wait_for_acknowledgements(20)
        owner.kill()
        successor = Bank(self, self.pool)
        successor.wait_for_acknowledgements(5)
        successor.kill()
        before = self.local.read_bytes()
        returned = self.bank("--replicate", "async")
        self.assertEqual(returned.end(), REFUSED, returned.text())
        self.assertIn("another machine has taken over", returned.text())
        self.assertEqual(before, self.local.read_bytes())
        # The way out that the message names.
        self.local.rename(self.folder / "bank.pool.old")
        again = self.bank("--replicate", "async")
        again.wait_for_acknowledgements(5)
        self.assertIn("is made of", again.text())
        again.kill()
        self.check_nothing_acknowledged_is_lost(successor, self.local, "--replica", str(self.pool))

    def test_after_async_has_sent_everything_the_machine_is_brought_up_to_date(self):
        owner = self.bank("--replicate", "async", transfers=2000)
        self.assertEqual(owner.end(), 0, owner.text())
        successor = Bank(self, self.pool, acknowledged=owner.acknowledged)
        successor.wait_for_acknowledgements(5)
        successor.kill()
        self.check_nothing_acknowledged_is_lost(owner, self.local, "--replica", str(self.pool), "--replicate", "async")

    def test_a_wait_at_level_remote_returns_when_the_replica_has_the_epoch(self):
        self.check_waits(command=[sys.executable, "-c", WAITS])
        self.assertEqual(self.epoch(self.local), self.epoch(self.pool))

    def check_waits(self, *options, command):
        words = [TOOL, "run", "--quiet", "--pool", self.local, "--replica", self.pool, "--replicate", "async",
                 "--replicate-lag-ms", "60000", "--lease-ms", "60000", *options, "--", *command]
        program = subprocess.Popen([str(word) for word in words], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)

        def wait(milliseconds):
            program.stdin.write(f"{milliseconds}\n")
            program.stdin.flush()
            return [int(word) for word in program.stdout.readline().split()]

        self.assertEqual(wait(20000)[:3], [0, 0, 0])
        agents = self.agents()
        for agent in agents:
            os.kill(agent, signal.SIGSTOP)
        stopped = wait(200)
        for agent in agents:
            os.kill(agent, signal.SIGCONT)
        self.assertEqual(stopped[:2], [0, 0], "durable here, whatever the replica does")
        self.assertEqual(stopped[2], TIMED_OUT)
        self.assertGreater(stopped[3], 0)
        self.assertEqual(wait(20000)[:3], [0, 0, 0])
        program.stdin.close()
        self.assertEqual(program.wait(30), 0)

    def test_info_shows_the_record_and_who_has_claimed_the_replica(self):
        owner = self.bank("--replicate", "async", transfers=200)
        self.assertEqual(owner.end(), 0, owner.text())
        here, there = (json.loads(self.stillpoint("info", "--json", pool).stdout) for pool in (self.local, self.pool))
        self.assertEqual(here["replica"] | {"generation": 0, "writer": ""},
                         {"name": str(self.pool), "replicate": "async", "state": "equal", "writer": "", "generation": 0})
        self.assertEqual(here["replica"]["generation"], here["generation"])
        self.assertEqual(there["last_writer"], here["replica"]["writer"])
        text = self.stillpoint("info", self.local).stdout
        self.assertRegex(text, rf"replica +{re.escape(str(self.pool))}, async\n")
        self.assertIn(here["replica"]["writer"], text)
        # Another machine writes it, without a number.
        alone = Bank(self, self.pool, transfers=200)
        self.assertEqual(alone.end(), 0, alone.text())
        self.assertEqual(json.loads(self.stillpoint("info", "--json", self.pool).stdout)["last_writer"], "")
        self.assertIn("a process that has this pool alone", self.stillpoint("info", self.pool).stdout)

    def run_ledger_of_processes(self, pool, operations, *options):
        """Each unlock is acknowledged; at its start the program compares what it was told with what the pool has."""
        words = [TOOL, "run", "--quiet", "--pool", pool, "--engine", "nvthreads", "--acknowledge", "unlock", "--threads", "processes",
                 "--lease-ms", "2000", *options, "--", LEDGER_OF_NVTHREADS, self.folder / "told", "2", str(operations)]
        return subprocess.Popen([str(word) for word in words], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True)

    @unittest.skipUnless(LEDGER_OF_NVTHREADS.exists(), "no program of nvthreads was built: clang was not found")
    def test_threads_that_are_processes_lose_nothing(self):
        told = self.folder / "told"
        for mode, survivor in (("sync", self.local), ("async", self.local), ("sync", self.pool)):
            before = told.read_bytes() if told.exists() else b""
            run = self.run_ledger_of_processes(self.local, 1 << 40, "--replica", str(self.pool), "--replicate", mode)
            end = time.monotonic() + 30
            while (told.read_bytes() if told.exists() else b"") == before and run.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(0.5)
            run.kill()
            _, errors = run.communicate()
            self.assertEqual(run.returncode, -signal.SIGKILL, errors)
            options = ["--replica", str(self.pool), "--replicate", mode] if survivor is self.local else []
            last = self.run_ledger_of_processes(survivor, 10, *options)
            _, errors = last.communicate(timeout=60)
            self.assertEqual(last.returncode, 0, f"{mode} {survivor}: {errors}")
        self.check_sound(self.pool)

    def test_a_wait_of_a_thread_that_is_a_process_has_a_level(self):
        program = self.folder / "waits"
        library = BUILD / "lib"
        words = ["cc", "-O2", "-Wall", "-pthread", f"-I{SOURCE / 'include'}", WAITS_OF_NVTHREADS, "-o", program, f"-L{library}",
                 "-lstillpoint", f"-Wl,-rpath,{library}"]
        made = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.check_waits("--engine", "nvthreads", "--threads", "processes", "--acknowledge", "unlock", command=[program])

    def test_both_written_alone_is_refused(self):
        owner = self.bank(transfers=200)
        self.assertEqual(owner.end(), 0, owner.text())
        for pool in (self.local, self.pool):
            alone = Bank(self, pool, transfers=200)
            self.assertEqual(alone.end(), 0, alone.text())
        returned = self.bank()
        self.assertEqual(returned.end(), REFUSED, returned.text())
        self.assertIn("each was written without the other", returned.text())

    def test_what_this_machine_did_alone_is_sent(self):
        owner = self.bank(transfers=200)
        self.assertEqual(owner.end(), 0, owner.text())
        alone = Bank(self, self.local, transfers=2000)
        self.assertEqual(alone.end(), 0, alone.text())
        again = self.bank(transfers=0, acknowledged=alone.acknowledged)
        self.assertEqual(again.end(), 0, again.text())
        self.assertIn("are sent", again.text())
        self.check_nothing_acknowledged_is_lost(alone, self.pool)

    def test_an_older_copy_in_the_pools_place_is_refused(self):
        owner = self.bank(transfers=200)
        self.assertEqual(owner.end(), 0, owner.text())
        old = self.folder / "old"
        shutil.copy(self.local, old)
        owner = self.bank(transfers=200)
        self.assertEqual(owner.end(), 0, owner.text())
        os.replace(old, self.local)
        returned = self.bank()
        self.assertEqual(returned.end(), REFUSED, returned.text())
        self.assertIn("an older copy", returned.text())

    def test_a_taken_over_replica_ends_the_program(self):
        owner = self.bank("--replicate", "sync", lease_ms=60000)
        owner.wait_for_acknowledgements(5)
        successor = Bank(self, self.pool, "--take-over", acknowledged=self.folder / "successor.ack")
        successor.wait_for_acknowledgements(5)
        self.assertEqual(owner.end(30), TEMPORARY_FAILURE, owner.text())
        successor.kill()
        self.check_nothing_acknowledged_is_lost(owner, self.pool)

    def test_an_agent_that_ends_is_started_again_and_acknowledgements_go_on(self):
        for mode in ("sync", "async"):
            owner = self.bank("--replicate", mode, lease_ms=2000)
            owner.wait_for_acknowledgements(5)
            for agent in self.agents():
                os.kill(agent, signal.SIGKILL)
            end = time.monotonic() + 30
            while "is open again" not in owner.text() and time.monotonic() < end:
                time.sleep(0.05)
            self.assertIn("is open again", owner.text())
            owner.wait_for_acknowledgements(20)
            owner.kill()
            self.check_nothing_acknowledged_is_lost(owner, self.local, "--replica", str(self.pool))
            self.check_nothing_acknowledged_is_lost(owner, self.copy_of_replica())


if __name__ == "__main__":
    unittest.main()
