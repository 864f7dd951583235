"""Layouts of the program's data: what SP_LAYOUT and --layout accept and refuse, and steps that are killed in the middle."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from compiled import CLEAN_ENVIRONMENT, TOOL, CompiledPrograms

# Number n of the layout: words[i] is i * n. STEP_DIES: the step kills the process when half is done; STEP_FAILS: it says so.
PROGRAM = """#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "stillpoint/stillpoint.h"
enum {{ words = {words} }};
{records}
static int to(long from, long number)
{{
    long* word = sp_root("words", words * sizeof(long));
    for (long i = 0; i < words; ++i) {{
        if (word[i] != i * from) {{
            return 9;
        }}
        word[i] = i * number;
        if (i == words / 2 && getenv("STEP_DIES")) {{
            raise(SIGKILL);
        }}
    }}
    return getenv("STEP_FAILS") ? 7 : 0;
}}
int from_1_to_2(void) {{ return to(1, 2); }}
int from_2_to_5(void) {{ return to(2, 5); }}
int main(void)
{{
    {before}
    long* word = sp_root("words", words * sizeof(long));
    if (sp_start_kind() == SP_START_FRESH) {{
        sp_fase_begin();
        for (long i = 0; i < words; ++i) {{
            word[i] = i * {number};
        }}
        sp_fase_end();
    }}
    for (long i = 0; i < words; ++i) {{
        if (word[i] != i * {number}) {{
            printf("word %ld is %ld\\n", i, word[i]);
            return 1;
        }}
    }}
    puts("sound");
    return 0;
}}
"""
STEPS = "int from_1_to_2(void); int from_2_to_5(void); SP_LAYOUT_STEP(1, 2, from_1_to_2); SP_LAYOUT_STEP(2, 5, from_2_to_5);"

# With the engine spht: the step's transactions join the one that it runs in.
TRANSACTIONS = """#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"
enum {{ words = {words} }};
{records}
static long number_of_step;
static int scale(sp_spht_transaction* transaction, void* root)
{{
    uint64_t* word = root;
    for (long i = 0; i < words; ++i) {{
        int code = sp_spht_write_word(transaction, &word[i], (uint64_t)(i * number_of_step), ~0ull);
        if (code != SP_OK) {{
            return code;
        }}
        if (i == words / 2 && getenv("STEP_DIES")) {{
            raise(SIGKILL);
        }}
    }}
    return SP_OK;
}}
static int to(long number)
{{
    number_of_step = number;
    int code = sp_spht_run(scale, sp_root("words", words * sizeof(uint64_t)), 0);
    return code == SP_OK && getenv("STEP_FAILS") ? 7 : code;
}}
int from_1_to_2(void) {{ return to(2); }}
int from_2_to_5(void) {{ return to(5); }}
int main(void)
{{
    {before}
    uint64_t* word = sp_root("words", words * sizeof(uint64_t));
    if (sp_start_kind() == SP_START_FRESH && to({number}) != SP_OK) {{
        return 2;
    }}
    for (long i = 0; i < words; ++i) {{
        if (word[i] != (uint64_t)(i * {number})) {{
            printf("word %ld is %ld\\n", i, (long)word[i]);
            return 1;
        }}
    }}
    puts("sound");
    return 0;
}}
"""

# With the engine respct the words are logged variables, which a crash rolls back.
LOGGED = (PROGRAM.replace('#include "stillpoint/stillpoint.h"', """#include "stillpoint/respct.h"
static const sp_respct_member members[] = {{{{0, SP_RESPCT_LOGGED_8, 1}}}};
static sp_respct_layout type = {{
    .type_name = "word", .size_bytes = 32, .alignment_bytes = 32, .members = members, .member_count = 1}};""")
          .replace('long* word = sp_root("words", words * sizeof(long))', 'sp_respct_logged* word = sp_respct_root("words", &type, words)')
          .replace("word[i] != i * from", "(long)word[i].value != i * from")
          .replace("word[i] != i * {number}", "(long)word[i].value != i * {number}")
          .replace("word[i] = i * number", "sp_respct_update(&word[i], (uint64_t)(i * number))")
          .replace("word[i] = i * {number}", "sp_respct_update(&word[i], (uint64_t)(i * {number}))")
          .replace("word[i]);", "(long)word[i].value);"))


def source_of(number, records="", words=2000, before="", text=PROGRAM):
    return text.format(number=number, records=records, words=words, before=before)


def layout(number, name="inventory"):
    return f'SP_LAYOUT("{name}", {number});'


class Layouts(CompiledPrograms):
    def runs(self, program, *options, **more):
        run = self.start(program, *options, **more)
        self.assertEqual((run.returncode, run.stdout), (0, "sound\n"), run.stderr)
        return run.stderr

    def is_refused(self, program, text, *options, code=65):
        run = self.start(program, *options)
        self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
        self.assertIn(text, run.stderr)

    def kept(self, pool="globals.pool"):
        shown = subprocess.run([TOOL, "info", "--handles", "--json", pool], cwd=self.folder, capture_output=True, text=True, check=True)
        return json.loads(shown.stdout)["data_layout"]

    def test_a_pool_keeps_the_layout_that_it_was_made_with(self):
        self.build("one", source_of(1, layout(1)))
        self.runs("one")
        self.assertEqual(self.kept(), "inventory:1")
        self.runs("one", "--layout", "inventory:1")
        self.build("other", source_of(1, layout(1, "orders")))
        self.is_refused("other", "the layout inventory:1, the program's is orders:1")
        self.build("two", source_of(2, layout(2)))
        self.is_refused("two", "has no step from 1")
        self.build("newer", source_of(1, layout(0) + STEPS))
        self.is_refused("newer", "newer than the program's, inventory:0")
        self.build("states_none", source_of(1))
        self.runs("states_none")
        self.is_refused("states_none", "the program's is inventory:3", "--layout", "inventory:3")
        self.runs("one")
        self.assertEqual(self.kept(), "inventory:1")

    def test_a_pool_without_a_layout_takes_the_first_that_is_stated(self):
        self.build("states_none", source_of(1))
        self.runs("states_none")
        self.assertEqual(self.kept(), "")
        self.runs("states_none", "--layout", "inventory:1")
        self.assertEqual(self.kept(), "inventory:1")
        self.is_refused("states_none", "orders:1", "--layout", "orders:1")

    def test_statements_that_cannot_be_meant_are_refused(self):
        self.build("one", source_of(1, layout(1)))
        for text in ("inventory", "inventory:", ":1", "inventory:1x", "inventory:-1", "a b:1", "x" * 48 + ":1",
                     "inventory:99999999999999999999"):
            with self.subTest(text=text):
                self.is_refused("one", "is not a layout", "--layout", text, code=64)
        self.is_refused("one", "two layouts are stated", "--layout", "inventory:2", code=64)
        self.build("twice", source_of(1, layout(1) + layout(2)))
        self.is_refused("twice", "two layouts are stated", code=64)
        self.build("steps_only", source_of(1, STEPS))
        self.is_refused("steps_only", "states no layout", code=64)
        self.assertFalse(os.path.exists(self.path("globals.pool")))

    def test_steps_follow_one_another_and_are_taken_once(self):
        for compiler in ("cc", "c++"):
            with self.subTest(compiler=compiler):
                declared = STEPS
                text = PROGRAM if compiler == "cc" else PROGRAM.replace("long* word = ", "long* word = (long*)")
                self.build("one", source_of(1, layout(1), text=text), compiler=compiler)
                self.build("five", source_of(5, declared + layout(5), text=text), compiler=compiler)
                self.runs("one")
                self.assertIn("layout inventory:5 now, by 2 steps", self.runs("five"))
                self.assertNotIn("step", self.runs("five"))
                self.assertEqual(self.kept(), "inventory:5")
                self.is_refused("one", "newer than the program's")
                os.remove(self.path("globals.pool"))

    def test_a_step_that_fails_or_is_killed_leaves_the_older_data(self):
        for text, engine in ((PROGRAM, ("pmthreads",)), (PROGRAM, ("pmthreads", "--tracker", "mprotect")), (LOGGED, ("respct",)),
                             (TRANSACTIONS, ("spht",))):
            with self.subTest(engine=engine):
                self.build("one", source_of(1, layout(1), text=text))
                self.build("five", source_of(5, STEPS + layout(5), text=text))
                self.runs("one", "--engine", *engine)
                run = self.start("five", environment={"STEP_FAILS": "1"})
                self.assertEqual((run.returncode, run.stdout), (65, ""), run.stderr)
                self.assertIn("step from layout 1 to 2 failed with the value 7", run.stderr)
                self.runs("one")
                self.assertEqual(self.start("five", environment={"STEP_DIES": "1"}).returncode, -signal.SIGKILL)
                self.runs("one")
                self.assertEqual(self.kept(), "inventory:1")
                self.runs("five")
                os.remove(self.path("globals.pool"))

    def test_kills_at_any_moment_leave_one_of_the_layouts_whole(self):
        words = 1 << 17
        programs = {}
        for number in (1, 2, 5):
            programs[number] = self.build(f"of{number}", source_of(number, layout(number), words))
        self.build("steps", source_of(5, STEPS + layout(5), words))
        environment = {**CLEAN_ENVIRONMENT, "STILLPOINT_INTERVAL_MS": "2"}
        seen = set()
        chance = random.Random(26)
        limit_s = 0.01  # A kill that came too early makes the next ones later, however slow the machine is.
        for turn in range(100):
            if turn >= 20 and len(seen) > 1:
                break
            if not os.path.exists(self.path("globals.pool")):
                self.runs("of1")
            child = subprocess.Popen([TOOL, "--quiet", "run", "--pool", "globals.pool", "--", "./steps"], cwd=self.folder, env=environment,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, limit_s))
            child.kill()
            child.wait()
            number = int(self.kept().partition(":")[2])
            seen.add(number)
            limit_s *= 1.15 if number == 1 else 0.9
            self.runs(programs[number])
            if number == 5:
                os.remove(self.path("globals.pool"))
        self.assertGreater(len(seen), 1, seen)

    def test_sp_open_and_variables_take_steps_too(self):
        opens = 'if (sp_open("globals.pool", "durability=process pool_max_mb=64") != SP_OK) { puts(sp_last_error()); return 3; }'
        for number, records in ((1, layout(1)), (5, STEPS + layout(5)), (2, layout(2))):
            self.build(f"opens{number}", source_of(number, records, before=opens))
        for number, expected in ((1, (0, "sound\n")), (5, (0, "sound\n"))):
            run = subprocess.run([f"./opens{number}"], cwd=self.folder, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stdout), expected, run.stderr)
        run = subprocess.run(["./opens2"], cwd=self.folder, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 3)
        self.assertIn("inventory:5, which is newer than the program's, inventory:2", run.stdout)
        variables = '#include <stdio.h>\n#include "stillpoint/stillpoint.h"\nSP_PERSISTENT long count = 3;\n{}' \
                    'int main(void) {{ printf("%ld\\n", count); return 0; }}\n'
        self.build("three", variables.format(layout(1)))
        self.build("nine", variables.format(layout(2) + "int square(void) { count *= count; return 0; }\nSP_LAYOUT_STEP(1, 2, square);\n"))
        for program, printed in (("three", "3\n"), ("nine", "9\n"), ("nine", "9\n")):
            run = self.start(program, pool="variables.pool")
            self.assertEqual((run.returncode, run.stdout), (0, printed), run.stderr)

    def test_engines_whose_unit_is_one_operation_have_no_steps(self):
        text = """#include "stillpoint/stillpoint.h"
{}
int main(void)
{{
    int code = sp_open("objects.pool", "engine=pronto durability=process pool_max_mb=64");
    return code == SP_OK ? 0 : (puts(sp_last_error()), 3);
}}
"""
        text = "#include <stdio.h>\n" + text
        self.build("one", text.format(layout(1)))
        self.build("two", text.format("static int step(void) { return 0; }\n" + layout(2) + "SP_LAYOUT_STEP(1, 2, step);"))
        for program, expected in (("one", (0, "")), ("two", (3, "has no step over several"))):
            run = subprocess.run([f"./{program}"], cwd=self.folder, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, expected[0], run.stdout + run.stderr)
            self.assertIn(expected[1], run.stdout)


if __name__ == "__main__":
    unittest.main()
