"""One owner. Invariants: a pool in Ceph has one process that writes it; another takes it only when the lease has ended, when the owner is
known to be dead, or by --take-over; an owner that was shut out acknowledges nothing more, says why and ends with exit code 75; what was
acknowledged before is in the pool."""

import os
import signal
import subprocess
import time
import unittest

from rados_cluster import AGENT, BANK, TOOL, Bank, RadosTest

TEMPORARY_FAILURE = 75


class Owners(RadosTest):
    def check_sound(self):
        checked = self.stillpoint("check", self.pool)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def check_nothing_acknowledged_is_lost(self, bank):
        """The program compares what its file says with what the pool has."""
        last = Bank(self, self.pool, transfers=0, acknowledged=bank.acknowledged)
        self.assertEqual(last.end(), 0, last.text())

    def stop_owner(self, bank):
        """The machine stands still: program and agent."""
        stopped = [bank.process.pid, *self.agents()]
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        self.addCleanup(lambda: [os.kill(process, signal.SIGCONT) for process in stopped if os.path.exists(f"/proc/{process}")])
        return stopped

    def test_a_second_start_is_refused_and_told_of_the_owner(self):
        owner = Bank(self, self.pool)
        owner.wait_for_acknowledgements()
        code, text = self.run_bank()
        self.assertEqual(code, TEMPORARY_FAILURE, text)
        for part in (f"process {owner.process.pid} on ", "its lease runs", "--take-over"):
            self.assertIn(part, text)
        owner.wait_for_acknowledgements()
        checked = self.stillpoint("check", self.pool)
        self.assertEqual(checked.returncode, TEMPORARY_FAILURE, checked.stderr)

    def test_a_start_after_a_kill_does_not_wait_for_the_lease(self):
        for _ in range(3):
            owner = Bank(self, self.pool, lease_ms=60000)
            owner.wait_for_acknowledgements()
            owner.kill()
            began = time.monotonic()
            self.check_nothing_acknowledged_is_lost(owner)
            self.assertLess(time.monotonic() - began, 30)
        self.check_sound()

    def test_a_start_after_the_death_of_program_and_agent_does_not_wait_for_the_lease(self):
        owner = Bank(self, self.pool, lease_ms=60000)
        owner.wait_for_acknowledgements()
        for agent in self.agents():
            os.kill(agent, signal.SIGKILL)
        owner.kill()
        began = time.monotonic()
        self.check_nothing_acknowledged_is_lost(owner)
        self.assertLess(time.monotonic() - began, 30)

    def test_an_owner_without_its_agent_acknowledges_nothing(self):
        owner = Bank(self, self.pool)
        owner.wait_for_acknowledgements()
        for agent in self.agents():
            os.kill(agent, signal.SIGKILL)
        end = time.monotonic() + 20
        while "has ended: nothing is acknowledged any more" not in owner.text() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertIn("has ended: nothing is acknowledged any more", owner.text())
        lines = len(owner.lines())
        time.sleep(0.3)
        self.assertEqual(len(owner.lines()), lines)
        owner.kill()
        self.check_nothing_acknowledged_is_lost(owner)

    def test_a_paused_owner_that_was_shut_out_ends_without_an_acknowledgement(self):
        owner = Bank(self, self.pool, lease_ms=60000)
        owner.wait_for_acknowledgements()
        stopped = self.stop_owner(owner)
        code, text = self.run_bank()
        self.assertEqual(code, TEMPORARY_FAILURE, text)
        successor = Bank(self, self.pool, "--take-over")
        successor.wait_for_acknowledgements()
        lines = len(owner.lines())
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        self.assertEqual(owner.end(30), TEMPORARY_FAILURE, owner.text())
        self.assertIn("another process has taken the pool, and this one was shut out", owner.text())
        # One that was on its way to the file when the owner was paused was durable; nothing came later.
        self.assertLessEqual(len(owner.lines()), lines + 1)
        successor.wait_for_acknowledgements()
        successor.kill()
        self.check_nothing_acknowledged_is_lost(owner)
        self.check_nothing_acknowledged_is_lost(successor)
        self.check_sound()

    def test_a_lease_that_has_ended_lets_another_start(self):
        owner = Bank(self, self.pool, lease_ms=1000)
        owner.wait_for_acknowledgements()
        stopped = self.stop_owner(owner)
        end = time.monotonic() + 20
        code = TEMPORARY_FAILURE
        while code == TEMPORARY_FAILURE and time.monotonic() < end:
            code, text = self.run_bank()
        self.assertEqual(code, 0, text)
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        self.assertEqual(owner.end(30), TEMPORARY_FAILURE, owner.text())
        self.check_nothing_acknowledged_is_lost(owner)

    def test_owners_that_take_it_from_each_other_lose_nothing(self):
        banks = []
        for _ in range(4):
            banks.append(Bank(self, self.pool, "--take-over"))
            banks[-1].wait_for_acknowledgements()
        for bank in banks[:-1]:
            self.assertEqual(bank.end(30), TEMPORARY_FAILURE, bank.text())
        banks[-1].kill()
        for bank in banks:
            self.check_nothing_acknowledged_is_lost(bank)
        self.check_sound()

    def test_the_agent_is_no_child_and_ends_with_the_program(self):
        owner = Bank(self, self.pool)
        owner.wait_for_acknowledgements()
        agents = self.agents()
        self.assertEqual(len(agents), 1)
        with open(f"/proc/{agents[0]}/stat", encoding="utf-8", errors="replace") as file:
            parent = int(file.read().rsplit(")", 1)[1].split()[1])
        self.assertNotEqual(parent, owner.process.pid)
        with open(f"/proc/{agents[0]}/environ", "rb") as file:
            self.assertNotIn(b"LD_PRELOAD", file.read())
        owner.kill()
        end = time.monotonic() + 10
        while self.agents() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(self.agents(), [])

    def test_without_its_agent_the_library_says_what_to_install(self):
        moved = self.folder / "stillpoint"
        moved.write_bytes(TOOL.read_bytes())
        moved.chmod(0o755)
        self.assertTrue(AGENT.exists() and BANK.exists())
        done = subprocess.run([str(moved), "info", str(self.pool)], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("install the package stillpoint-rados", done.stderr)


if __name__ == "__main__":
    unittest.main()
