"""verify_stores, the checked form of transactions: a store into durable memory that no transaction makes ends the program and is named;
programs that keep the rules run as without it."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from command_line import BUILD, SMALL, CommandLineTest  # noqa: E402

ABORTED = -6
PROGRAM = "spht_mistakes"


class VerifyStores(CommandLineTest):
    def run_with(self, name, *options):
        return self.stillpoint("run", "--pool", self.pool, *SMALL, "--engine", "spht", *options, "--", BUILD / "bin" / PROGRAM, name)

    def refused(self, name, function, *words, options=()):
        self.pool.unlink(missing_ok=True)
        done = self.run_with(name, "--quiet", "--verify-stores", *options)
        self.assertEqual(done.returncode, ABORTED, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(f"stillpoint: error: verify_stores: {function} in {PROGRAM} (+0x", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_what_is_right_runs_as_without_it(self):
        for options in ((), ("--executor", "norec"), ("--executor", "tinystm"), ("--executor", "simulated"), ("--markers", "always")):
            with self.subTest(options=options):
                self.pool.unlink(missing_ok=True)
                for checks in ((), ("--verify-stores",), ("--verify-stores",)):
                    done = self.run_with("right", *options, *checks)
                    self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)

    def test_a_store_outside_of_transactions_is_refused(self):
        where = ("outside of a transaction", 'byte 0 of "record"', "addr2line")
        for name in ("outside", "after-right-uses", "thread", "handler"):
            with self.subTest(name=name):
                self.refused(name, "store_plainly", *where)

    def test_a_store_by_libc_is_named_after_its_caller(self):
        self.refused("copy", "copy_plainly", "by a call into libc", 'byte 24 of "record"')
        self.refused("clear", "clear_plainly", "by a call into libc")

    def test_a_plain_store_in_a_transaction_is_refused(self):
        for executor in ("software", "norec", "tinystm", "simulated"):
            with self.subTest(executor=executor):
                self.refused("inside", "store_plainly", "past its transaction", "sp_spht_write", options=("--executor", executor))

    def test_new_blocks_are_written_by_a_transaction_too(self):
        self.refused("new-block", "fill_plainly", "past its transaction", "byte 8 of a block of")
        self.refused("malloc", "fill_plainly", "outside of a transaction", "byte 8 of a block of")

    def test_pages_cannot_be_loaded_lazily_then(self):
        self.run_with("right")
        done = self.run_with("right", "--recovery", "lazy", "--verify-stores")
        self.assert_refused(done, 69, "recovery=eager")
        for _ in range(2):  # Plain stores of a transaction are found there too.
            done = self.run_with("right", "--recovery", "lazy")
            self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)

    def test_without_it_nothing_is_said(self):
        done = self.run_with("outside", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
