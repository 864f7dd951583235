"""The examples, compiled by `stillpoint cc` and `stillpoint c++`, with the tracker hooks: killed and recovered, and verified."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "nvhooks"))
from compiler_case import BUILD, CC, CXX, PLUGINS, ROOT, TOOL, CompilerCase, CLANG  # noqa: E402

EXAMPLES = ROOT / "examples"
WORDS = str(ROOT / "src")


@unittest.skipUnless(CLANG and PLUGINS, "clang-19 or the compiler plugin is missing")
class Instrumented(CompilerCase):
    def compile(self, compiler, name, *sources, language=()):
        """Into an installation of its own, as kill_loop.py wants it."""
        for part, files in (("bin", [TOOL]), ("lib", BUILD.glob("lib/libstillpoint.so*"))):
            (self.folder / part).mkdir(exist_ok=True)
            for file in files:
                shutil.copy(file, self.folder / part)
        self.output_of(compiler, "-O1", *language, "-w", f"-I{ROOT}/include", *sources, "-o", f"bin/{name}")
        return self.folder / "bin" / name

    def word_index(self, *plain):
        """The sources called `plain` are compiled by the system's own compiler."""
        sources = sorted((EXAMPLES / "word-index").glob("*.cpp"))
        objects = []
        for source in plain:
            objects.append(self.folder / f"{source}.o")
            self.output_of("g++", "-O1", "-std=c++20", f"-I{ROOT}/include", "-c", EXAMPLES / "word-index" / source, "-o", objects[-1])
        others = [source for source in sources if source.name not in plain]
        return self.compile(CXX, "word-index", *others, *objects, language=("-std=c++20",))

    def verified(self, program, *words):
        """The report of verify_marks, a line for each function."""
        done = self.run_in_folder(TOOL, "run", "--pool", "a.pool", "--durability", "process", "--pool-size", "16M", "--tracker",
                                  "hooks", "--verify-marks", "--interval", "10", "--", program, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "verify_marks" in line]

    def kill(self, name):
        done = subprocess.run([sys.executable, "-B", str(TESTS / "kill/kill_loop.py"), "--program", name, "--tracker", "hooks",
                               "--kills", "6", "--seed", "20", "--longest-ms", "250", "--directory", WORDS, "--binaries",
                               str(self.folder / "bin"), "--folder", str(self.folder / "loop")],
                              capture_output=True, text=True, check=False, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all promises kept", done.stdout)

    def test_a_c_program_marks_all_that_it_writes_and_survives_kills(self):
        program = self.compile(CC, "bank", EXAMPLES / "bank/bank.c")
        self.assertEqual(self.verified(program, "--threads", "2", "--transfers", "20000"), [])
        self.kill("bank")

    def test_a_c_plus_plus_program_marks_all_that_it_writes_and_survives_kills(self):
        program = self.word_index()
        self.assertEqual(self.verified(program, "--threads", "2", WORDS), [])
        self.kill("word-index")

    def test_crashtest_finds_nothing_in_a_program_that_keeps_the_rules_and_a_bug_in_one_that_does_not(self):
        program = self.compile(CC, "transfers", TESTS / "cli/cli_transfers.c")
        options = ("--durability", "process", "--pool-size", "4M", "--pool-max", "64M", "--tracker", "hooks", "--seed", "5", "--check",
                   f"{program} verify", "--json")
        for what, kills, timing, result in (("good", "12", ("--interval", "3ms", "--max-ms", "60"), "passed"),
                                            ("torn", "100", ("--interval", "3ms", "--min-ms", "150", "--max-ms", "300", "--moments",
                                                             "random"), "failed")):
            done = self.run_in_folder(TOOL, "crashtest", *options, *timing, "--kills", kills, "--", program, what,
                                      TMPDIR=str(self.folder))
            self.assertEqual(json.loads(done.stdout)["result"], result, done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("g++"), "there is no g++")
    def test_an_object_that_another_compiler_made_is_named_by_its_functions(self):
        told = self.verified(self.word_index("index.cpp"), "--threads", "2", WORDS)
        self.assertTrue(told)
        for line in told:
            self.assertRegex(line, r"word_index::.* in word-index \(\+0x")
        self.assertTrue(any("Indexer::" in line for line in told), told)


if __name__ == "__main__":
    unittest.main()
