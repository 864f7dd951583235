"""Code that pronto.hpp must not compile, with the reason that it gives, and the wrapper of std::vector is short. The compilers
that are there take turns; each compiles all of it where STILLPOINT_CASES is "all" (`make test-all`)."""

import itertools
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINES_MAX = 25  # of the wrapper of std::vector
CLASS = """
class Scores : public pronto::object<Scores> {
    pronto::vector<int> values_;
public:
    static constexpr auto methods() { return pronto::methods(pronto::method<&Scores::add>("add")); }
    void add(%s) { %s }
    void other(int) {}
%s
};
void use() { auto& scores = pronto::get_object<Scores>("scores")%s; static_cast<void>(scores); }
"""


class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The headers, compiled once for each compiler."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.compilers = {}
        for compiler, suffix in (("g++", "gch"), ("clang++-19", "pch")):
            if shutil.which(compiler):
                header = Path(cls.folder.name) / compiler / "all.hpp"
                header.parent.mkdir()
                header.write_text('#include <memory>\n#include "stillpoint/durable.hpp"\nnamespace pronto = stillpoint::pronto;\n',
                                  encoding="utf-8")
                flags = [compiler, "-std=c++20", f"-I{ROOT / 'include'}"]
                subprocess.run([*flags, "-x", "c++-header", header, "-o", f"{header}.{suffix}"], check=True, timeout=120)
                cls.compilers[compiler] = [*flags, "-include", header]
        cls.turns = itertools.cycle(cls.compilers)

    def compiled(self, text, *reasons):
        self.assertTrue(self.compilers, "no compiler is installed")
        for compiler in self.compilers if os.environ.get("STILLPOINT_CASES") == "all" else [next(self.turns)]:
            words = [*self.compilers[compiler], "-fsyntax-only", "-x", "c++", "-"]
            done = subprocess.run(words, input=text, capture_output=True, text=True, check=False, timeout=120)
            if reasons:
                self.assertNotEqual(done.returncode, 0, f"{compiler} accepted: {text}")
                for reason in reasons:
                    self.assertRegex(done.stderr, reason, compiler)
            else:
                self.assertEqual((done.returncode, done.stderr), (0, ""), compiler)

    def scores(self, parameter, body, *reasons, members="", arguments=""):
        self.compiled(CLASS % (parameter, body, members, arguments), *reasons)

    def argument(self, before, parameter, *reasons):
        self.compiled(before + CLASS % (parameter + " value", "run<&Scores::add>(value, [] {});", "", ""), *reasons)

    def test_what_is_right(self):
        self.scores("int value", "run<&Scores::add>(value, [&] { values_.push_back(value); });")
        self.argument("struct Point { int x, y; double z[2]; bool flag; };", "Point")
        self.argument("enum Plain : int { one };", "Plain")

    def test_a_method_that_is_not_listed(self):
        self.scores("int value", "auto op = op_begin<&Scores::other>(value);", r"this method is not an operation: list it in methods\(\)")

    def test_arguments_that_do_not_fit(self):
        self.scores("int", "auto op = op_begin<&Scores::add>();", "begins with as many arguments as its method has")
        self.scores("int", 'auto op = op_begin<&Scores::add>("text");', "does not fit the method's parameter")

    def test_pointers(self):
        self.argument("", "const char*", "cannot have a pointer as argument", "std::string_view")
        self.argument("", "int*", "std::span<const T> for arrays")
        self.argument("struct Pair { int number; const char* text; };", "Pair", "pointer among its members", "Specialise")
        self.argument("struct Inner { int* at; }; struct Outer { int a; Inner inner; };", "const Outer&", "pointer among its members")

    def test_arguments_that_return_something(self):
        self.argument("", "int&", "no reference to non-const as parameter: return what it finds")
        self.argument("", "std::span<int>", "take a std::span<const T>")

    def test_spans_of_what_cannot_lie_in_the_log(self):
        self.argument("", "std::span<const std::string>", "Take a std::vector")
        self.argument("struct alignas(16) Wide { char bytes[16]; };", "std::span<const Wide>", "aligns to 8 bytes")

    def test_classes_that_are_not_their_bytes(self):
        self.argument("struct Owner { Owner(const Owner&); ~Owner(); };", "const Owner&", "not trivially copyable",
                      "type_name, write.. and read")
        self.argument("", "std::shared_ptr<int>", "not trivially copyable")

    def test_an_enum_whose_size_the_compiler_chooses(self):
        self.argument("enum Plain { one, two };", "Plain", "stated underlying type")

    def test_virtual_functions(self):
        self.scores("int value", "run<&Scores::add>(value, [] {});", "no virtual functions", members="virtual int number() { return 1; }")

    def test_constructor_arguments_that_are_not_listed(self):
        self.compiled(CLASS.replace('("scores")', '("scores", 1)') % ("int value", "run<&Scores::add>(value, [] {});", "", ""),
                      "using constructor = pronto::constructor")

    def test_names(self):
        body = "run<&Scores::add>(value, [] {});"
        self.scores("int value", body, "1 to 63 bytes", members='static constexpr char type_name[] = "' + "n" * 64 + '";')
        twice = CLASS.replace('("add")', '("add"), pronto::method<&Scores::other>("add")')
        self.compiled(twice % ("int value", body, "", ""), "two methods have the same name|constant expression")

    def test_copies(self):
        self.scores("int value", "run<&Scores::add>(value, [] {});", "deleted|no matching",
                    arguments=';\n auto copy = pronto::get_object<Scores>("s")')

    def test_elements_of_the_containers(self):
        use = 'void use() { pronto::get_object<stillpoint::durable::%s>("it"); }'
        self.compiled(use % "vector<int*>", "no pointers as elements")
        self.compiled(use % "map<int, std::string_view>", "keeps characters as std::string")
        self.compiled(use % "map<int, std::vector<std::string>>", "trivially copyable elements only")


class Wrapper(unittest.TestCase):
    def test_of_a_vector_is_short(self):
        lines = (Path(__file__).parent / "wrapped_vector.hpp").read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len([line for line in lines if "// clang-format" not in line]), LINES_MAX)


if __name__ == "__main__":
    unittest.main()
