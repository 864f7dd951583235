"""`stillpoint crashtest`: it finds the bugs that it is for, with a command that repeats them; a right program passes; bad
input is refused before anything runs; an interruption ends it with its summary. Bounded: a few kills each."""

import json
import os
import shlex
import signal
import subprocess
import time
import unittest

from command_line import BUILD, TOOL, CommandLineTest

TRANSFERS = BUILD / "bin/cli_transfers"
VERIFY = f"{shlex.quote(str(TRANSFERS))} verify"
TINY = ("--durability", "process", "--pool-size", "4M", "--pool-max", "64M")
SMALL = (*TINY, "--interval", "3ms", "--max-ms", "60")
LONG = (*TINY, "--interval", "3ms", "--min-ms", "150", "--max-ms", "300", "--moments", "random")  # on a slow machine, too


def is_running(pid):
    """Neither gone nor a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class CrashTest(CommandLineTest):
    def crashtest(self, *arguments, **environment):
        return self.stillpoint("crashtest", *arguments, TMPDIR=str(self.folder), **environment)

    def assert_found(self, what, *messages):
        """The bug is found, the pool kept, and the printed command finds a bug again."""
        done = self.crashtest(*LONG, "--seed", "5", "--kills", "100", "--check", VERIFY, "--json", "--", TRANSFERS, what)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        facts = json.loads(done.stdout)
        self.assertEqual((facts["result"], facts["checker_failures"], facts["seed"]), ("failed", 1, 5))
        failure = facts["failures"][0]
        for message in messages:
            self.assertIn(message, failure["what"])
        self.assertTrue(os.path.exists(failure["kept_pool"]))
        self.assertIn(failure["command"], done.stderr)
        self.assertIn("--seed 5", failure["command"])
        words = shlex.split(failure["command"])
        self.assertEqual(words[:2], ["stillpoint", "crashtest"])
        return words[1:]

    def test_a_transfer_in_two_sections_is_found_and_found_again(self):
        words = self.assert_found("torn", "the sum is")
        words[words.index("--kills") + 1] = "100"  # How long a run takes is the machine's; the moments are the same.
        again = self.crashtest(*words[1:])
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn("the sum is", again.stderr)

    def test_a_promise_that_is_given_too_early_is_found(self):
        self.assert_found("early", "that were told of")

    def test_a_program_that_keeps_the_rules_passes(self):
        done = self.crashtest(*SMALL, "--seed", "2", "--kills", "24", "--check", VERIFY, "--", TRANSFERS, "good")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"24 kills in .* seed 2\n")
        self.assertRegex(done.stdout, r"kills at persist points +\d+, \d+ distinct")
        self.assertRegex(done.stdout, r"acknowledged epochs lost +0 ")
        self.assertEqual(sorted(self.folder.iterdir()), [], "the temporary folder stays behind")

    def test_every_persist_point_of_a_program_that_ends_by_itself_is_met(self):
        done = self.crashtest(*TINY, "--interval", "1h", "--max-ms", "30000", "--moments", "persist", "--kills", "30", "--json",
                              "--check", VERIFY, "--", TRANSFERS, "good", "20")
        facts = json.loads(done.stdout)
        self.assertEqual((done.returncode, facts["result"]), (0, "passed"), done.stderr)
        self.assertEqual(facts["kills_at_persist_points"], 30)
        self.assertEqual(facts["kills_at_random_moments"], 0)
        self.assertGreater(facts["distinct_persist_points"], 3)
        self.assertEqual(facts["checker_runs"], facts["pool_checks"])

    def test_a_program_that_does_not_come_back_is_found(self):
        script = self.folder / "once.sh"
        script.write_text('#!/bin/bash\n[ -e "$CRASHTEST_FOLDER/seen" ] && { echo no more; exit 9; }\n'
                          f'touch "$CRASHTEST_FOLDER/seen"\nexec {shlex.quote(str(TRANSFERS))} good\n')
        script.chmod(0o755)
        done = self.crashtest(*LONG, "--kills", "20", "--", script)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("exit code 9", done.stderr)
        self.assertIn("no more", done.stderr)

    def test_each_failure_is_kept_when_it_goes_on(self):
        done = self.crashtest(*LONG, "--kills", "3", "--keep-going", "--json", "--pool", "mine.pool", "--check", "false",
                              "--", TRANSFERS, "good")
        facts = json.loads(done.stdout)
        self.assertEqual((done.returncode, facts["kills"]), (1, 3), done.stderr)
        kept = [failure["kept_pool"] for failure in facts["failures"] if failure["kept_pool"]]
        self.assertGreaterEqual(len(kept), 1)
        self.assertTrue(all(os.path.exists(path) and "mine.pool.round-" in path for path in kept), kept)

    def test_a_checker_that_does_not_end_is_a_failure(self):
        done = self.crashtest(*LONG, "--kills", "9", "--check-timeout", "0.3", "--check", "sleep 300", "--", TRANSFERS, "good")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not end in 0.3 s", done.stderr)

    def test_what_the_program_has_started_is_killed_as_well(self):
        child = self.folder / "child.sh"
        child.write_text('#!/bin/bash\necho $$ >> pids\nexec sleep 300\n')
        child.chmod(0o755)
        counter = BUILD / "bin/cli_counter"
        done = self.crashtest(*LONG, "--kills", "4", "--", counter, "child", child)
        self.assertEqual(done.returncode, 0, done.stderr)
        pids = [int(line) for line in (self.folder / "pids").read_text().split()]
        self.assertGreater(len(pids), 0)
        deadline = time.monotonic() + 30  # The child's new parent may not have waited for it yet.
        while any(map(is_running, pids)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual([pid for pid in pids if is_running(pid)], [])

    def test_a_pool_that_was_there_stays_there(self):
        self.run_counter()
        done = self.crashtest(*SMALL, "--kills", "4", "--pool", self.pool, "--", TRANSFERS, "good")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.stillpoint("check", self.pool).returncode, 0)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["a.pool"])
        done = self.crashtest(*LONG, "--kills", "2", "--pool", "new.pool", "--", TRANSFERS, "good")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "new.pool").exists(), "a pool that was named is kept")

    def test_an_interruption_ends_it_with_the_summary(self):
        with subprocess.Popen([str(TOOL), "crashtest", *SMALL, "--kills", "100000", "--", str(TRANSFERS), "good"],
                              env={**os.environ, "TMPDIR": str(self.folder)}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            deadline = time.monotonic() + 60
            while not list(self.folder.glob("*/*.pool")) and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 130, output + errors)
        self.assertIn("kills in", output)
        self.assertIn("interrupted", errors)
        self.assertEqual(sorted(self.folder.iterdir()), [])

    def test_bad_input_is_refused_with_the_documented_code(self):
        self.pool.write_bytes(b"not a pool" * 5000)
        for code, words in ((64, ()), (64, ("--kills", "0", "--", TRANSFERS)), (64, ("--kills", "many", "--", TRANSFERS)),
                            (64, ("--moments", "never", "--", TRANSFERS)), (64, ("--seed", "-1", "--", TRANSFERS)),
                            (64, ("--min-ms", "9", "--max-ms", "3", "--", TRANSFERS)), (64, ("--wrong", "--", TRANSFERS)),
                            (64, ("--check", "'open", "--", TRANSFERS)), (64, ("--tracker", "magic", "--", TRANSFERS)),
                            (65, ("--pool", self.pool, "--", TRANSFERS)), (127, ("--", "no-such-program")),
                            (127, ("--check", "no-such-program", "--", TRANSFERS)),
                            (126, ("--", BUILD / "bin/cli_static"))):
            with self.subTest(words=words):
                self.assert_refused(self.crashtest(*words), code)


if __name__ == "__main__":
    unittest.main()
