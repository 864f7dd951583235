"""Durable programs under valgrind: what they write is right, a kill loses nothing, and where valgrind does not keep the
registers of a memory fault the program is refused before it writes."""

import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from command_line import BUILD, SMALL, TOOL, CommandLineTest  # noqa: E402  (the path comes first)

BANK = BUILD / "bin/bank"
IMPRECISE = "--vex-iropt-register-updates=unwindregs-at-mem-access"  # valgrind's default


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed (scripts/setup.sh test)")
class UnderValgrind(CommandLineTest):
    def bank(self, *valgrind, transfers, prefix=()):
        return self.stillpoint("run", "--quiet", "--pool", self.pool, *SMALL, *prefix, "--", *valgrind,
                               BANK, "--accounts", 50, "--threads", 2, "--transfers", transfers)

    def test_a_bank_holds_under_memcheck_and_afterwards_without(self):
        done = self.bank("valgrind", "-q", "--error-exitcode=9", transfers=2000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2000 transfers, seen by accounts 4000, 0 bad statements", done.stdout)
        done = self.bank(transfers=3000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2000 transfers done", done.stdout)

    def test_a_kill_under_memcheck_loses_nothing(self):
        self.assertEqual(self.bank(transfers=100).returncode, 0)
        ledger = self.folder / "acknowledged"
        words = [TOOL, "run", "--quiet", "--pool", self.pool, "--interval", "10ms", "--", "valgrind", "-q",
                 BANK, "--transfers", "100000000", "--acknowledge", ledger]
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and process.poll() is None and not (ledger.exists() and ledger.stat().st_size > 200):
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, "--", BANK, "--transfers", 1, "--acknowledge", ledger)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("resumed after a crash", done.stdout)
        self.assertNotIn(", 0 acknowledged", done.stdout)

    def test_without_the_registers_of_a_fault_a_program_is_refused(self):
        self.assertEqual(self.bank(transfers=100).returncode, 0)
        for tool in ("memcheck", "none"):
            done = self.bank("valgrind", "-q", f"--tool={tool}", IMPRECISE, transfers=2000)
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn("loses the program's registers", done.stderr)
            self.assertIn("allregs-at-mem-access", done.stderr)
        done = self.bank(transfers=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("100 transfers done", done.stdout)

    def test_an_engine_that_takes_faults_is_refused_too(self):
        done = self.stillpoint("run", "--pool", self.pool, *SMALL, "--engine", "pronto", "--", "valgrind", "-q", IMPRECISE,
                               BANK, "--transfers", 10)
        self.assertEqual(done.returncode, 69, done.stderr)


if __name__ == "__main__":
    unittest.main()
