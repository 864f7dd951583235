"""`make test` does two things at a time, and ends with the first failure of either: says which, and shows what nobody has seen."""

import contextlib
import io
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import test_everything  # its folder is known from here on

NEVER_S = "1000"


class TwoAtATime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = Path(folder.name) / "beside.log"
        self.two = test_everything.TwoAtATime()
        self.addCleanup(self.two.stop)

    def said(self, work):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            work()
        return out.getvalue()

    def test_what_goes_on_beside_has_its_summary_when_it_has_passed(self):
        self.two.start_beside("tests beside", [["true"], ["echo", "100% tests passed, 0 tests failed out of 25"]], self.log)
        said = self.said(self.two.wait_for_beside)
        self.assertRegex(said, r"tests beside: 25 tests passed, after \d+ s")
        self.assertIsNone(self.two.beside)

    def test_a_failure_beside_ends_what_is_shown_and_its_output_is_shown(self):
        self.two.start_beside("tests beside", [["sh", "-c", "echo what went wrong; exit 8"], ["true"]], self.log)
        with self.assertRaisesRegex(test_everything.Failed, "tests beside: exit code 8"):
            self.two.show("a long build", [["sleep", NEVER_S]])
        self.assertIn("what went wrong", self.said(self.two.show_failure))
        shown = self.two.shown.process
        self.two.stop()
        self.assertIsNotNone(shown.poll())

    def test_complaints_long_before_the_end_are_shown_too(self):
        lines = ["file.cpp:7: Failure", "  Actual: 3", *["[       OK ] Something"] * 500]
        self.two.start_beside("tests beside", [[sys.executable, "-c", f"print(chr(10).join({lines})); exit(8)"]], self.log)
        with self.assertRaises(test_everything.Failed):
            self.two.show("a long build", [["sleep", NEVER_S]])
        said = self.said(self.two.show_failure)
        self.assertIn("file.cpp:7: Failure\n  Actual: 3\n", said)
        self.assertLess(len(said.splitlines()), 80)

    def test_a_failure_of_what_is_shown_ends_what_goes_on_beside(self):
        self.two.start_beside("tests beside", [["sh", "-c", f"sleep {NEVER_S} & wait"]], self.log)
        with self.assertRaisesRegex(test_everything.Failed, "the build: exit code 3 of sh"):
            self.two.show("the build", [["true"], ["sh", "-c", "exit 3"], ["true"]])
        group = self.two.beside.process.pid
        self.two.stop()
        for _ in range(1000):  # a process that init has to collect
            if subprocess.run(["pgrep", "-g", str(group)], stdout=subprocess.DEVNULL, check=False).returncode != 0:
                return
            time.sleep(0.01)
        self.fail("a process of the group is left")

    def test_failed_tests_are_shown_again_at_the_end(self):
        many = "\n".join(f"line {n}" for n in range(100))
        log = "".join(f"{i}/3 Testing: {name}\n{i}/3 Test: {name}\nCommand: x\nOutput:\n------\n{said}\n<end of output>\nTest time = 1 sec\n"
                      for i, name, said in ((1, "first", "fine"), (2, "second", many), (3, "third", "fine, too")))
        shown = test_everything.ends_of_tests(log, {"second"})
        self.assertEqual(shown[0], "-- the end of second:")
        self.assertEqual(shown[1:], [f"line {n}" for n in range(85, 100)])


if __name__ == "__main__":
    unittest.main()
