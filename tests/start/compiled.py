"""Test cases whose programs are written and compiled in a folder of the test."""

import os
import subprocess
import tempfile
import unittest

BUILD = os.environ["STILLPOINT_BUILD"]
SOURCE = os.environ["STILLPOINT_SOURCE"]
TOOL = os.path.join(BUILD, "bin", "stillpoint")
CLEAN_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}


class CompiledPrograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, program, text, *flags, compiler="cc", source="main.c"):
        with open(self.path(source), "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([compiler, *([] if compiler == "cc" else ["-x", "c++"]), "-I", os.path.join(SOURCE, "include"), source,
                        "-o", program, "-L", os.path.join(BUILD, "lib"), f"-Wl,-rpath,{os.path.join(BUILD, 'lib')}", *flags,
                        "-lstillpoint"], cwd=self.folder, check=True, stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
        return program

    def start(self, program, *options, pool="globals.pool", environment=None):
        return subprocess.run([TOOL, "run", "--pool", pool, "--durability", "process", "--pool-max", "64M", *options, "--",
                               f"./{program}"], cwd=self.folder, env={**CLEAN_ENVIRONMENT, **(environment or {})}, capture_output=True,
                              text=True, timeout=120, check=False)
