#!/usr/bin/env python3
"""Described functions held against what they do: the programs of the folder programs, run with the recorder.

Without a hook for each byte that a function of libc or libstdc++ writes, its description is wrong. With _FORTIFY_SOURCE the
same program calls the __NAME_chk variants.
"""

import unittest
from pathlib import Path

import fuzz
from compiler_case import BUILD, CLANG, CompilerCase, needs_clang, needs_plugin

HERE = Path(__file__).resolve().parent
PLUGIN = BUILD / "lib/libstillpoint-nvhooks-19.so"


class WrittenProgram:
    """A program written by hand, in the form that fuzz.py wants."""

    def __init__(self, path):
        self.path = path
        self.cplusplus = path.suffix == ".cpp"
        self.parameters = [0] * 32

    def text(self, _keep=None):
        return self.path.read_text()


@needs_clang
@needs_plugin
class DescribedCalls(CompilerCase):
    def check(self, name, levels, settings=("initial", "all", "cards")):
        program = WrittenProgram(HERE / "programs" / name)
        tests = fuzz.Fuzz(PLUGIN, self.folder, CLANG)
        for setting in settings:
            for level in levels:
                with self.subTest(setting=setting, level=level):
                    try:
                        tests.test(program, setting, level)
                    except fuzz.Finding as finding:
                        self.fail(str(finding))

    def test_what_libc_writes_is_hooked(self):
        self.check("libc_calls.c", ["-O0", "-O2"])

    def test_the_variants_of_fortify_source_too(self):
        self.check("libc_calls.c", ["-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"], ("all",))

    def test_what_libstdcxx_writes_is_hooked(self):
        self.check("libstdcxx_calls.cpp", ["-O0", "-O2"], ("all", "cards"))


if __name__ == "__main__":
    unittest.main()
