"""examples/inventory, seats, auction and order-book: no transaction that has returned is lost, and none is half done, over kills."""

import random
import subprocess
import time
import unittest

from examples_test import BINARIES, ExampleTest

TRANSACTIONS = 16000
KILLED_FOR_S = 6
TIMEOUT_S = 60
HAS_ENGINE = "spht" in subprocess.run([BINARIES / "stillpoint", "run", "--help"], capture_output=True, text=True, check=False).stdout
PROGRAMS = {"inventory": "--orders", "seats": "--bookings", "auction": "--bids", "order-book": "--orders"}


def programs():
    """The built ones: one needs GCC, one Clang."""
    return {name: option for name, option in PROGRAMS.items() if (BINARIES / name).exists()}


@unittest.skipUnless(HAS_ENGINE, "the engine spht is not there")
class Transactions(ExampleTest):
    def test_they_lose_no_acknowledged_transaction_over_many_kills(self):
        for name, option in programs().items():
            with self.subTest(name):
                pool = self.folder / f"{name}.pool"
                command = [BINARIES / name, "--pool", pool, "--acknowledge", self.folder / name, option, str(TRANSACTIONS)]
                moments = random.Random(5)
                begun = time.monotonic()
                kills = 0
                for _ in range(100):
                    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    try:
                        is_late = time.monotonic() - begun > KILLED_FOR_S
                        output, _ = running.communicate(timeout=TIMEOUT_S if is_late else moments.uniform(0.02, 0.2))
                    except subprocess.TimeoutExpired:
                        running.kill()
                        output, _ = running.communicate()
                        kills += 1
                    self.assertNotIn("LOST", output)
                    self.assertNotIn("BROKEN", output)
                    if running.returncode == 0:
                        break
                    self.assertEqual(running.returncode, -9, output)
                self.assertGreater(kills, 0)
                self.assertIn(f"{name}: done, {TRANSACTIONS} ", output)

    def test_an_acknowledged_transaction_that_is_missing_is_noticed(self):
        for name in programs():
            with self.subTest(name):
                (self.folder / name).write_text("1 3\n2 5", encoding="utf-8")  # the last line is cut off and does not count
                pool = self.folder / f"{name}.pool"
                output = self.run_program(name, "--pool", pool, "--acknowledge", self.folder / name, expect=3)
                self.assertIn("LOST", output)
                self.assertNotIn(" 5\n", output)

    def test_wrong_arguments_are_refused(self):
        for name in programs():
            self.run_program(name, "--what", expect=64)

    def test_without_a_pool_they_run_or_say_what_to_do(self):
        for name, option in programs().items():
            if name in ("order-book", "auction"):
                self.assertIn(f"done, 100 {option[2:]}", self.run_program(name, option, "100"))
            else:
                self.assertIn("stillpoint run --engine spht", self.run_program(name, option, "100", expect=1))


if __name__ == "__main__":
    unittest.main()
