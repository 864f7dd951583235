#!/usr/bin/env python3
"""-Wstillpoint-unknown-call as the wrappers have it by default: the command that links warns of calls that may write durable memory without
hooks, and of no others."""

import unittest

from compiler_case import CC, CLANG, CXX, CompilerCase, needs_clang, needs_plugin

CALLER = """#include <stdio.h>
#include <string.h>
void fill(char *p);
int sum(const char *p);
void use(char **p) { fill(p[1]); }
int main(int count, char **words)
{
    char local[8];
    fill(local);
    fill(NULL);
    fprintf(stderr, "%s", words[0]);
    setbuf(stdout, NULL);
    setvbuf(fopen(words[0], "r"), NULL, _IONBF, 0);
    if (count > 5) use(words);
    return strlen(words[0]) == 0;
}
"""
FILL = "void fill(char *p) { if (p) *p = 1; }\n"


@needs_clang
@needs_plugin
class UnknownCalls(CompilerCase):
    def setUp(self):
        super().setUp()
        self.write("caller.c", CALLER)
        self.write("fill.c", FILL)

    def link(self, *words, compiler=CC, code=0):
        done = self.run_in_folder(compiler, "-g", *words, "-o", "program")
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def assert_named(self, text, origin="", kind="warning"):
        """One report, with its place, and what can be done."""
        lines = text.splitlines()
        self.assertEqual(sum("[-Wstillpoint-unknown-call]" in line for line in lines), 1, text)
        self.assertRegex(lines[0], rf"^caller\.c:5:\d+: {kind}: 'fill' has no description: what it writes through argument 1 .*{origin}")
        for advice in ("nvm_write", "stillpoint cc", "sp_mark_written()", "-Wno-stillpoint-unknown-call"):
            self.assertIn(advice, text)

    def test_a_function_of_another_unit_with_hooks_is_known(self):
        self.assertEqual(self.link("caller.c", "fill.c"), "")
        self.output_of(CC, "-c", "caller.c", "fill.c")
        self.assertEqual(self.link("caller.o", "fill.o"), "")
        self.output_of("ar", "rcs", "libfill.a", "fill.o")
        self.assertEqual(self.link("caller.o", "libfill.a"), "")

    def test_a_function_of_an_object_without_hooks_is_named_where_it_is_called(self):
        self.output_of(CLANG, "-c", "fill.c")
        self.assert_named(self.link("caller.c", "fill.o"))
        self.output_of("ar", "rcs", "libfill.a", "fill.o")
        self.assert_named(self.link("caller.c", "-L.", "-lfill"))

    def test_a_shared_library_is_asked_whether_it_has_hooks(self):
        self.output_of(CLANG, "-shared", "-fPIC", "fill.c", "-o", "libfill.so")
        self.assert_named(self.link("caller.c", "-L.", "-lfill"), origin=r"\(libfill\.so\)")
        self.output_of(CC, "-shared", "-fPIC", "fill.c", "-o", "libfill.so")
        self.assertEqual(self.link("caller.c", "-L.", "-lfill"), "")

    def test_it_can_be_silenced_when_compiling_and_when_linking(self):
        self.output_of(CLANG, "-c", "fill.c")
        self.output_of(CC, "-c", "caller.c", "-Wno-stillpoint-unknown-call")
        self.assertEqual(self.link("caller.o", "fill.o"), "")
        self.output_of(CC, "-c", "caller.c")
        self.assertEqual(self.link("caller.o", "fill.o", "-Wno-stillpoint-unknown-call"), "")

    def test_as_an_error_it_leaves_no_program(self):
        self.output_of(CLANG, "-c", "fill.c")
        self.output_of(CC, "-g", "-c", "caller.c")
        self.assert_named(self.link("caller.o", "fill.o", "-Werror=stillpoint-unknown-call", code=1), kind="error")
        self.assertFalse((self.folder / "program").exists())

    def test_werror_of_the_project_makes_no_error_of_it(self):
        self.output_of(CLANG, "-c", "fill.c")
        self.assert_named(self.link("-Werror", "caller.c", "fill.o"))

    def test_a_function_that_is_described_in_part_is_named(self):
        self.write("part.c", "#include <sys/uio.h>\nlong in(struct iovec *list) { return readv(0, list, 2); }\nint main(void) { return 0; }\n")
        self.assertIn("part.c:2:38: warning: 'readv' is described in part", self.link("part.c"))

    def test_a_declaration_in_c_plus_plus_that_promises_to_change_nothing_is_believed(self):
        self.write("object.cpp", "struct Table { int get(const int &key) const; void set(int &key); };\nint sum(const char *, Table &);\n"
                                 "int look(Table *t, int *k, char *c) { return t->get(*k) + sum(c, *t); }\nint main() {}\n")
        self.write("other.cpp", "struct Other { Other(); int *at; };\nOther::Other() : at(nullptr) {}\n")
        self.write("maker.cpp", "#include <new>\nstruct Other { Other(); int *at; };\nint main(int, char **p) { new (p) Other; }\n")
        self.assertEqual(self.link("other.cpp", "maker.cpp", compiler=CXX), "")
        self.write("table.cpp", "struct Table { int get(const int &) const; void set(int &); };\nint Table::get(const int &k) const { return k; }\n"
                                "int sum(const char *, Table &) { return 0; }\n")
        self.output_of(CLANG, "-c", "table.cpp")
        told = self.link("object.cpp", "table.o", compiler=CXX)
        self.assertNotIn("get", told)
        self.assertRegex(told, r"object\.cpp:3:\d+: warning: '_Z3sumPKcR5Table' has no description: what it writes through argument 2")

    def test_ordinary_programs_get_no_warning(self):
        self.write("ordinary.cpp", "#include <filesystem>\n#include <fstream>\n#include <iostream>\n#include <map>\n#include <memory>\n"
                                   "#include <mutex>\n#include <sstream>\n#include <string>\n#include <thread>\n#include <vector>\n"
                                   "struct Words { std::map<std::string, std::vector<int>> places; std::mutex lock; };\n"
                                   "void add(Words &words, std::istream &in) {\n  std::string word; int at = 0;\n  while (in >> word) {\n"
                                   "    std::lock_guard held(words.lock);\n    words.places[word].push_back(at++);\n  }\n}\n"
                                   "int main(int, char **names) {\n  auto words = std::make_shared<Words>();\n"
                                   "  std::thread reader([&] { std::ifstream in(std::filesystem::path(names[0]).string()); add(*words, in); });\n"
                                   "  reader.join();\n  std::ostringstream out;\n  for (auto &[word, at] : words->places) out << word << at.size();\n"
                                   "  std::cout << out.str() << std::endl;\n}\n")
        self.assertEqual(self.link("-std=c++20", "-O2", "-pthread", "ordinary.cpp", compiler=CXX), "")
        self.assertEqual(self.link("-std=c++17", "-pthread", "ordinary.cpp", compiler=CXX), "")


if __name__ == "__main__":
    unittest.main()
