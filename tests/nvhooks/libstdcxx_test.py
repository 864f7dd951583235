#!/usr/bin/env python3
"""The pass's knowledge of libstdc++ held against the library, both ways: each function that it exports is described, has a body in
the plugin, or stands in libstdcxx_uncovered.txt with a reason; and each of those entries is a function of the library."""

import re
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = "GLIBCXX_3.4.30"  # GCC 12's newest; later libraries export more, which gets the warning


def output_of(*words, text=None):
    return subprocess.run([str(word) for word in words], input=text, capture_output=True, text=True, check=True).stdout


def library(name):
    return Path(output_of("g++", f"-print-file-name={name}").strip())


def functions_of(path):
    """Mangled names, without versions."""
    rows = (line.split() for line in output_of("nm", "-D", "--defined-only", path).splitlines())
    return {row[2].split("@")[0] for row in rows if row[1] in "TWi"}


def described():
    """The names and beginnings of names in libstdcxx.yaml."""
    text = re.sub("#.*", "", (ROOT / "src/nvhooks/pass/libstdcxx.yaml").read_text())
    return set(re.findall(r"(?<!\w)(_{1,2}[A-Za-z]\w*\*?)", text))


def bodies():
    return set(re.findall(r'BODY_OF\("(\w+)"\)', (ROOT / "src/nvhooks/bodies/libstdcxx.cpp").read_text()))


def uncovered():
    lines = (HERE / "libstdcxx_uncovered.txt").read_text().splitlines()
    return [line.split("\t")[0] for line in lines if line and not line.startswith("#")]


@unittest.skipUnless(library("libstdc++.so.6").exists(), "g++ has no libstdc++.so.6")
class Libstdcxx(unittest.TestCase):
    def setUp(self):
        self.functions = functions_of(library("libstdc++.so.6"))
        names = described()
        beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
        self.unknown = sorted(name for name in self.functions - names - bodies() if not name.startswith(beginnings))
        self.demangled = output_of("c++filt", text="\n".join(self.unknown)).splitlines()

    def test_each_function_of_the_library_is_covered_or_listed(self):
        if VERSION not in output_of("strings", library("libstdc++.so.6")) or "GLIBCXX_3.4.31" in output_of("strings",
                                                                                                          library("libstdc++.so.6")):
            self.skipTest(f"this libstdc++ is not the one with {VERSION} as its newest version")
        patterns = [re.compile(pattern) for pattern in uncovered()]
        left = [name for name in self.demangled if not any(pattern.search(name) for pattern in patterns)]
        self.assertEqual("\n".join(left), "")

    def test_each_entry_of_the_list_is_a_function_of_the_library(self):
        idle = [pattern for pattern in uncovered() if not any(re.search(pattern, name) for name in self.demangled)]
        self.assertEqual(idle, [])

    def test_each_description_and_body_is_of_a_function_of_the_library(self):
        self.assertLessEqual(bodies(), self.functions)
        exported = self.functions | functions_of(library("libgcc_s.so.1"))
        made_by_the_compiler = {"__clang_call_terminate"}
        idle = [name for name in described() - made_by_the_compiler
                if not (any(one.startswith(name[:-1]) for one in exported) if name.endswith("*") else name in exported)]
        self.assertEqual(sorted(idle), [])


if __name__ == "__main__":
    unittest.main()
