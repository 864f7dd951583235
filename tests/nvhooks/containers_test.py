#!/usr/bin/env python3
"""Standard containers in durable memory with the tracker hooks: what libstdc++ has precompiled for them marks what it writes."""

import json
import subprocess
import unittest
from pathlib import Path

from compiler_case import CXX, TOOL, CompilerCase, needs_clang, needs_plugin
from container_generator import ContainerProgram

HERE = Path(__file__).resolve().parent
BODIES = HERE.parents[1] / "src/nvhooks/bodies/libstdcxx.cpp"
KILLS = "40"


@needs_clang
@needs_plugin
class Containers(CompilerCase):
    def compile(self, source, *options):
        self.output_of(CXX, "-w", "-O1", "-std=c++17", "-pthread", f"-I{HERE}", *options, source, "-o", "program")

    def test_no_store_in_a_container_lacks_its_mark(self):
        for seed in (1, 2):
            with self.subTest(seed=seed):
                self.compile(self.write("program.cpp", ContainerProgram(seed, programs=2, statements=24).text_in_a_pool()))
                done = self.run_in_folder(TOOL, "run", "--pool", f"{seed}.pool", "--durability", "process", "--pool-size", "16M",
                                          "--tracker", "hooks", "--verify-marks", "--interval", "1h", "--", "./program")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([line for line in done.stderr.splitlines() if "verify_marks" in line], [])

    def test_a_map_survives_kills(self):
        self.compile(HERE / "programs/durable_map.cpp")
        done = self.run_in_folder(TOOL, "crashtest", "--durability", "process", "--pool-size", "16M", "--tracker", "hooks",
                                  "--interval", "2ms", "--seed", "3", "--kills", KILLS, "--min-ms", "20", "--max-ms", "80",
                                  "--check", "./program verify", "--json", "--", "./program", TMPDIR=str(self.folder))
        self.assertEqual(json.loads(done.stdout)["result"], "passed", done.stdout + done.stderr)

    def test_each_body_stands_for_a_function_that_libstdcxx_exports(self):
        library = self.output_of("g++", "-print-file-name=libstdc++.so.6").strip()
        exported = {line.split()[-1].split("@")[0] for line in self.output_of("nm", "-D", "--defined-only", library).splitlines()}
        bodies = {line.split('BODY_OF("')[1].split('"')[0] for line in BODIES.read_text().splitlines() if 'BODY_OF("' in line}
        self.assertTrue(bodies)
        self.assertLessEqual(bodies, exported)
        precompiled = {name for name in exported if "_List_node_base" in name and name.startswith("_ZNSt8__detail") or
                       name.startswith(("_ZSt29_Rb_tree", "_ZSt28_Rb_tree"))}
        self.assertEqual(precompiled - bodies, set())


if __name__ == "__main__":
    unittest.main()
