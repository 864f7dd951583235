"""Types of durable data are kept with the pool, by the program's debug information, and compared member by member."""

import json
import os
import shutil
import subprocess
import unittest

from compiled import BUILD, CLEAN_ENVIRONMENT, TOOL, CompiledPrograms

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include "stillpoint/stillpoint.h"
{types}
{globals}
{steps}
int main(void)
{{
    struct shop* shop = SP_ROOT(struct shop, "shop");
    if (shop == NULL) {{
        puts(sp_last_error());
        return 3;
    }}
    puts("sound");
    return 0;
}}
"""
TYPES = """enum color {{ red, {second} }};
typedef struct item {{ struct item* next; {item} enum color color; }} item;
struct shop {{ item* first; {shop} char name[16]; }};
"""
SECOND, ITEM, SHOP = "green", "long pieces; int cents;", "unsigned open : 3; unsigned closed : 5; union { float rate; int code; } price;"


def source_of(second=SECOND, item=ITEM, shop=SHOP, variables="", steps=""):
    return PROGRAM.format(types=TYPES.format(second=second, item=item, shop=shop), globals=variables, steps=steps)


class Types(CompiledPrograms):
    def runs(self, program, *options):
        run = self.start(program, *options)
        self.assertEqual((run.returncode, run.stdout), (0, "sound\n"), run.stderr)
        return run.stderr

    def is_refused(self, program, text):
        run = self.start(program)
        self.assertEqual((run.returncode, run.stdout), (65, ""), run.stderr)
        self.assertIn(text, run.stderr)

    def test_a_difference_is_refused_with_the_name_of_the_member(self):
        self.build("first", source_of(), "-g")
        self.runs("first")
        changes = {"item: the member pieces is gone, and count is in its place": {"item": "long count; int cents;"},
                   "item: the member cents was of type i32, and is of type f32": {"item": "long pieces; float cents;"},
                   "item: the member shelf is new": {"item": "long pieces; int cents; int shelf;"},
                   "item: the member pieces was at 8, and is at 16": {"item": "int cents; long pieces;"},
                   "color: the member green is gone, and blue is in its place": {"second": "blue"},
                   "shop: the member closed was at 8.3:5, and is at 8.3:6": {"shop": SHOP.replace(": 5", ": 6")},
                   "the member rate was of type f32, and is of type u32": {"shop": SHOP.replace("float rate", "unsigned rate")}}
        for said, changed in changes.items():
            with self.subTest(said=said):
                self.build("other", source_of(**changed), "-g")
                self.is_refused("other", said)
        self.runs("first")
        accepted = self.runs(self.build("other", source_of(item="long count; int cents;"), "-g"), "--changed-types", "accept")
        self.assertIn("which is accepted. item: the member pieces is gone", accepted)
        self.runs("other")
        self.is_refused("first", "item: the member count is gone, and pieces is in its place")

    def test_other_compilers_names_and_flags_make_no_difference(self):
        self.build("first", source_of(), "-g")
        self.runs("first")
        self.build("optimised", source_of() + "struct unused { int a; };\n", "-g1", "-O3", "-g")
        self.runs("optimised")
        self.build("typedefs", source_of(item="typedef_of_long pieces; int32_of_mine cents;").replace(
            "enum color {", "typedef long typedef_of_long; typedef int int32_of_mine; enum color {"), "-g")
        self.runs("typedefs")
        self.build("in_cxx", source_of().replace("enum color color", "::color color"), "-g", compiler="c++")
        self.runs("in_cxx")
        clang = "clang-19"
        if subprocess.run(["sh", "-c", f"command -v {clang}"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
            self.build("by_clang", source_of(), "-g", compiler="cc")
            subprocess.run([clang, "-g", "-I", os.path.join(os.environ["STILLPOINT_SOURCE"], "include"), "main.c", "-o", "by_clang",
                            "-L", os.path.join(BUILD, "lib"), f"-Wl,-rpath,{os.path.join(BUILD, 'lib')}", "-lstillpoint"],
                           cwd=self.folder, check=True)
            self.runs("by_clang")
        subprocess.run(["strip", "-o", "stripped", "first"], cwd=self.folder, check=True)
        self.runs("stripped")  # Nothing is said of its types, and the pool keeps what it has.
        self.build("other", source_of(item="long count; int cents;"), "-g")
        self.is_refused("other", "item: the member pieces is gone")

    def test_variables_are_compared_too_and_other_data_are_kept(self):
        self.build("first", source_of(variables="SP_PERSISTENT struct point { int x, y; } points[4];"), "-g")
        self.runs("first")
        self.build("other", source_of(variables="SP_PERSISTENT struct point { int y, x; } points[4];"), "-g")
        self.is_refused("other", "point: the member x was at 0, and is at 4")
        self.build("less", source_of(), "-g")
        self.runs("less")
        self.is_refused("other", "point: the member x was at 0, and is at 4")
        self.runs("first")

    def test_a_step_changes_the_types_with_the_data(self):
        self.build("first", source_of(steps='SP_LAYOUT("shop", 1);'), "-g")
        self.runs("first")
        changed = {"item": "long count; int cents;", "steps": 'static int rename_it(void) { return getenv("FAIL") ? 1 : 0; }\n'
                                                              'SP_LAYOUT("shop", 2); SP_LAYOUT_STEP(1, 2, rename_it);'}
        self.build("second", source_of(**changed), "-g")
        self.assertEqual(self.start("second", environment={"FAIL": "1"}).returncode, 65)
        self.runs("first")
        self.runs("second")
        self.runs("second")
        self.build("third", source_of(**{**changed, "item": "long number; int cents;"}), "-g")
        self.is_refused("third", "item: the member count is gone, and number is in its place")

    def test_dump_knows_the_type_of_a_root_without_being_told(self):
        self.build("first", source_of(), "-g")
        self.runs("first")
        dumped = subprocess.run([TOOL, "dump", "--program", "first", "--json", "globals.pool"], cwd=self.folder, env=CLEAN_ENVIRONMENT,
                                capture_output=True, text=True, check=False)
        self.assertEqual(dumped.returncode, 0, dumped.stderr)
        self.assertIn('"shop"', dumped.stdout)
        json.loads(dumped.stdout)
        self.assertIn("SP_ROOT", dumped.stdout)

    def test_roots_in_inline_functions_and_templates_of_cxx(self):
        text = """#include <cstdio>
#include "stillpoint/stillpoint.h"
struct item {{ long {member}; }};
inline item* in_inline() {{ return SP_ROOT(item, "in inline"); }}
template <class T> item* in_template() {{ return SP_ROOT(item, "in template"); }}
item* in_function() {{ return SP_ROOT(item, "in function"); }}
int main() {{ return in_inline() && in_template<int>() && in_function() ? (puts("sound"), 0) : 1; }}
"""
        for compiler in ("c++", "clang++-19"):
            if shutil.which(compiler) is None:
                continue
            for name, member in (("first", "pieces"), ("other", "count")):
                self.build(name, text.format(member=member), "-g", "-std=c++20", compiler=compiler)
            self.runs("first")
            dumped = subprocess.run([TOOL, "dump", "--program", "first", "globals.pool"], cwd=self.folder, env=CLEAN_ENVIRONMENT,
                                    capture_output=True, text=True, check=False)
            self.assertEqual(dumped.stdout.count("pieces: long"), 3, dumped.stdout + dumped.stderr)
            self.is_refused("other", "item: the member pieces is gone, and count is in its place")
            os.remove(self.path("globals.pool"))

    def for_each_compiler_of_cxx(self, text, changes, engine="pmthreads"):
        """Each program is the first with a change: refused with the words that belong to it, and the first one is not."""
        for compiler in ("c++", "clang++-19"):
            if shutil.which(compiler) is None:
                continue
            options = ("--engine", engine)
            for flag in ("-O0", "-O2"):
                self.build("first", text, "-g", "-std=c++20", flag, compiler=compiler)
                run = self.start("first", *options)
                self.assertEqual((run.returncode, run.stdout), (0, "sound\n"), run.stderr)
            for said, (old, new) in changes.items():
                with self.subTest(said=said, compiler=compiler):
                    self.assertIn(old, text)
                    run = self.start(self.build("other", text.replace(old, new), "-g", "-std=c++20", compiler=compiler), *options)
                    self.assertEqual((run.returncode, run.stdout), (65, ""), run.stderr)
                    self.assertIn(said, run.stderr)
            self.assertEqual(self.start("first", *options).returncode, 0)
            os.remove(self.path("globals.pool"))

    def test_roots_of_the_headers_for_cxx_are_compared_by_their_types(self):
        self.for_each_compiler_of_cxx("""#include <cstdio>
#include <stillpoint/stillpoint.hpp>
namespace shop {
struct item { long pieces; int cents; };
struct shelf { long place; };
struct stock { stillpoint::vector<item> items; stillpoint::map<int, shelf> shelves; long rooms; };
}
int main() { return stillpoint::root<shop::stock>("stock").items.empty() ? (std::puts("sound"), 0) : 1; }
""", {"shop::stock: the member rooms is gone, and halls is in its place": ("long rooms", "long halls"),
      "shop::item: the member pieces was at 0, and is at 8": ("long pieces; int cents;", "int cents; long pieces;"),
      "shop::shelf: the member place was of type i64, and is of type f64": ("long place", "double place")})

    def test_classes_of_pronto_are_compared_by_their_members(self):
        self.for_each_compiler_of_cxx("""#include <cstdio>
#include <stillpoint/pronto.hpp>
namespace pronto = stillpoint::pronto;
namespace shop {
struct item { long pieces; int cents; };
class till : public pronto::object<till> {
public:
    static constexpr auto methods() { return pronto::methods(pronto::method<&till::take>("take")); }
    void take(long cents) { run<&till::take>(cents, [&] { sum_ += cents; }); }
    long sum() const { return sum_; }
private:
    long sum_ = 0;
    item last_{};
};
}
int main()
{
    auto& till = pronto::get_object<shop::till>("till");
    till.take(3);
    return till.sum() % 3 == 0 ? (std::puts("sound"), 0) : 1;
}
""", {"shop::till: the member sum_ was at 0, and is at 16": ("    long sum_ = 0;\n    item last_{};\n",
                                                          "    item last_{};\n    long sum_ = 0;\n"),
      "shop::item: the member cents is gone, and pence is in its place": ("int cents; };", "int pence; };")}, engine="pronto")

    def test_descriptions_that_say_nothing_are_refused(self):
        self.build("first", source_of())
        for text in ("nonsense", "member\ta\t0\ti64", "\n"):
            run = subprocess.run(["./first"], cwd=self.folder, capture_output=True, text=True, check=False, env={
                **CLEAN_ENVIRONMENT, "STILLPOINT_POOL": "other.pool", "STILLPOINT_TYPE_DESCRIPTIONS": text,
                "STILLPOINT_DURABILITY": "process"})
            self.assertEqual((run.returncode, run.stdout), (64, ""), run.stderr)
            self.assertIn("STILLPOINT_TYPE_DESCRIPTIONS", run.stderr)
        self.assertFalse(os.path.exists(self.path("other.pool")))


if __name__ == "__main__":
    unittest.main()
