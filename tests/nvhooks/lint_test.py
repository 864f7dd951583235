"""`stillpoint lint` reports each durable store outside a FASE and each pointer out of durable memory, with its line, and
nothing else.

- lint_mistakes.c says on each line what must be reported of it: the report has these and no others.
- Programs that keep the rules are clean: the examples, and the right part of that program.
- What is reported survives a crash of the program; its exit code is told.
- What cannot be linted is refused, with what to do.
"""

import json
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from compiler_case import BUILD, CC, CLANG, CXX, ROOT, TOOL, CompilerCase, needs_clang, needs_plugin

SOURCE = Path(__file__).parent / "lint_mistakes.c"
STORES_UNSEEN = """
struct node { long value; void *unseen, *seen; };
void put(struct node *node, void *pointer) { node->unseen = pointer; }
"""
CALLS_UNSEEN = """
#include <stdlib.h>
#include "stillpoint/stillpoint.h"
struct node { long value; void *unseen, *seen; };
void put(struct node *node, void *pointer);
int main(void)
{
    sp_fase_begin();
    for (int i = 0; i < 3; ++i) {
        struct node *node = sp_calloc(1, sizeof *node);
        put(node, malloc(1));
        node->seen = malloc(1);
        sp_free(sp_calloc(1, sizeof *node));
    }
    sp_fase_end();
    return 0;
}
"""
KINDS = {"store-outside-fase": "store", "pointer-out": "pointer", "possible-pointer-out": "possible"}

WITH_VTABLE = """
#include <mutex>
#include <new>
#include "stillpoint/stillpoint.h"
struct Shape { virtual ~Shape() = default; virtual int sides() const { return 0; } int size = 0; };
struct Square : Shape { int sides() const override { return 4; } };
int main()
{
    std::mutex lock;
    const std::scoped_lock guard(lock);
    auto *square = new (sp_root("square", sizeof(Square))) Square;
    square->size = 3;
    return square->sides() - 4;
}
"""


def expectations():
    """Line number to the kind and the pattern of the target, from the comments in the program."""
    expected = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        found = re.search(r"/\* expect: (\w+) ?(.*?) \*/", line)
        if found:
            expected[number] = found.groups()
    return expected


@needs_plugin
@needs_clang
class Lint(CompilerCase):
    compiled = None  # lint_mistakes.c, once for all tests: (folder, path)

    @classmethod
    def tearDownClass(cls):
        if cls.compiled is not None:
            cls.compiled[0].cleanup()

    def mistakes(self):
        if Lint.compiled is None:
            folder = tempfile.TemporaryDirectory(prefix="lint-", dir=BUILD)
            Lint.compiled = (folder, f"{folder.name}/program")
            self.build(name=Lint.compiled[1])
        return Lint.compiled[1]

    def build(self, *flags, source=SOURCE, name="program", compiler=CC):
        self.output_of(compiler, "--lint", "-g", "-O0", *flags, source, "-o", name, "-pthread")
        return f"./{name}"

    def lint(self, *words, exit_code, **environment):
        """The report of a run, read from its JSON."""
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--json", "--output", "report.json", *words, **environment)
        report = self.folder / "report.json"
        self.assertEqual(done.returncode, exit_code, done.stderr + (report.read_text() if report.exists() else ""))
        return json.loads(report.read_text())

    def assert_finds_what_the_source_says(self, report):
        expected = expectations()
        found = {one["line"]: (KINDS[one["kind"]], one.get("target", "")) for one in report["findings"]}
        self.assertEqual(sorted(found), sorted(expected), report)
        self.assertEqual(len(report["findings"]), len(expected))
        for line, (kind, target) in expected.items():
            self.assertEqual(found[line][0], kind, f"line {line}: {found[line]}")
            self.assertTrue(re.search(target, found[line][1]), f"line {line}: {found[line]}")
        self.assertTrue(all(one["file"].endswith("lint_mistakes.c") for one in report["findings"]))

    def test_every_mistake_is_reported_on_its_line_and_nothing_else(self):
        report = self.lint("--", self.mistakes(), exit_code=1)
        self.assert_finds_what_the_source_says(report)
        by_line = {one["line"]: one for one in report["findings"]}
        counts = {one["function"]: one["count"] for one in report["findings"] if one["count"] > 1}
        self.assertEqual(counts, {"outside": 5, "set_value": 2})  # a loop; and two callers, in two threads
        set_value = next(one for one in by_line.values() if one["function"] == "set_value")
        self.assertEqual([frame["function"] for frame in set_value["stack"]], ["set_value", "outside", "main"])
        self.assertEqual(report["program"], {"exit_code": 0, "signal": 0})

    def test_optimised_code_has_no_finding_that_the_source_does_not_say(self):
        for level in ("-O1", "-O2"):
            report = self.lint("--", self.build(level), exit_code=1)
            self.assertLessEqual({one["line"] for one in report["findings"]}, set(expectations()))
            self.assertGreaterEqual(len(report["findings"]), 8, level)

    def test_a_program_that_keeps_the_rules_is_clean_and_ends_as_it_likes(self):
        program = self.mistakes()
        self.assertEqual(self.lint("--", program, "right", exit_code=0)["findings"], [])
        self.assertEqual(self.lint("--", program, "right", "failing", exit_code=5)["program"]["exit_code"], 5)
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--", program, "right")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_report_survives_the_end_of_the_program(self):
        program = self.mistakes()
        report = self.lint("--", program, "crash", exit_code=1)
        self.assert_finds_what_the_source_says(report)
        self.assertEqual(report["program"], {"exit_code": 0, "signal": 11})
        self.assert_finds_what_the_source_says(self.lint("--", program, "fail", exit_code=1))
        self.assert_finds_what_the_source_says(self.lint("--", program, "fork", exit_code=1))
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--", program, "crash")
        self.assertIn("killed by signal 11", done.stderr.splitlines()[-1])

    def test_the_report_for_people(self):
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--", self.mistakes())
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"durable store outside a FASE +2 times  .*lint_mistakes\.c:\d+ in set_value\n"
                                      r"    8 bytes at 0x4\w+, the first time\n"
                                      r"    called from .*lint_mistakes\.c:\d+ in outside\n"
                                      r"    called from .*lint_mistakes\.c:\d+ in main\n")
        self.assertRegex(done.stderr, r"pointer out of durable memory +once .*\n.* points to code of program: callback\n")
        self.assertRegex(done.stderr, rf"stillpoint lint: {len(expectations())} places\n$")

    def test_what_code_without_hooks_stored_is_found_in_memory_at_the_end(self):
        self.write("unseen.c", STORES_UNSEEN)
        self.output_of(CLANG, "-c", "unseen.c")
        self.write("main.c", CALLS_UNSEEN)
        program = self.build("unseen.o", source="main.c")
        report = self.lint("--", program, exit_code=1)
        seen, unseen = report["findings"]
        self.assertEqual((seen["kind"], seen["count"], seen["line"]), ("pointer-out", 3, 12))
        self.assertEqual((unseen["kind"], unseen["count"], unseen["size_bytes"], unseen["block_offset"]),
                         ("possible-pointer-found", 3, 32, 8))
        self.assertRegex(unseen["target"], "heap")
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--", program)
        self.assertRegex(done.stderr, r"possible pointer, stored without a hook +3 times  block:32\+8, found in memory at the end\n")
        self.write("known.txt", "block:32+8\n")
        self.assertEqual(len(self.lint("--suppress", "known.txt", "--", program, exit_code=1)["findings"]), 1)

    def test_suppressions(self):
        program = self.mistakes()
        self.write("known.txt", "# known\n\nfunction:outsi*\n  function:words\nfile:no/such/\n")
        report = self.lint("--suppress", "known.txt", "--", program, exit_code=1)
        self.assertEqual({one["function"] for one in report["findings"]}, {"pointers"})
        self.assertGreater(report["suppressed"], 3)
        for pattern in ("file:lint_mistakes.c", "module:program"):
            self.write("all.txt", pattern)
            self.assertEqual(self.lint("--suppress", "all.txt", "--", program, exit_code=0)["findings"], [])

    def test_lines_without_llvm_symbolizer_and_places_without_line_information(self):
        program = self.mistakes()
        if shutil.which("addr2line"):
            found = self.lint("--", program, exit_code=1, STILLPOINT_SYMBOLIZER="addr2line")["findings"]
            self.assertEqual({one["line"] for one in found}, set(expectations()))
        found = self.lint("--", program, exit_code=1, STILLPOINT_SYMBOLIZER="no-such-tool")["findings"]
        self.assertTrue(all(one["module"].endswith("/program") and one["line"] == 0 for one in found))
        done = self.run_in_folder(TOOL, "lint", "--quiet", "--", program, STILLPOINT_SYMBOLIZER="no-such-tool")
        self.assertRegex(done.stderr, r"durable store outside a FASE +once  program\+0x\w+\n")

    def test_a_pool_is_temporary_unless_one_is_named(self):
        program = self.mistakes()
        (self.folder / "tmp").mkdir()
        self.lint("--", program, "right", exit_code=0, TMPDIR=str(self.folder / "tmp"))
        self.assertEqual(os.listdir(self.folder / "tmp"), [])
        self.lint("--pool", "kept.pool", "--pool-size", "4M", "--durability", "process", "--", program, "right", exit_code=0)
        self.assertTrue((self.folder / "kept.pool").exists())

    def test_code_of_a_shared_library_and_of_cpp(self):
        self.write("library.c", "void put(long *at) { *at = 1; }\n")
        self.write("main.c", '#include "stillpoint/stillpoint.h"\nvoid put(long *at);\n'
                             'int main(void) { put(sp_root("r", 8)); return 0; }\n')
        self.output_of(CC, "--lint", "-g", "-fPIC", "-shared", "library.c", "-o", "libput.so")
        report = self.lint("--", self.build("-L.", "-lput", "-Wl,-rpath,.", source="main.c"), exit_code=1)
        self.assertEqual([(one["function"], Path(one["module"]).name) for one in report["findings"]], [("put", "libput.so")])
        report = self.lint("--", self.build("-std=c++20", source=self.write("v.cpp", WITH_VTABLE), compiler=CXX), exit_code=1)
        targets = [one["target"] for one in report["findings"]]
        self.assertTrue(targets and all("vtable for" in target for target in targets), report)

    def test_the_examples_are_clean(self):
        bank = self.build("-D_GNU_SOURCE", source=ROOT / "examples/bank/bank.c", name="bank")
        self.assertEqual(self.lint("--", bank, "--transfers", "3000", "--acknowledge", "ack", exit_code=0)["findings"], [])
        sources = sorted((ROOT / "examples/word-index").glob("*.cpp"))
        self.output_of(CXX, "--lint", "-g", "-O0", "-std=c++20", "-D_GNU_SOURCE", *sources, "-o", "word-index", "-pthread")
        report = self.lint("--", "./word-index", "--threads", "2", "--dump", "index", ROOT / "include", exit_code=0)
        self.assertEqual(report["findings"], [])


class LintRefuses(CompilerCase):
    def assert_refused(self, done, exit_code, *messages):
        self.assertEqual(done.returncode, exit_code, f"{done.stdout}{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("stillpoint: error: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for message in messages:
            self.assertRegex(lines[0], message)

    def test_a_program_that_is_not_instrumented(self):
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--", shutil.which("true")), 126, "true is not instrumented",
                            "stillpoint cc --lint -g")

    @needs_plugin
    @needs_clang
    def test_a_program_for_another_layer(self):
        self.write("a.c", "int a; int main(int count, char **words) { (void)words; a = count; return 0; }\n")
        self.output_of(CC, "a.c", "-o", "a")
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--", "./a"), 126, "compiled for the layer pmthreads",
                            "stillpoint cc --lint -g")

    def test_no_program(self):
        self.assert_refused(self.run_in_folder(TOOL, "lint"), 64, "which program")
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--", "no-such-program"), 127, "no such program")
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--no-such-option", "--", "true"), 64, "no-such-option")

    def test_suppressions_that_cannot_be_read(self):
        self.write("bad.txt", "# fine\nfunction:main\nmain\n")
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--suppress", "bad.txt", "--", "true"), 65, r"bad\.txt:3: 'main'",
                            "function:PATTERN")
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--suppress", "none.txt", "--", "true"), 66,
                            "none.txt: No such file")

    def test_nowhere_to_write(self):
        self.assert_refused(self.run_in_folder(TOOL, "lint", "--", "true", TMPDIR="/no/such/folder"), 73, "/no/such/folder",
                            "Set TMPDIR")


if __name__ == "__main__":
    unittest.main()
