"""verify_marks: code that writes durable memory without a mark is named, and nothing that it wrote is lost."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from command_line import BUILD, SMALL, CommandLineTest  # noqa: E402

KILLED = -9


class VerifyMarks(CommandLineTest):
    def run_with(self, *words, program="hooks_verify", options=("--tracker", "hooks", "--verify-marks", "--interval", "2")):
        return self.stillpoint("run", "--pool", self.pool, *SMALL, *options, "--", BUILD / "bin" / program, *words)

    def named(self, what, program, state):
        """The one warning of a run; the state is there afterwards, read with another tracker."""
        self.pool.unlink(missing_ok=True)
        done = self.run_with(what, program=program)
        self.assertEqual(done.returncode, KILLED, done.stderr)
        self.assertEqual(self.run_with("print", options=()).stdout.strip(), state)
        start, *warnings = done.stderr.splitlines()
        self.assertIn("tracker hooks, verifying marks (1 instrumented unit)", start)
        self.assertEqual(len(warnings), 1, done.stderr)
        self.assertTrue(warnings[0].startswith("stillpoint: warning: verify_marks: "), done.stderr)
        return warnings[0]

    def test_a_program_that_marks_everything_is_told_nothing(self):
        for _ in range(3):
            done = self.run_with("marked")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (KILLED, 1), done.stderr)

    def test_an_object_without_marks_is_named_with_its_function_once_and_what_it_wrote_is_kept(self):
        for program, module in (("hooks_verify", "hooks_verify"), ("hooks_verify_library", "libhooks_unmarked.so")):
            with self.subTest(program=program):
                warning = self.named("scribble", program, "3 3")
                self.assertIn(f"store_deep_inside in {module} (+0x", warning)
                self.assertRegex(warning, r"0x48\w+ to 0x48\w+, 8\d{3} bytes into \"objects\" \(image page \d+\)")
                self.assertIn("sp_mark_written()", warning)

    def test_a_store_by_libc_is_named_after_who_called_it(self):
        for program, module in (("hooks_verify", "hooks_verify"), ("hooks_verify_library", "libhooks_unmarked.so")):
            with self.subTest(program=program):
                warning = self.named("libc", program, "3 0 unmarked")
                self.assertRegex(warning, rf"scribble_through_libc in {module} \(\+0x\w+\), by a call into libc")

    def test_it_is_refused_with_another_tracker(self):
        done = self.run_with("marked", options=("--verify-marks",))
        self.assert_refused(done, 64, "verify_marks", "tracker hooks")
        self.assertFalse(self.pool.exists())

    def test_pages_cannot_be_loaded_lazily_then(self):
        self.run_with("marked")
        done = self.run_with("marked", options=("--tracker", "hooks", "--verify-marks", "--recovery", "lazy"))
        self.assert_refused(done, 69, "recovery=lazy")


if __name__ == "__main__":
    unittest.main()
