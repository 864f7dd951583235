"""A limit of file sizes (ulimit -f): what goes beyond it is an error of the call, with a message, at creation, growth and checkpoints, on
every medium, and never a SIGXFSZ; the program's own writes beyond the limit raise it as ever."""

import os
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

from faulty_runs import BUILD, TOOL, FaultyRun
from support import engines

PROGRAM = BUILD / "bin/faults_limits"
MIB = 1 << 20
MEDIA = (("file", "process"), ("file", "power"), ("memory", "process"))
ENGINES = engines.names_for_any_compiler()


class FileSizeLimit(FaultyRun):
    def run_limited(self, limit, *arguments, medium=("file", "process"), engine=ENGINES[0], size="8M", words=None, **streams):
        def lower(): resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        words = words or (TOOL, "run", "--pool", self.pool, "--engine", engine, "--medium", medium[0], "--durability", medium[1],
                          "--pool-size", size, "--pool-max", "128M", "--interval", "1h", "--", PROGRAM, *arguments)
        return subprocess.run([str(word) for word in words], cwd=self.folder, env=clean, preexec_fn=lower if limit is not None else None,
                              text=True, check=False, timeout=600, **(streams or {"capture_output": True}))

    def test_at_creation_is_a_refusal(self):
        for engine in ENGINES:
            for medium in MEDIA:
                done = self.run_limited(2 * MIB, "grow", engine=engine, medium=medium)
                self.assertEqual((done.returncode, done.stdout), (73, ""), done.stderr)
                self.assert_one_error(done, "ulimit -f")
                self.assertFalse(self.pool.exists())

    def test_at_growth_is_null_with_a_reason(self):
        for engine in ENGINES:
            for medium in MEDIA:
                for how in ("handled", "blocked"):
                    self.pool.unlink(missing_ok=True)
                    done = self.run_limited(64 * MIB, "grow", how, engine=engine, medium=medium)
                    self.assertEqual(done.returncode, 0, f"{engine} {medium} {how}: {done.stdout}{done.stderr}")
                    self.assertRegex(done.stdout, r"blocks 1 errno 12 error .*ulimit -f")
                    self.assertIn("checkpoint 0\n", done.stdout)
                    self.assert_signals_are_the_programs_own(done, how)

    def assert_signals_are_the_programs_own(self, done, how):
        lines = [line for line in done.stdout.splitlines() if line.startswith("signals")]
        after = "signals 0 pending 1" if how == "blocked" else "signals 1 pending 0"
        self.assertEqual(lines, ["signals 0 pending 0", after, after], done.stdout)
        self.assertIn("own write -1\n", done.stdout)

    def test_at_checkpoints_ends_durability_and_not_the_program(self):
        for engine in ENGINES:
            for medium in MEDIA[:2]:
                for how in ("handled", "blocked"):
                    self.pool.unlink(missing_ok=True)
                    done = self.run_limited(None, "65536", how, engine=engine, medium=medium)
                    self.assertEqual(done.returncode, 0, f"{engine} {medium} {how}: {done.stdout}{done.stderr}")
                    self.assertRegex(done.stdout, r"(?s)checkpoint 1[0-9].*error .*(ulimit -f|read-only)")
                    self.assertIn("ulimit -f", done.stderr)
                    self.assert_signals_are_the_programs_own(done, how)

    def test_of_zero_bytes_ends_neither_messages_nor_figures(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            self.pool = Path(folder) / "a.pool"
            self.assertEqual(self.run_limited(None, "grow", size="8M").returncode, 0)
            with open(self.folder / "messages", "w", encoding="utf8") as messages:
                done = self.run_limited(0, words=(TOOL, "run", "--pool", self.pool, "--", BUILD / "bin/cli_counter"),
                                        stdout=subprocess.PIPE, stderr=messages)
            self.assertEqual(done.returncode, 0)
            self.assertIn("run 1", done.stdout)

    def test_is_no_end_of_the_commands(self):
        self.run_limited(None, "grow")
        for words in ((TOOL, "doctor", self.folder), (TOOL, "info", self.pool), (TOOL, "check", self.pool)):
            done = self.run_limited(0, words=words)
            self.assertIn(done.returncode, (0, 69), done.stderr)


if __name__ == "__main__":
    unittest.main()
