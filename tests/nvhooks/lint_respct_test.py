"""`stillpoint lint` of a program with restart points reports each breach of their rules, with its line, and nothing else.

- lint_respct_mistakes.cpp says on each line what must be reported of it: the report has these and no others, at -O0 and optimised. It has
  Figure 6 of the paper in both forms: without logging it is reported at its line, with logging it is silent.
- A restart point inside a critical section ends the program, and is in the report.
- The report for people says what to do.
"""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from compiler_case import BUILD, CXX, ROOT, TOOL, CompilerCase, needs_clang, needs_plugin

SOURCE = Path(__file__).parent / "lint_respct_mistakes.cpp"
EXPECTATION = re.compile(r"// expect( in lock)?: ([\w-]+) ?(\S*)")
HAS_ENGINE = "respct" in subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, check=False).stdout


def expectations(in_lock=False):
    """Line number to the kind, and the function that is called."""
    expected = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        found = EXPECTATION.search(line)
        if found and bool(found.group(1)) == in_lock:
            expected[number] = (found.group(2), found.group(3))
    return expected


@needs_plugin
@needs_clang
@unittest.skipUnless(HAS_ENGINE, "the engine respct is not there")
class Lint(CompilerCase):

    @classmethod
    def setUpClass(cls):
        cls.programs = tempfile.TemporaryDirectory(prefix="lint-respct-", dir=BUILD)
        cls.addClassCleanup(cls.programs.cleanup)

    def program(self, level="-O0"):
        path = f"{self.programs.name}/program{level}"
        if not Path(path).exists():
            self.output_of(CXX, "--runtime=respct", "-std=c++20", "-g", level, SOURCE, "-o", path, "-pthread")
        return path

    def lint(self, *words, exit_code):
        """The findings of a run, by their line."""
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--json", "--output", "report.json", "--", *words)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["lost"], 0)
        found = {one["line"]: one for one in report["findings"]}
        self.assertEqual(len(found), len(report["findings"]), "a line is reported twice")
        self.assertTrue(all(one["file"].endswith(SOURCE.name) for one in report["findings"]), report)
        return found

    def assert_is(self, found, expected):
        seen = {line: (one["kind"], re.sub(r"\(.*", "", one.get("calls", ""))) for line, one in found.items()}
        self.assertEqual(seen, expected)

    def test_every_mistake_is_reported_on_its_line_and_nothing_else(self):
        found = self.lint(self.program(), exit_code=1)
        self.assert_is(found, expectations())
        power = next(one for one in found.values() if one["function"].startswith("(anonymous namespace)::power_without_logging"))
        self.assertEqual(power["count"], 6)  # 3 to the power of 7
        read_line = next(number for number, text in enumerate(SOURCE.read_text().splitlines(), 1) if "base = all.x" in text)
        self.assertRegex(power["read_at"], rf"lint_respct_mistakes\.cpp:{read_line} in ")

    def test_optimised_code(self):
        for level in ("-O1", "-O2"):
            with self.subTest(level):
                found = self.lint(self.program(level), exit_code=1)
                expected = expectations()
                self.assertLessEqual(set(found), set(expected))
                self.assertGreater(len(found), len(expected) - 3)  # The compiler takes stores away.

    def test_a_program_that_keeps_the_rules_is_clean(self):
        for level in ("-O0", "-O2"):
            done = self.run_in_folder(TOOL, "lint", "--quiet", "--", self.program(level), "right")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_example_is_clean(self):
        source = ROOT / "examples/respct-resume/powers.cpp"
        self.output_of(CXX, "--runtime=respct", "-std=c++20", "-g", "-O1", source, "-o", "powers", "-pthread")
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--", "./powers", "30", "20000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_restart_point_inside_a_critical_section(self):
        self.assert_is(self.lint(self.program(), "lock", exit_code=1), expectations(in_lock=True))

    def test_the_report_for_people(self):
        text = self.run_in_folder(TOOL, "lint", "--quiet", "--", self.program()).stderr
        self.assertRegex(text, r"durable store that needs logging +6 times  .*:\d+ in .*\n    8 bytes at 0x4\w+, the first time\n"
                               r"    read first, after a restart point, by .*lint_respct_mistakes\.cpp:\d+ in .*\n    .*make it a logged<T>")
        self.assertRegex(text, r"durable store that is not tracked +once .*\n.*\n    no add_modified of it")
        self.assertRegex(text, r"blocking call between restart points +once .*\n    calls std::thread::join\(\)\n.*blocking_call")

    def test_a_program_without_a_pool_of_its_engine_is_not_linted(self):
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--engine=pmthreads", "--", self.program(), "right")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertRegex(done.stderr, "needs the engine respct")


if __name__ == "__main__":
    unittest.main()
