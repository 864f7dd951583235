"""A warm standby. Invariants: it becomes the program when the owner's process, or its lease, has ended, and not before; what was
acknowledged is there; what it had in memory is used only where it is what the cluster has; an owner that wakes up is shut out; it ends
with its process."""

import os
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

from rados_cluster import BUILD, TOOL, Bank, RadosTest

TEMPORARY_FAILURE = 75
WIDE = BUILD / "bin" / "wide_ledger"


class Standby(RadosTest):
    def wait_for(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(what() if callable(what) else what)
            time.sleep(0.01)

    def standby(self, *options, acknowledged=None, **arguments):
        return Bank(self, self.pool, *options, command="standby", acknowledged=acknowledged, **arguments)

    def wait_until_warm(self, standby):
        self.wait_for(lambda: "warm, " in standby.text(), lambda: f"not warm: {standby.text()}")

    def check_nothing_acknowledged_is_lost(self, bank):
        last = Bank(self, self.pool, transfers=0, acknowledged=bank.acknowledged)
        self.assertEqual(last.end(), 0, last.text())

    def test_it_goes_on_with_all_that_was_acknowledged(self):
        """The owner writes 50 epochs a second, a standby compares its copies once: those of the commit records are old at the kill."""
        owner = Bank(self, self.pool, lease_ms=60000)
        owner.wait_for_acknowledgements()
        for _ in range(3):
            standby = self.standby(acknowledged=owner.acknowledged, lease_ms=60000)
            self.wait_until_warm(standby)
            owner.wait_for_acknowledgements()
            self.assertNotIn("bank: start", standby.text())
            owner.kill()
            standby.wait_for_acknowledgements()
            self.assertIn("this process has it now", standby.text())
            self.assertRegex(standby.text(), "bank: at the start: .*: holds")
            owner = standby
        owner.kill()
        self.check_nothing_acknowledged_is_lost(owner)
        self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)

    def test_an_owner_that_ends_in_order_is_followed_too(self):
        owner = Bank(self, self.pool, "--on-term", "checkpoint")
        owner.wait_for_acknowledgements()
        standby = self.standby(acknowledged=owner.acknowledged)
        self.wait_until_warm(standby)
        owner.signal(signal.SIGTERM)
        owner.end()
        standby.wait_for_acknowledgements()

    def test_a_paused_owner_is_shut_out_when_its_lease_has_ended(self):
        owner = Bank(self, self.pool, lease_ms=1500)
        owner.wait_for_acknowledgements()
        stopped = [owner.process.pid, *self.agents()]
        standby = self.standby(lease_ms=1500)
        self.wait_until_warm(standby)
        begun = time.monotonic()
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        self.addCleanup(lambda: [os.kill(process, signal.SIGCONT) for process in stopped if os.path.exists(f"/proc/{process}")])
        standby.wait_for_acknowledgements()
        # The last renewal was a third of the lease ago, or less.
        self.assertGreater(time.monotonic() - begun, 0.5)
        lines = len(owner.lines())
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        self.assertEqual(owner.end(30), TEMPORARY_FAILURE, owner.text())
        self.assertLessEqual(len(owner.lines()), lines + 1)
        standby.wait_for_acknowledgements()
        standby.kill()
        self.check_nothing_acknowledged_is_lost(owner)
        self.check_nothing_acknowledged_is_lost(standby)

    def test_of_two_one_becomes_the_owner_and_the_other_waits_on(self):
        owner = Bank(self, self.pool)
        owner.wait_for_acknowledgements()
        standbys = [self.standby() for _ in range(2)]
        for standby in standbys:
            self.wait_until_warm(standby)
        owner.kill()
        self.wait_for(lambda: any(standby.lines() for standby in standbys), lambda: "no standby goes on: " + standbys[0].text())
        successor, other = sorted(standbys, key=lambda standby: -len(standby.lines()))
        self.assertEqual(other.lines(), [])
        self.assertIsNone(other.process.poll())
        successor.kill()
        other.wait_for_acknowledgements()

    def test_the_first_one_makes_the_pool(self):
        standby = self.standby()
        standby.wait_for_acknowledgements()

    def test_it_ends_with_its_process(self):
        owner = Bank(self, self.pool)
        owner.wait_for_acknowledgements()
        before = set(self.agents())
        standby = self.standby()
        self.wait_until_warm(standby)
        standby.signal(signal.SIGTERM)
        self.assertEqual(standby.end(), -signal.SIGTERM)
        self.wait_for(lambda: set(self.agents()) == before, "the agent of the standby is left")
        owner.wait_for_acknowledgements()

    def test_the_agent_ends_with_the_program_that_a_script_starts(self):
        """The script's first program is killed, and the script starts it again: the second opens the pool by itself."""
        script = self.folder / "service.sh"
        words = "--accounts 500 --threads 2 --transfers $1 --acknowledge-ms 1 --acknowledge"
        script.write_text(f'#!/bin/sh\n"{BUILD}/bin/bank" {words} "$2"\n"{BUILD}/bin/bank" {words} "$2"\n')
        script.chmod(0o755)
        code, text = self.run_bank()
        self.assertEqual(code, 0, text)
        done = self.stillpoint("standby", "--pool", self.pool, "--interval", "20ms", "--", script, "5000", self.folder / "acknowledged")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count(": holds"), 4, done.stdout)

    def test_pages_come_from_memory(self):
        """With the objects of the standby's memory the pool needs few reads of the cluster."""
        acknowledged = self.folder / "wide.ack"
        words = [str(word) for word in ("--pool", self.pool, "--interval", "100", "--lease-ms", "2000", "--", WIDE, acknowledged, "48")]
        outputs = [open(self.folder / name, "w+b") for name in ("owner", "standby")]
        for output in outputs:
            self.addCleanup(output.close)
        def start(command, output):
            process = subprocess.Popen([str(TOOL), command, *words], env=self.environment, stdout=output, stderr=subprocess.STDOUT)
            self.addCleanup(lambda: (process.kill(), process.wait()))
            return process
        def text(index): return (self.folder / ("owner", "standby")[index]).read_text(errors="replace")
        owner = start("run", outputs[0])
        self.wait_for(lambda: "first acknowledgement" in text(0), lambda: text(0), 60)
        before = set(self.agents())
        start("standby", outputs[1])
        self.wait_for(lambda: "warm, " in text(1), lambda: text(1), 60)
        agent, = set(self.agents()) - before
        held = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{agent}/status").read_text(encoding="utf-8")).group(1))
        self.assertGreater(held, 48 << 10)
        owner.kill()
        self.wait_for(lambda: "first acknowledgement" in text(1), lambda: text(1), 60)
        self.assertNotIn("BROKEN", text(1))
        self.assertEqual(set(self.agents()) - before, {agent}, "the program has an agent of its own")

    def test_wrong_use(self):
        for words, says in ((("--pool", self.folder / "a.pool"), "names no pool in Ceph"), ((), "names no pool in Ceph"),
                            (("--pool", self.pool, "--take-over"), "--take-over is for `stillpoint run`"),
                            (("--pool", self.pool, "--memory", "1M"), "is not a size from 4M")):
            done = self.stillpoint("standby", *words, "--", "true")
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
