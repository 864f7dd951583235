"""The shared part of the tests of the compiler: a folder of their own, and the wrappers run in it."""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build"))
TOOL = BUILD / "bin/stillpoint"
CC = BUILD / "bin/stillpoint-cc"
CXX = BUILD / "bin/stillpoint-c++"
PLUGINS = sorted(BUILD.glob("lib/libstillpoint-nvhooks-*.so"))
CLANG = shutil.which("clang-19")

needs_plugin = unittest.skipUnless(PLUGINS, "the compiler plugin was not built: no LLVM headers (llvm-19-dev)")
needs_clang = unittest.skipUnless(CLANG, "clang-19 is not installed")


def needs_program(name):
    return unittest.skipUnless(shutil.which(name), f"{name} is not installed")


class CompilerCase(unittest.TestCase):
    """Each test has an empty folder that is gone afterwards."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="nvhooks-", dir=BUILD))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_in_folder(self, *words, text=None, **environment):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("STILLPOINT_", "CCACHE_")) and name not in ("LD_PRELOAD", "CC", "CXX", "CFLAGS")}
        # Freed memory is full of commas, which part lists; it would not be filled in a thread's cache.
        filled = {"MALLOC_PERTURB_": "44", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        return subprocess.run([str(word) for word in words], cwd=self.folder, env={**clean, **filled, **environment},
                              input=text if text is not None else "", capture_output=True, text=True, check=False,
                              timeout=300)

    def output_of(self, *words, text=None, **environment):
        done = self.run_in_folder(*words, text=text, **environment)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def command_of(self, *words, compiler=CC, **environment):
        """The words that the wrapper would run."""
        return shlex.split(self.output_of(compiler, "--stillpoint-show", *words, **environment))
