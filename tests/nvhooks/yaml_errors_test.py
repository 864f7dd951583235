#!/usr/bin/env python3
"""Malformed configurations: the message says what is wrong with file, line and column; the compiler fails; nothing is emitted."""

import random
import subprocess
import unittest

from compiler_case import BUILD, CLANG, ROOT, CompilerCase, needs_clang, needs_plugin

PLUGIN = BUILD / "lib/libstillpoint-nvhooks-19.so"
GOOD_LAYER = "name: test\nhooks: [is_nvm, post_nvm_write]\ndescriptions: [calls.yaml]\n"
GOOD_CALLS = "functions:\n  f: { writes: [{ pointer: arg0, size: 8 }] }\n"

# An error: the layer's text, and what the message must hold after the layer's path.
LAYERS = {
    "an unknown key": ("name: test\nhooks: [is_nvm]\nhook: [is_nvm]\n", ":3:1: error: unknown key 'hook'"),
    "an unknown key inside": (
        "name: test\nhooks: [is_nvm]\noptimizations:\n  static-checks: yes\n",
        ":4:3: error: unknown key 'static-checks'"),
    "an unknown hook": ("name: test\nhooks: [is_nvm, post_write]\n", ":2:17: error: unknown enumerated scalar"),
    "no name": ("hooks: [is_nvm]\n", ": error: missing required key 'name'"),
    "no hooks": ("name: test\n", ": error: hooks: a layer needs at least one, or transactions"),
    "a list for a name": ("name: [a]\nhooks: [is_nvm]\n", ":1:8: error: unexpected scalar"),
    "a word for a switch": ("name: test\nhooks: [is_nvm]\noptimizations: { static-check: perhaps }\n", ":3:32: error: expected yes or no"),
    "a word for a number": ("name: test\nhooks: [is_nvm]\nwindow: { shift: forty, index: 72 }\n", ":3:18: error: invalid number"),
    "a key twice": ("name: test\nname: again\nhooks: [is_nvm]\n", ":2:1: error: duplicated mapping key 'name'"),
    "no mapping": ("- a\n- b\n", ":1:1: error: "),
    "nothing at all": ("", ":1:1: error: empty: expected keys with values"),
    "a comment alone": ("# name: test\n", ":1:1: error: empty: expected keys with values"),
    "an unknown directive alone": ("%# of\n# ours", ":1:1: error: empty: expected keys with values"),
    "no YAML": ("name: {\n", ": error: "),
    "cards without a window": ("name: test\nhooks: [post_nvm_write]\nmarks: cards\n", ": error: marks: cards need a window"),
    "an allocator's size": (
        "name: test\nhooks: [is_nvm]\nallocators: [{ function: get, size: arg0 * }]\n",
        ": error: allocators: get: column 7: expected"),
}

# Errors in descriptions; the place is in the file of descriptions.
CALLS = {
    "an unknown key": ("function:\n  f: {}\n", ":1:1: error: unknown key 'function'"),
    "an unknown key of a function": ("functions:\n  f: { write: [] }\n", ":2:8: error: unknown key 'write'"),
    "an unknown key of an effect": (
        "functions:\n  f: { writes: [{ pointer: arg0, size: 8, bytes: 3 }] }\n",
        ":2:43: error: unknown key 'bytes'"),
    "an effect without a size": ("functions:\n  f: { writes: [{ pointer: arg0 }] }\n", ":2:19: error: missing required key 'size'"),
    "a word for a list": ("functions:\n  f: { writes: arg0 }\n", ":2:16: error: not a sequence"),
    "a word for a switch": ("functions:\n  f: { keeps-fase: maybe }\n", ":2:20: error: expected yes or no"),
    "an expression that ends early": (
        "functions:\n  f:\n    writes:\n      - pointer: arg0\n        size: arg1 +\n",
        ":5:21: error: expected a number"),
    "an expression that goes on": (
        "functions:\n  f:\n    writes:\n      - { pointer: arg0, size: arg1 arg2 }\n",
        ":4:37: error: expected an operator"),
    "an unknown name": (
        "functions:\n  f:\n    writes: [{ pointer: arg0, size: 4 * length(arg1) }]\n",
        ":3:41: error: unknown name 'length'"),
    "an unknown name in quotes": (
        "functions:\n  f:\n    writes: [{ pointer: arg0, size: \"min(arg1, argx)\" }]\n",
        ":3:48: error: unknown name 'argx'"),
    "operands that are missing": ("functions:\n  f: { writes: [{ pointer: arg0, size: min(arg1) }] }\n", ":2:48: error: expected ','"),
    "an argument index out of range": (
        "functions:\n  f: { writes: [{ pointer: arg0, size: arg64 }] }\n",
        ":2:40: error: argument index out of range"),
    "a pointer that is a number": (
        "functions:\n  f: { writes: [{ pointer: 8, size: arg0 }] }\n",
        ":2:19: error: a pointer begins with an argument"),
    "a result without a bound": (
        "functions:\n  f: { writes: [{ pointer: arg0, size: return }] }\n",
        ":2:19: error: a size that uses the result needs at-most"),
    "a bound that uses the result": (
        "functions:\n  f: { writes: [{ pointer: arg0, size: return, at-most: return }] }\n",
        ":2:19: error: pointer and at-most are needed before"),
    "a function twice": ("functions:\n  f: {}\n  f: {}\n", ":3:3: error: duplicated mapping key 'f'"),
    "a function of libc, differently": (
        "functions:\n  memcpy: { writes: [{ pointer: arg1, size: 8 }] }\n",
        ":2:13: error: 'memcpy' is described twice, and differently; the other one is in libc.yaml"),
    "a function in two lists": (
        "harmless: [f]\nfunctions:\n  f: { writes: [{ pointer: arg0, size: 8 }] }\n",
        ":1:12: error: 'f' is described twice"),
    "nothing of it": ("- memcpy\n", ":1:1: error: "),
    "nothing at all": ("", ":1:1: error: empty: expected keys with values"),
    "no YAML": ("functions: {\n", ": error: "),
}


@needs_clang
@needs_plugin
class MalformedYaml(CompilerCase):
    def setUp(self):
        super().setUp()
        self.write("program.c", "void f(char *p);\nvoid g(char *p) { f(p); }\n")

    def compile(self, layer="layer.yaml"):
        command = [CLANG, f"-fplugin={PLUGIN}", f"-fpass-plugin={PLUGIN}", "-mllvm", f"-stillpoint-runtime={layer}", "-c", "program.c"]
        return subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)

    def refused(self, expected, layer="layer.yaml"):
        done = self.compile(layer)
        self.assertEqual(done.returncode, 1, done.stderr)  # 139: the compiler crashed
        self.assertIn(expected, done.stderr)
        self.assertFalse((self.folder / "program.o").exists(), "an object was written")

    def test_what_is_right_is_accepted(self):
        self.write("layer.yaml", GOOD_LAYER)
        self.write("calls.yaml", GOOD_CALLS)
        done = self.compile()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "program.o").exists())

    def test_layers_that_are_wrong_are_refused_with_their_place(self):
        for what, (text, expected) in LAYERS.items():
            with self.subTest(what):
                self.write("layer.yaml", text)
                self.refused("layer.yaml" + expected if expected[1].isdigit() else expected)

    def test_descriptions_that_are_wrong_are_refused_with_their_place(self):
        self.write("layer.yaml", GOOD_LAYER)
        for what, (text, expected) in CALLS.items():
            with self.subTest(what):
                self.write("calls.yaml", text)
                self.refused("calls.yaml" + expected if expected[1].isdigit() else expected)

    def damaged(self, texts, chance):
        text = list(chance.choice(texts))
        for _ in range(chance.choice([1, 2, 4])):
            at = chance.randrange(len(text))
            other = chance.choice(["", "", chr(chance.randrange(1, 256)), "{", "]", "- ", "\n"])
            text[at:at + chance.choice([0, 1, 1, 3, 40, 400])] = other
        return "".join(text)

    def survives(self, text):
        done = self.compile()
        self.assertIn(done.returncode, (0, 1), f"{text}\n{done.stderr}")
        self.assertTrue(done.returncode == 0 or ": error: " in done.stderr, done.stderr)

    def test_damaged_layers_never_crash_the_compiler(self):
        chance = random.Random(1)
        layers = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "layers").glob("*/*.yaml"))]
        for _ in range(60):
            self.survives(self.write("layer.yaml", self.damaged(layers, chance)).read_text(encoding="utf-8"))

    def test_damaged_descriptions_never_crash_the_compiler(self):
        chance = random.Random(2)
        self.write("layer.yaml", GOOD_LAYER)
        built_in = (ROOT / "src/nvhooks/pass/libc.yaml").read_text(encoding="utf-8").replace("\n  ", "\n  own_")
        for _ in range(60):
            start = built_in.index("\n", chance.randrange(12000))
            text = "functions:" + built_in[start:built_in.index("\n", start + 600)] + "\n"
            self.survives(self.write("calls.yaml", self.damaged([text], chance)).read_text(encoding="utf-8"))

    def test_files_that_are_missing_are_named(self):
        self.refused("nowhere.yaml: error: the layer's configuration cannot be read", "nowhere.yaml")
        self.write("layer.yaml", GOOD_LAYER)
        self.refused("calls.yaml:1:1: error: the descriptions cannot be read: No such file or directory")

    def test_two_files_may_say_the_same_but_not_otherwise(self):
        self.write("layer.yaml", "name: test\nhooks: [is_nvm, post_nvm_write]\ndescriptions: [calls.yaml, more.yaml]\n")
        self.write("calls.yaml", GOOD_CALLS)
        self.write("more.yaml", GOOD_CALLS)
        self.assertEqual(self.compile().returncode, 0)
        self.write("more.yaml", GOOD_CALLS.replace("8", "9"))
        self.refused("more.yaml:2:8: error: 'f' is described twice, and differently; the other one is in calls.yaml")

    def test_attributes_that_are_wrong_are_refused_with_their_place(self):
        self.write("layer.yaml", "name: test\nhooks: [is_nvm, post_nvm_write]\n")
        for attribute, expected in {
                "nvm_write:arg0": "expected nvm_write:POINTER:SIZE",
                "nvm_write:arg0:strlen(arg1": "column 27: expected ')'",
                "nvm_read:4:arg1": "a pointer begins with an argument",
                "nvm_write:arg0:return": "needs at-most"}.items():
            with self.subTest(attribute):
                self.write("program.c", f'\n__attribute__((annotate("{attribute}"))) int f(char *p, long n);\n'
                                        "int g(char *p) { return f(p, 3); }\n")
                self.refused(f"program.c:2: error: attribute \"{attribute}\" of 'f': ")
                self.refused(expected)

    def test_attributes_of_others_are_left_alone(self):
        self.write("layer.yaml", "name: test\nhooks: [is_nvm, post_nvm_write]\n")
        self.write("program.c", '__attribute__((annotate("something else"))) void f(char *p);\nvoid g(char *p) { f(p); }\n')
        self.assertEqual(self.compile().returncode, 0)


if __name__ == "__main__":
    unittest.main()
