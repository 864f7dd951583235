"""SP_PERSISTENT variables are found by name and type, whatever the program is called and however it was built.

Programs are written, compiled, renamed, stripped and built again here; each prints its variables and adds one to each."""

import os
import shutil
import subprocess
import unittest

from compiled import CompiledPrograms

PLAIN, NAMED = "SP_PERSISTENT {type} {name}", "SP_PERSISTENT_VARIABLE({type}, {name})"

MAIN = """#include <stdio.h>
#include "stillpoint/stillpoint.h"
{definitions}
int main(void)
{{
    sp_fase_begin();
    {steps}
    sp_fase_end();
    return 0;
}}
"""


def source_of(variables, form=PLAIN):
    """`variables`: (type, name, initial value) of each."""
    definitions = "\n".join(f"{form.format(type=kind, name=name)} = {first};" for kind, name, first in variables)
    steps = "\n    ".join(f'printf("{name} %ld\\n", (long){name}); ++{name};' for _, name, _ in variables)
    return MAIN.format(definitions=definitions, steps=steps)


A, B, C, D = ("long", "a", 10), ("int", "b", 20), ("short", "c", 30), ("long", "d", 40)


class Globals(CompiledPrograms):
    def strip(self, program, name="stripped"):
        shutil.copy(self.path(program), self.path(name))
        subprocess.run(["strip", name], cwd=self.folder, check=True)
        return name

    def assert_values(self, program, *options, **values):
        run = self.start(program, *options)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split("\n")[:-1], [f"{name} {value}" for name, value in values.items()], run.stderr)
        return run.stderr

    def assert_refused(self, program, *texts):
        run = self.start(program)
        self.assertEqual((run.returncode, run.stdout), (65, ""), run.stderr)
        for text in (*texts, "cannot be matched"):
            self.assertIn(text, run.stderr)

    def test_a_program_that_was_renamed_has_its_values(self):
        for form in (PLAIN, NAMED):
            for flags in (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]):
                for compiler in ("cc", "c++"):
                    with self.subTest(form=form, flags=flags, compiler=compiler):
                        self.build("prog", source_of([A, B], form), *flags, compiler=compiler)
                        self.assert_values("prog", a=10, b=20)
                        os.rename(self.path("prog"), self.path("prog-1.1"))
                        self.assert_values("prog-1.1", a=11, b=21)
                        self.build("prog-1.2", source_of([D, B, C, A], form), *flags, compiler=compiler)
                        said = self.assert_values("prog-1.2", d=40, b=22, c=30, a=12)
                        self.assertIn("begin with their initial values: d, c", said)
                        self.assert_values("prog-1.2", d=41, b=23, c=31, a=13)
                        os.remove(self.path("globals.pool"))

    def test_removed_variables_stay_in_the_pool_and_come_back(self):
        self.build("prog", source_of([A, B]))
        self.assert_values("prog", a=10, b=20)
        self.build("less", source_of([B]))
        self.assertIn("does not have: a", self.assert_values("less", b=21))
        self.assert_values("less", b=22)
        self.build("again", source_of([B, A]))
        self.assert_values("again", b=23, a=11)

    def test_stripped_programs_keep_their_values(self):
        """Stripped: the same build with plain variables; any build where the program carries their names."""
        self.build("prog", source_of([A, B]))
        self.assert_values("prog", a=10, b=20)
        self.strip("prog")
        self.assertIn("is stripped", self.assert_values("stripped", a=11, b=21))
        self.assert_values("prog", a=12, b=22)
        self.build("other", source_of([C, B, A], NAMED))
        self.strip("other")
        self.assert_values("stripped", c=30, b=23, a=13)
        self.build("third", source_of([A, C, B], NAMED), "-O2", "-s")
        self.assert_values("third", a=14, c=31, b=24)

    def test_a_stripped_program_that_cannot_be_matched_is_refused_and_told_what_to_do(self):
        self.build("prog", source_of([A, B]))
        self.strip("prog")
        self.assert_values("stripped", a=10, b=20)
        self.build("next", source_of([A, B]) + "int other(void) { return 7; }\n")
        self.strip("next", "stripped")
        self.assert_refused("stripped", "SP_PERSISTENT_VARIABLE", "is stripped")
        self.assert_refused("next", "without names")
        self.assert_values("prog", a=11, b=21)
        self.assert_refused("stripped", "SP_PERSISTENT_VARIABLE")
        self.assert_values("next", a=12, b=22)
        self.assert_values("stripped", a=13, b=23)

    def test_changed_variables_are_refused_by_name(self):
        self.build("prog", source_of([A, B], NAMED))
        self.assert_values("prog", a=10, b=20)
        self.build("prog", source_of([A, ("long", "b", 20)], NAMED))
        self.assert_refused("prog", "b: 4 bytes then, 8 now")
        self.build("prog", source_of([A, ("unsigned", "b", 20)], NAMED))
        self.assert_refused("prog", "b: int then, unsigned now")
        self.build("prog", source_of([A, ("int", "beta", 20)], NAMED))
        self.assert_refused("prog", "b is gone and beta is new")
        said = self.assert_values("prog", "--changed-globals", "accept", a=11, beta=20)
        self.assertIn("b is gone and beta is new", said)
        self.assert_values("prog", a=12, beta=21)

    def test_one_name_in_two_files_is_told_apart_by_the_file(self):
        show = '#include <stdio.h>\n#include "stillpoint/stillpoint.h"\nstatic SP_PERSISTENT int n = {first};\n' \
               'void {name}(void) {{ printf("{name} %d\\n", n++); }}\n'
        for name, first in (("one", 1), ("two", 2)):
            with open(self.path(f"{name}.c"), "w", encoding="utf-8") as file:
                file.write(show.format(name=name, first=first))
        main = MAIN.format(definitions="void one(void); void two(void);", steps="one(); two();")
        self.build("prog", main, "one.c", "two.c")
        self.assert_values("prog", one=1, two=2)
        self.build("other", main + "int x;\n", "two.c", "one.c")
        self.assert_values("other", one=2, two=3)
        os.rename(self.path("one.c"), self.path("three.c"))
        os.rename(self.path("two.c"), self.path("four.c"))
        self.build("other", main, "three.c", "four.c")
        self.assert_refused("other", "there are several of that name")

    def test_variables_of_a_library_are_found_when_it_is_renamed(self):
        text = source_of([A, B]).replace("int main(void)", "int library_main(void)")
        main = "int library_main(void); int main(void) { return library_main(); }\n"
        self.build("libone.so", text, "-shared", "-fPIC", "-Wl,-soname,libone.so")
        self.build("prog", main, "-L.", "-lone", "-Wl,-rpath,$ORIGIN")
        self.assert_values("prog", a=10, b=20)
        self.build("libtwo.so", source_of([B, A]).replace("int main(void)", "int library_main(void)"), "-shared", "-fPIC",
                   "-Wl,-soname,libtwo.so")
        self.build("prog2", main, "-L.", "-ltwo", "-Wl,-rpath,$ORIGIN")
        self.assert_values("prog2", b=21, a=11)

    def test_namespaces_and_both_forms_name_one_variable(self):
        plain = source_of([A]).replace("SP_PERSISTENT", "namespace app { namespace { SP_PERSISTENT")
        plain = plain.replace("= 10;", "= 10; } } using app::a;")
        named = plain.replace("SP_PERSISTENT long a", "SP_PERSISTENT_VARIABLE(long, a)")
        self.build("prog", plain, compiler="c++")
        self.assert_values("prog", a=10)
        self.build("prog", named, "-s", compiler="c++")
        self.assert_values("prog", a=11)
        self.build("prog", plain + "int x;\n", compiler="c++")
        self.assert_values("prog", a=12)


if __name__ == "__main__":
    unittest.main()
