#!/usr/bin/env python3
"""The calls that the pass emits and those it does not: LLVM's FileCheck compares the files of the folder filecheck with their CHECK lines.

A file says in lines `RUN: KEY=VALUE ...` how it is compiled; each such line is a test:
  optimizations=A,B   those of the layer that are on; `all`, or none
  hooks=A,B           hooks of the layer; `writes` (the default) is is_nvm, pre_nvm_write and post_nvm_write;
                      `gathered` is is_nvm, pre_nvm_write, and the two hooks of writes that wait together
  marks=cards         cards of 64 bytes at 0x470000000000
  blocking=A,B        functions that may block; with hooks=blocking_call
  track-new=no        the allocator recorder_allocate gives memory that needs no hook before a write
  level=-O2           of Clang, for C and C++; with `,` for a space
  prefix=A,B          of the lines that are meant; CHECK if absent
  transactions=A,B    functions have clones for transactions, which call A and B as they are; hooks=none leaves hooks out
  expect=fail         the compiler ends with an error; FileCheck reads what it says
"""

import subprocess
import unittest
from pathlib import Path

import fuzz
from compiler_case import BUILD, CLANG, CompilerCase, needs_clang, needs_plugin

HERE = Path(__file__).resolve().parent
LLVM = Path("/usr/lib/llvm-19/bin")
PLUGIN = BUILD / "lib/libstillpoint-nvhooks-19.so"
KEYS = {"optimizations", "hooks", "marks", "track-new", "level", "prefix", "expect", "unknown-call", "blocking", "transactions"}


def runs_of(text):
    """The RUN lines of a file, as dictionaries."""
    for line in text.split("\n"):
        _, found, words = line.partition("RUN:")
        if found:
            run = dict(word.split("=", 1) for word in words.split())
            if set(run) - KEYS:
                raise ValueError(f"unknown key in {line}")
            yield run


def layer_of(run):
    chosen = run.get("optimizations", "")
    chosen_hooks = run.get("hooks", "writes")
    named = {"writes": ("is_nvm", "pre_nvm_write", "post_nvm_write"), "gathered": ("is_nvm", "pre_nvm_write", *fuzz.GATHERED)}
    hooks = tuple(hook for name in chosen_hooks.split(",") for hook in named.get(name, (name,)))
    layer = fuzz.layer(fuzz.OPTIMIZATIONS if chosen == "all" else tuple(chosen.split(",")), hooks, run.get("marks", "calls"),
                       run.get("track-new", "yes") == "yes")
    if chosen_hooks == "none":
        layer = "name: recorder\n"
    layer += f"transactions: {{ cloned: [malloc], pure: [{run['transactions']}] }}\n" if "transactions" in run else ""
    return layer + (f"blocking: [{run['blocking']}]\n" if "blocking" in run else "")


@needs_clang
@needs_plugin
@unittest.skipUnless((LLVM / "FileCheck").exists(), "FileCheck is not installed (llvm-19-tools)")
class FileCheck(CompilerCase):
    """One test for each file; made below."""

    def compile(self, source, run):
        """The finished compiler, and the instrumented module."""
        output = self.folder / "output.ll"
        output.unlink(missing_ok=True)
        (self.folder / "layer.yaml").write_text(layer_of(run))
        runtime = [f"-stillpoint-runtime={self.folder / 'layer.yaml'}"]
        if "unknown-call" in run:
            runtime.append(f"-stillpoint-unknown-call={run['unknown-call']}")
        if source.suffix == ".ll":
            command = [LLVM / "opt", f"-load-pass-plugin={PLUGIN}", *runtime, "-passes=stillpoint-nvhooks,verify", "-S", "-o", output,
                       source]
        else:
            runtime = [word for option in runtime for word in ("-mllvm", option)]
            command = [CLANG, *run.get("level", "-O1").split(","), f"-fplugin={PLUGIN}", f"-fpass-plugin={PLUGIN}", *runtime,
                       "-I", HERE, "-I", HERE.parents[1] / "include", "-S", "-emit-llvm", "-o", output, source]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120)
        return done, output

    def check(self, source):
        text = source.read_text()
        runs = list(runs_of(text))
        self.assertTrue(runs, f"{source} has no RUN line")
        for run in runs:
            with self.subTest(**run):
                done, output = self.compile(source, run)
                fails = run.get("expect") == "fail"
                self.assertEqual(done.returncode != 0, fails, done.stderr)
                self.assertEqual(output.exists(), not fails, "what does not compile leaves no output")
                seen = self.write("seen", done.stderr) if fails or "unknown-call" in run else output
                judge = [LLVM / "FileCheck", f"--check-prefixes={run.get('prefix', 'CHECK')}", "--input-file", seen, source]
                judged = subprocess.run(judge, capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual(judged.returncode, 0, judged.stderr)


def add_tests():
    for source in sorted((HERE / "filecheck").iterdir()):
        if source.suffix in {".ll", ".c", ".cpp"}:
            setattr(FileCheck, f"test_{source.stem}", lambda self, source=source: self.check(source))


add_tests()

if __name__ == "__main__":
    unittest.main()
