"""The rule of scripts/check_links.py, on small object files."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_links  # noqa: E402

COMPILER = os.environ.get("CC") or shutil.which("cc")


class CheckLinks(unittest.TestCase):
    def calls_of(self, layers):
        """(layer, symbol, higher layer) of each upward call; `layers`: (name, C source), lowest first."""
        with tempfile.TemporaryDirectory() as folder:
            compiled = []
            for name, source in layers:
                path = Path(folder) / f"{name}.c"
                path.write_text(source)
                subprocess.run([COMPILER, "-c", path, "-o", path.with_suffix(".o")], check=True)
                compiled.append((name, [str(path.with_suffix(".o"))]))
            return [(layer, symbol, higher) for layer, _, symbol, higher in check_links.upward_calls(compiled, "nm")]

    def test_rejects_a_call_of_a_higher_layer(self):
        self.assertEqual(self.calls_of([("low", "void upper(void); void lower(void) { upper(); }"), ("high", "void upper(void) {}")]),
                         [("low", "upper", "high")])

    def test_rejects_a_variable_of_a_higher_layer(self):
        self.assertEqual(self.calls_of([("low", "extern int there; int lower(void) { return there; }"), ("high", "int there = 1;")]),
                         [("low", "there", "high")])

    def test_accepts_a_call_of_a_lower_layer(self):
        self.assertEqual(self.calls_of([("low", "void lower(void) {}"), ("high", "void lower(void); void upper(void) { lower(); }")]), [])

    def test_accepts_what_both_layers_define(self):
        weak = "__attribute__((weak)) void both(void) {} "
        self.assertEqual(self.calls_of([("low", weak), ("middle", "void both(void); void f(void) { both(); }"), ("high", weak)]), [])

    def test_accepts_a_function_of_libc_that_a_higher_layer_replaces(self):
        self.assertEqual(self.calls_of([("low", "int close(int); int lower(void) { return close(1); }"),
                                        ("high", "int close(int file) { return file; }")]), [])

    def test_leaves_out_precompiled_headers(self):
        self.assertEqual(list(check_links.layers_of("low;a.cpp.o;cmake_pch.hxx.pch\nhigh;;b.cpp.o\n")),
                         [("low", ["a.cpp.o"]), ("high", ["b.cpp.o"])])


if __name__ == "__main__":
    unittest.main()
