#!/usr/bin/env python3
"""Plain bodies of transactions, compiled with `stillpoint cc --runtime=spht` (tests/spht/layer).

- Random changes of a structure by a clone are those of the function itself, at each level of optimisation; cancelled ones leave nothing.
- C++: exceptions, virtual functions, containers of the standard library, nested transactions.
- Threads whose transactions meet see only whole ones. What has returned survives a kill, and what had not leaves nothing.
- What makes a transaction irrevocable is reported when the program is linked, and is durable all the same. A longjmp ends the process.
- Functions of other units are found by name and by pointer, also those that GCC has compiled with -fgnu-tm.
- `stillpoint lint` reports accesses outside of transactions, and plain ones inside, on their lines, and nothing else.
"""

import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/nvhooks"))
from compiler_case import CC, CXX, TOOL, CompilerCase, needs_clang, needs_plugin  # noqa: E402  (the path must be set first)

SOURCES = Path(__file__).resolve().parent / "layer"
AVX512 = "-O3 -mavx512f -mavx512bw -mavx512vl -mprefer-vector-width=512"
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-O3 -mavx2", AVX512, "-Os", "-O2 -flto", "-O2 -fno-builtin", "-O2 -fPIC")
STRICT = ("-Wall", "-Wextra", "-g")
HAS_ENGINE = "spht" in subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, check=False).stdout
SAFE = """
__attribute__((transaction_safe)) long grow(long *value) { return *value += 5; }
"""
USES_SAFE = """
#include <stdio.h>
#include "spht-hooks.h"
long grow(long *value);
static void body(void *value) { grow(value); grow(value); sp_tm_cancel(); }
int main(void)
{
    long *value = sp_root("value", sizeof *value);
    printf("%d", sp_tm_run(body, value, 0) == SP_E_ABORTED);
    printf(" %ld\\n", *value);
}
"""
BODY_ALONE = """
#include "spht-hooks.h"
void deep(long *value);
static void body(void *value) { deep(value); }
int main(void) { return sp_tm_run(body, sp_root("value", sizeof(long)), 0); }
"""
DEEP = """
#include <stdio.h>
static void deeper(long *value) { ++*value; printf("%ld\\n", *value); }
void deep(long *value) { deeper(value); }
void never(void) { puts("never"); fflush(stdout); }
"""
WEAK = """
#include <stdio.h>
#include "spht-hooks.h"
__attribute__((weak)) void hook(long *value) { *value += 1; }
SP_TM_PURE int getppid(void);
unsigned _ITM_inTransaction(void);
static unsigned how;
static void body(void *value) { hook(value), getppid(), how = _ITM_inTransaction(); }
int main(void)
{
    long *value = sp_root("value", sizeof *value), before = *value;
    printf("%d", sp_tm_run(body, value, 0));
    printf(" %ld %u\\n", *value - before, how);
}
"""
# Masked loads and stores, and those of one processor, which make the transaction irrevocable.
VECTORS = """
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#include "spht-hooks.h"
struct state { long longs[32]; };
struct task { struct state *on; unsigned long random; };
static unsigned long next(struct task *task) { return task->random = task->random * 6364136223846793005ul + 1442695040888963407ul; }
static void body(void *argument)
{
    struct task *task = argument;
    long *longs = task->on->longs;
    for (int i = 0; i < 20; ++i) {
        const __mmask8 mask = (__mmask8)(next(task) >> 40), other = (__mmask8)(next(task) >> 40);
        const __m512i eight = _mm512_mask_loadu_epi64(_mm512_set1_epi64(i), mask, longs + (next(task) >> 40) % 24);
        _mm512_mask_storeu_epi64(longs + (next(task) >> 40) % 24, other, _mm512_add_epi64(eight, _mm512_set1_epi64(1)));
#ifdef GATHERS
        const __m512i places = _mm512_and_si512(eight, _mm512_set1_epi64(15));
        _mm512_mask_i64scatter_epi64(longs, other, places, _mm512_mask_i64gather_epi64(eight, mask, places, longs, 8), 8);
#endif
    }
}
int main(void)
{
    struct state *durable = sp_root("state", sizeof *durable), model = *durable;
    struct task one = {durable, 1}, other = {&model, 1};
    for (int i = 0; i < 200; ++i) {
        if (sp_tm_run(body, &one, 0) != SP_OK)
            return 1;
        body(&other);
        if (memcmp(durable, &model, sizeof model) != 0)
            return printf("round %d differs\\n", i), 1;
    }
    return puts("alike"), 0;
}
"""
STRONG = "void hook(long *value) { *value += 100; }\n"
FASE = """
#include <stdio.h>
#include "spht-hooks.h"
struct root { long count; long *last; };
int main(int count, char **words)
{
    if (count != 2 || durable_open(words[1], 0) != 0)
        return 1;
    struct root *root = durable_root(sizeof *root);
    durable_fase_begin();
    long *made = durable_allocate(sizeof *made);
    *made = ++root->count;
    if (root->last != NULL)
        durable_release(root->last);
    root->last = made;
    if (durable_fase_end() != 0)
        return fprintf(stderr, "%s\\n", durable_error()), 2;
    printf("%ld %ld\\n", root->count, *root->last);
    durable_close();
    return 0;
}
"""


@needs_plugin
@needs_clang
@unittest.skipUnless(HAS_ENGINE, "the engine spht is not there")
class Layer(CompilerCase):
    def compile(self, name, *words, compiler=CC, standard="-std=gnu11", lints=False):
        """The messages of the compiler."""
        done = self.run_in_folder(compiler, "--runtime=spht", *(["--lint"] if lints else []), standard, *STRICT, *words, "-o", name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def run_program(self, *words, expect=0, medium="memory"):
        done = self.run_in_folder(TOOL, "run", "--quiet", "--engine=spht", f"--medium={medium}", "--durability=process", "--pool=test.pool",
                                  "--pool-size=16", "--", *words)
        self.assertEqual(done.returncode, expect, done.stdout[-2000:] + done.stderr)
        return done.stdout + done.stderr

    def test_clones_do_what_their_functions_do(self):
        facts = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        for level in LEVELS:
            if any(flag[2:] not in facts for flag in re.findall(r"-mavx\w+", level)):
                continue
            with self.subTest(level):
                said = self.compile("mutations", *level.split(), SOURCES / "mutations.c")
                self.assertEqual(said, "")
                for seed in (1, 2):
                    (self.folder / "test.pool").unlink(missing_ok=True)
                    self.assertEqual(self.run_program("./mutations", "600", str(seed)), "alike\n")

    def test_vectors_with_masks(self):
        if "avx512f" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            self.skipTest("this processor has no AVX-512")
        source = self.write("vectors.c", VECTORS)
        for level in ("-O0", "-O2"):
            self.assertEqual(self.compile("vectors", level, "-mavx512f", source), "")
            self.assertEqual(self.run_program("./vectors"), "alike\n")
            self.assertIn("an access by an instruction of one processor", self.compile("gathers", level, "-mavx512f", "-DGATHERS", source))
            self.assertEqual(self.run_program("./gathers"), "alike\n")

    def test_cpp(self):
        for level in ("-O0", "-O1", "-O2", "-O3"):
            with self.subTest(level):
                said = self.compile("objects", level, SOURCES / "objects.cpp", compiler=CXX, standard="-std=c++20")
                self.assertEqual(said, "")
                (self.folder / "test.pool").unlink(missing_ok=True)
                for _ in range(2):
                    self.assertEqual(self.run_program("./objects"), "all is so\n")

    def counters(self, level="-O2"):
        return self.compile("counters", level, SOURCES / "counters.c", SOURCES / "counters_other.c", "-pthread")

    def test_threads_that_meet(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level):
                self.counters(level)
                (self.folder / "test.pool").unlink(missing_ok=True)
                self.assertIn("whole 0\n", self.run_program("./counters", "4", "1500"))
                self.assertIn("found 1500 1500\n", self.run_program("./counters", "0", "0"))

    def test_what_has_returned_survives_a_kill(self):
        self.counters()
        for medium in ("memory", "file"):
            with self.subTest(medium):
                (self.folder / "test.pool").unlink(missing_ok=True)
                done = [0, 0]
                for _ in range(3):
                    output = self.run_program("./counters", "2", "120", "die", expect=-9, medium=medium)
                    found = [int(number) for number in re.search(r"found (\d+) (\d+)", output).groups()]
                    for thread, count in enumerate(done):
                        self.assertGreaterEqual(found[thread], count)
                        reached = [int(number) for number in re.findall(rf"^done {thread} (\d+)$", output, re.MULTILINE)]
                        done[thread] = found[thread] + max(reached, default=0)
                self.assertNotIn("BROKEN", self.run_program("./counters", "2", "5", medium=medium))
                self.assertGreaterEqual(sum(done), 3 * 60)

    def test_what_makes_it_irrevocable_is_reported_and_durable(self):
        said = self.counters()
        self.assertRegex(said, r"counters\.c:\d+:\d+: warning: a call of 'printf', which has no clone for transactions, makes the "
                               r"transaction irrevocable \[-Wstillpoint-unknown-call\]")
        self.assertRegex(said, r"counters\.c:\d+:\d+: warning: an atomic access that writes makes the transaction irrevocable")
        self.assertIn("SP_TM_PURE", said)
        self.assertNotIn("'kill'", said)
        self.assertNotIn("move", said)
        self.assertIn("inside 40\n", self.run_program("./counters", "2", "40", "irrevocable"))
        self.run_program("./counters", "1", "100", "die", expect=-9)
        self.assertIn("whole 60\n", self.run_program("./counters", "2", "30", "atomic"))
        done = self.run_in_folder(CC, "--runtime=spht", "-Werror=stillpoint-unknown-call", SOURCES / "counters.c",
                                  SOURCES / "counters_other.c", "-pthread", "-o", "strict")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("error: ", done.stderr)
        self.assertFalse((self.folder / "strict").exists())

    def test_what_another_unit_does_is_reported_where_a_body_reaches_it(self):
        for level in ("-O0", "-O2"):
            said = self.compile("units", level, self.write("alone.c", BODY_ALONE), self.write("deep.c", DEEP))
            self.assertRegex(said, r"deep\.c:3:\d+: warning: a call of 'printf'")
            self.assertEqual(said.count("warning"), 1, said)
            self.assertRegex(self.run_program("./units"), r"^\d\n$")

    def test_what_cannot_run_or_commit_says_so(self):
        self.assertEqual(self.compile("refused", "-O2", SOURCES / "refused.c"), "")
        self.assertEqual(self.run_program("./refused"), "done\n")
        done = self.run_in_folder(TOOL, "run", "--quiet", "--durability=process", "--pool=other.pool", "--", "./refused", "other")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_weak_functions_are_those_that_the_linker_takes(self):
        weak, strong = self.write("weak.c", WEAK), self.write("strong.c", STRONG)
        for level in ("-O0", "-O2"):
            self.assertIn("'hook'", self.compile("weak", level, weak))
            self.assertEqual(self.run_program("./weak"), "0 1 2\n")
            self.assertEqual(self.compile("strong", level, weak, strong), "")
            self.assertEqual(self.run_program("./strong"), "0 100 1\n")
        self.output_of("gcc", "-c", strong, "-o", "strong.o")
        self.assertIn("'hook'", self.compile("other", "-O2", weak, "strong.o"))
        self.assertEqual(self.run_program("./other"), "0 100 2\n")

    def test_a_jump_out_ends_the_process(self):
        self.counters()
        self.assertIn("longjmp inside a transaction", self.run_program("./counters", "1", "10", "jump", expect=-6))

    def test_functions_that_gcc_has_compiled(self):
        if shutil.which("gcc") is None:
            self.skipTest("gcc is not installed")
        source = self.write("safe.c", SAFE)
        if self.run_in_folder("gcc", "-fgnu-tm", "-O1", "-c", source, "-o", "safe.o").returncode != 0:
            self.skipTest("this gcc has no -fgnu-tm")
        said = self.compile("both", "-O2", self.write("uses.c", USES_SAFE), "safe.o")
        self.assertEqual(said, "")
        self.assertEqual(self.run_program("./both"), "1 0\n")  # an irrevocable one would not have been cancelled

    def test_the_operations_that_every_layer_has(self):
        self.assertEqual(self.compile("fase", "-O2", self.write("fase.c", FASE)), "")
        for run in (1, 2, 3):
            done = self.run_in_folder("./fase", "own.pool", STILLPOINT_QUIET="1")
            if "needs userfaultfd" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual((done.returncode, done.stdout), (0, f"{run} {run}\n"), done.stderr)

    def test_without_a_pool_the_body_runs_too(self):
        self.compile("mutations", "-O2", SOURCES / "mutations.c")
        self.assertEqual(self.run_in_folder("./mutations", "100", "1").stdout, "alike\n")

    def test_lint_reports_each_mistake_and_nothing_else(self):
        lines = (SOURCES / "mistakes.cpp").read_text().splitlines()
        expected = {number: found.group(1) for number, line in enumerate(lines, 1) if (found := re.search(r"// expect: ([\w-]+)", line))}
        self.assertEqual(len(expected), 4)
        for level in ("-O0", "-O2"):
            with self.subTest(level):
                self.compile("mistakes", level, SOURCES / "mistakes.cpp", compiler=CXX, standard="-std=c++20", lints=True)
                done = self.run_in_folder(TOOL, "lint", "--quiet", "--json", "--output", "report.json", "--", "./mistakes")
                self.assertEqual(done.returncode, 1, done.stderr)
                found = json.loads((self.folder / "report.json").read_text())["findings"]
                self.assertEqual({one["line"]: one["kind"] for one in found}, expected)


if __name__ == "__main__":
    unittest.main()
