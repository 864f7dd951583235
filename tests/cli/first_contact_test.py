"""A user's first mistakes: a word that is nearly right gets the right one, and output that cannot be written is an error."""

import subprocess
import unittest

from command_line import COUNTER, SMALL, TOOL, CommandLineTest


class NearlyRight(CommandLineTest):
    def test_an_unknown_command_gets_the_nearest(self):
        for word, meant in (("inf", "info"), ("chekc", "check"), ("stat", "stats"), ("comp", "compact"), ("docter", "doctor"),
                            ("help", "--help"), ("version", "--version")):
            with self.subTest(word=word):
                done = self.stillpoint(word, "a.pool")
                self.assert_refused(done, 64, f"there is no command '{word}'; did you mean '{meant}'\\? Commands: run, standby, info, ")
                self.assertNotIn("tables", done.stderr)

    def test_a_word_that_is_near_to_none_gets_the_list(self):
        done = self.stillpoint("frobnicate")
        self.assert_refused(done, 64, "there is no command 'frobnicate'. Commands: run, standby, info, ")
        self.assert_refused(self.stillpoint(), 64, "stillpoint --help")

    def test_an_unknown_option_gets_the_nearest(self):
        for words, called, meant in ((("info", "--jsn"), "info", "--json"), (("info", "--handle", "a.pool"), "info", "--handles"),
                                     (("check", "a.pool", "--jason"), "check", "--json"), (("--quite", "info"), "stillpoint", "--quiet"),
                                     (("run", "--pol", "x", "--", COUNTER), "run", "--pool"),
                                     (("crashtest", "--kill=3", "--", COUNTER), "crashtest", "--kills"),
                                     (("lint", "--outptu", "x", COUNTER), "lint", "--output"),
                                     (("run", "--intervall", "1s", COUNTER), "run", "--interval")):
            with self.subTest(words=words):
                done = self.stillpoint(*words)
                self.assert_refused(done, 64, f"{called} has no option --\\w+; did you mean {meant}\\? \\(see `stillpoint")
        self.assert_refused(self.stillpoint("info", "--frobnicate"), 64, "info has no option --frobnicate \\(see `stillpoint info --help`")
        self.assert_refused(self.stillpoint("info", "a.pool", "b.pool"), 64, "b.pool")

    def test_a_program_keeps_options_that_look_like_ours(self):
        done = self.stillpoint("run", "--quiet", "--pool", self.pool, *SMALL, COUNTER, "--pol")
        self.assertNotEqual(done.returncode, 64, done.stderr)


class OutputThatCannotBeWritten(CommandLineTest):
    def into(self, output, *words):
        with open(output, "w", encoding="utf-8") as file:
            return subprocess.run([TOOL, *words], stdout=file, stderr=subprocess.PIPE, text=True, check=False, cwd=self.folder, timeout=60)

    def test_a_full_device(self):
        pool = self.new_pool()
        for words in (("info", pool), ("info", "--json", pool), ("check", pool), ("doctor", "."), ("doctor", "--json"), ("--help",),
                      ("run", "--help"), ("--version",), ("tables", "options")):
            with self.subTest(words=words):
                done = self.into("/dev/full", *words)
                self.assertEqual(done.returncode, 74, done.stderr)
                self.assertRegex(done.stderr, r"stillpoint: error: standard output cannot be written \((No space left|an earlier write)")
        self.assertEqual(self.into("/dev/full", "info", "gone").returncode, 66, "the first error counts")
        other = self.folder / "other.pool"
        for _ in range(2):
            self.assertEqual(self.run_counter(pool=other).returncode, 0)
        self.assertEqual(self.stillpoint("diff", pool, other).returncode, 1)
        self.assertEqual(self.into("/dev/full", "diff", pool, other).returncode, 74)

    def test_watching_ends_when_nothing_can_be_shown(self):
        words = [str(word) for word in (TOOL, "run", "--quiet", "--pool", self.pool, *SMALL, "--", COUNTER, "wait")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
            self.assertEqual([holder.stdout.readline() for _ in range(2)][1], "ready\n")
            self.assertEqual(self.into("/dev/full", "stats", "--watch", "0.01", self.pool).returncode, 74)
            holder.kill()

    def test_a_closed_output_is_told_and_no_pool_takes_its_place(self):
        pool = self.new_pool()

        def look():
            script = f'"{TOOL}" info "{pool}" >&-; echo $?; "{TOOL}" check "{pool}" <&- >&-; echo $?'
            return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, cwd=self.folder, timeout=60)
        done = self.assert_untouched_by(pool, look)
        self.assertEqual(done.stdout.split(), ["74", "74"], done.stderr)
        self.assertIn("standard output cannot be written (Bad file descriptor)", done.stderr)


if __name__ == "__main__":
    unittest.main()
