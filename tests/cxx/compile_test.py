"""Types and elements that the C++ headers must not compile, each with its reason, by each compiler that is installed; and those that they must."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADERS = sorted(path.relative_to(ROOT / "include") for path in (ROOT / "include/stillpoint").rglob("*.hpp"))
COMPILERS = [name for name in ("g++", "clang++-19") if shutil.which(name)]
ROOT_OF = "%s\nvoid use() { static_cast<void>(stillpoint::root<%s>(\"it\")); }\n"

VOLATILE = "does not survive a restart"
CODE = "a pointer to a function cannot lie in durable memory"
VIRTUAL = "an object with virtual functions cannot lie in durable memory"
# (declarations, type, why detail::why_unfit says that it does not survive)
UNFIT = [
    ("struct It { virtual ~It(); };", "It", "virtual_functions"),
    ("", "int&", "reference"),
    ("", "void (*)(int)", "code"),
    ("struct Class;", "void (Class::*)()", "code"),
    *(("", name, "volatile_memory") for name in (
        "std::string", "std::vector<int>", "std::unordered_map<int, int>", "std::unique_ptr<int>", "std::shared_ptr<int>",
        "std::function<void()>", "std::thread", "std::any", "std::pair<int, std::string>", "std::tuple<int, std::vector<int>>",
        "std::optional<std::string>", "std::variant<int, std::string>", "std::string[4]", "std::array<std::string, 2>")),
    ("struct It { int number; std::string text; };", "It", "volatile_memory"),
    ("struct Inner { std::string text; }; struct It { int number; Inner inner; };", "It", "volatile_memory"),
    ("struct It { int number; void (*call)(); };", "It", "volatile_memory"),
    ("struct It { std::mutex lock; std::string text; };", "It", "volatile_memory"),
]
REFUSED = [
    ("struct It { virtual ~It(); };", "It", VIRTUAL),
    ("", "std::string", VOLATILE),
    ("", "void (*)(int)", CODE),
    ("", "int[4]", "for an array, a root of"),
    ("", "const int", "a root is an object"),
]
REFUSED_ELEMENTS = [
    ("stillpoint::vector<std::string> it; it.emplace_back();", VOLATILE),
    ("stillpoint::map<int, std::string> it; it.emplace(1, std::string());", VOLATILE),
    ("stillpoint::unordered_map<int, void (*)()> it; it.emplace(1, nullptr);", CODE),
    ("stillpoint::list<std::vector<int>> it; it.emplace_back();", VOLATILE),
    ("static_cast<void>(stillpoint::make<std::string>());", VOLATILE),
]
ACCEPTED = [
    ("struct Node { Node* next; stillpoint::string text; stillpoint::vector<Node> children; };", "Node"),
    ("struct It { std::mutex lock; std::atomic<long> number; stillpoint::unordered_map<stillpoint::string, long> all; };", "It"),
    ("struct It { std::array<long, 4> numbers; std::optional<stillpoint::string> text; std::pair<int, double> pair; };", "It"),
    ("struct It { std::pmr::vector<int> values{stillpoint::durable_resource()}; };", "It"),
    ("struct It { stillpoint::unique_ptr<It> next; std::variant<int, stillpoint::string> value; int It::*member; };", "It"),
    ("struct It { void (*call)(); }; } template <> inline constexpr bool stillpoint::storable<n5::It> = true; namespace n5 {", "It"),
    ("class It { public: explicit It(int = 0); private: int number_; };", "It"),
]


class Compiled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The headers, compiled once for each compiler."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.words = {}
        for compiler in COMPILERS:
            header = Path(cls.folder.name) / compiler / "all.hpp"
            header.parent.mkdir()
            header.write_text("#include <array>\n#include <atomic>\n#include <stillpoint/stillpoint.hpp>\n", encoding="utf-8")
            words = [compiler, "-std=c++20", "-Wall", "-Wextra", f"-I{ROOT / 'include'}"]
            suffix = "pch" if compiler.startswith("clang") else "gch"
            subprocess.run([*words, "-x", "c++-header", header, "-o", f"{header}.{suffix}"], check=True, timeout=120)
            cls.words[compiler] = [*words, "-include", header]

    def compiled(self, text, reason=None):
        """Messages are the headers' own: one compiler is enough for them."""
        self.assertTrue(self.words, "no compiler is installed")
        for compiler, words in list(self.words.items())[:None if reason is None else 1]:
            with self.subTest(compiler=compiler, text=text):
                done = subprocess.run([*words, "-fsyntax-only", "-x", "c++", "-"], input=text, capture_output=True, text=True,
                                      check=False, timeout=120)
                if reason is None:
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                else:
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn(reason, done.stderr)

    def test_roots_that_do_not_survive(self):
        for before, name, reason in REFUSED:
            self.compiled(ROOT_OF % (before, name), reason)

    def test_elements_that_do_not_survive(self):
        for body, reason in REFUSED_ELEMENTS:
            self.compiled("void use() { %s }" % body, reason)

    def test_types_that_do_not_survive(self):
        self.compiled("".join(f"namespace n{i} {{ {before} using Tested = {name}; static_assert(stillpoint::detail::why_unfit<Tested>() == "
                              f"stillpoint::detail::Unfit::{why}); }}\n" for i, (before, name, why) in enumerate(UNFIT)))

    def test_types_that_survive(self):
        self.compiled("".join(f"namespace n{i} {{ {before} {ROOT_OF % ('', name)} }}\n" for i, (before, name) in enumerate(ACCEPTED)))

    def test_standards_before_20(self):
        for compiler in COMPILERS:
            for header in HEADERS:
                with self.subTest(compiler=compiler, header=str(header)):
                    done = subprocess.run([compiler, "-std=c++17", f"-I{ROOT / 'include'}", "-fsyntax-only", "-x", "c++", "-"],
                                          input=f"#include <{header}>\n", capture_output=True, text=True, check=False, timeout=60)
                    self.assertEqual(len(re.findall(r"\berror:", done.stderr)), 1, done.stderr)
                    self.assertIn("need C++20: compile with -std=c++20", done.stderr)

    def test_without_rtti(self):
        words = ["g++", "-std=c++20", "-fno-rtti", f"-I{ROOT / 'include'}", "-fsyntax-only", "-x", "c++", "-"]
        text = "#include <stillpoint/stillpoint.hpp>\n" + ROOT_OF
        done = subprocess.run(words, input=text % ("", "int"), capture_output=True, text=True, check=False, timeout=60)
        self.assertIn("compile with RTTI, or give the class a member", done.stderr)
        named = 'struct It { static constexpr const char* type_name = "it"; };'
        done = subprocess.run(words, input=text % (named, "It"), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
