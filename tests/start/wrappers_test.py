"""A program that is started through a wrapper is told the true kind of its start, and has its pool.

For each engine and each wrapper: a first run (FRESH) that ends normally, one that finds that (CLEAN) and is killed, and
one that finds that (CRASHED). Wrappers exec, or start the program and wait for it; one is linked with the library."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support import engines  # noqa: E402  (the path must be set first)

BUILD = os.environ["STILLPOINT_BUILD"]
HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(BUILD, "bin", "stillpoint")
PROGRAM = os.path.join(BUILD, "bin", "start_program")
LINKED = os.path.join(BUILD, "bin", "start_linked_wrapper")
PLAIN = os.path.join(BUILD, "bin", "start_plain")
SUBPROCESS = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode & 127)"
CLEAN_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
FRESH, CLEAN, CRASHED = 1, 2, 3
INSIDE_FASE = 22

EXECUTING = {
    "none": [],
    "taskset": ["taskset", "0x1"],
    "env": ["env", "X=1"],
    "nice": ["nice", "-n", "1"],
    "shell that execs": ["sh", "-c", 'exec "$@"', "sh"],
    "bash that execs": ["bash", "-c", 'cd /; exec "$@"', "bash"],
    "a shim": [PLAIN],
    "three of them": ["env", "X=1", "nice", "-n", "1", PLAIN],
    "a linked launcher": [LINKED],
    "a linked launcher that forks": [LINKED, "fork"],
}
WAITING = {
    "timeout": ["timeout", "60"],
    "shell that waits": ["sh", "-c", 'cd /; "$@"; exit $?', "sh"],
    "python": [sys.executable, "-c", SUBPROCESS],
    "setsid": ["setsid", "-w"],
}


class Wrappers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_it(self, engine, *command, options=(), expect_pool=True, pool="wrapped.pool", variables=None):
        run = subprocess.run([TOOL, "run", "--pool", pool, "--engine", engine, "--durability", "process",
                              "--pool-max", "64M", *options, "--", *command], cwd=self.folder,
                             env={**CLEAN_ENVIRONMENT, **(variables or {})}, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(os.path.exists(os.path.join(self.folder, "wrapped.pool")), expect_pool, run.stderr)
        return run

    def three_lives(self, engine, wrapper, program):
        pool = os.path.join(self.folder, "wrapped.pool")
        if os.path.exists(pool):
            os.remove(pool)
        for life, (kind, end) in enumerate(((FRESH, "normal"), (CLEAN, "crash"), (CRASHED, "normal")), start=1):
            run = self.run_it(engine, *wrapper, *program, end)
            self.assertEqual(run.stdout, f"start {kind} run {life}\n", run.stderr)
            self.assertEqual(run.returncode == 0, end == "normal", run.stderr)
            message = ("new pool", "reopened after a normal end", "recovered after a crash")[life - 1]
            self.assertIn(message, run.stderr)

    def test_the_kind_of_the_start_reaches_the_program(self):
        for engine in engines.names_that_keep_stores():
            for name, wrapper in {**EXECUTING, **WAITING}.items():
                if wrapper and shutil.which(wrapper[0]):
                    with self.subTest(engine=engine, wrapper=name):
                        self.three_lives(engine, wrapper, [PROGRAM])

    def test_a_program_that_loads_the_library_late_has_its_pool(self):
        for engine in engines.names(engines.LOCKS, engines.OPERATIONS):
            with self.subTest(engine=engine):
                self.three_lives(engine, ["env", "X=1"], [sys.executable, os.path.join(HERE, "late_user.py")])

    def test_a_lock_that_is_held_at_the_first_durable_use_counts(self):
        run = self.run_it("pmthreads", sys.executable, os.path.join(HERE, "late_user.py"), "holding")
        self.assertEqual(run.stdout, f"inside {INSIDE_FASE}, then 0\n", run.stderr)

    def test_signals_that_were_blocked_before_the_first_durable_use(self):
        late_user = os.path.join(HERE, "late_user.py")
        run = self.run_it("pmthreads", sys.executable, late_user, "blocking", options=("--tracker", "mprotect"))
        self.assertEqual((run.stdout, run.returncode), ("number 3\n", 0), run.stderr)
        block = "import signal, os, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGSEGV}); os.execv(sys.argv[1], sys.argv[1:])"
        words = [TOOL, "run", "--quiet", "--pool", "wrapped.pool", "--", sys.executable, late_user, "inherited"]
        run = subprocess.run([sys.executable, "-c", block, *words], cwd=self.folder, env=CLEAN_ENVIRONMENT, capture_output=True, text=True,
                             timeout=120, check=False)
        self.assertEqual((run.stdout, run.returncode), ("number 6\n", 0), run.stderr)

    def test_what_uses_nothing_changes_nothing(self):
        """Neither makes a pool, nor turns a crash into a clean end."""
        for engine in engines.names_that_keep_stores():
            with self.subTest(engine=engine):
                pool = os.path.join(self.folder, "wrapped.pool")
                self.run_it(engine, PROGRAM, "untouched", expect_pool=False)
                run = self.run_it(engine, PLAIN, expect_pool=False)
                self.assertIn("was not made", run.stderr)
                self.assertEqual(self.run_it(engine, PROGRAM, "crash").stdout, "start 1 run 1\n")
                with open(pool, "rb") as file:
                    before = file.read()
                for idle in ([PROGRAM, "untouched"], [PLAIN], [LINKED], ["sh", "-c", "ls >/dev/null"]):
                    self.assertEqual(self.run_it(engine, *idle).returncode, 0)
                with open(pool, "rb") as file:
                    self.assertEqual(file.read(), before)
                self.assertEqual(self.run_it(engine, PROGRAM).stdout, "start 3 run 2\n")
                os.remove(pool)

    def test_what_is_wrong_with_the_pool_is_said_before_the_wrapper_runs(self):
        pool = os.path.join(self.folder, "wrapped.pool")
        wrapper = ["sh", "-c", 'echo ran; "$@"', "sh", PROGRAM]
        self.assertEqual(self.run_it("pmthreads", PROGRAM).returncode, 0)
        run = self.run_it("respct", *wrapper)
        self.assertEqual((run.stdout, run.returncode), ("", 65), run.stderr)
        with open(pool, "r+b") as file:
            file.truncate(0)
            file.write(b"no pool at all " * 4096)
        run = self.run_it("pmthreads", *wrapper)
        self.assertEqual((run.stdout, run.returncode), ("", 65), run.stderr)
        os.remove(pool)
        run = self.run_it("pmthreads", *wrapper, pool="missing/folder.pool", expect_pool=False)
        self.assertEqual((run.stdout, run.returncode), ("", 66), run.stderr)

    def test_a_variable_that_names_no_option_is_told_once(self):
        variables = {"STILLPOINT_INTERVALL": "5", "STILLPOINT_BUILD": BUILD}
        told = "stillpoint: warning: STILLPOINT_INTERVALL is set but names no option; did you mean STILLPOINT_INTERVAL_MS?\n"
        for name, wrapper in (*EXECUTING.items(), ("python", WAITING["python"])):
            with self.subTest(wrapper=name):
                run = self.run_it("pmthreads", *wrapper, PROGRAM, variables=variables)
                self.assertEqual((run.stderr.count("names no option"), run.stderr.count(told)), (1, 1), run.stderr)
        self.assertEqual(self.run_it("pmthreads", PROGRAM, options=("--quiet",), variables=variables).stderr, "")

    def test_a_shell_may_start_other_programs_while_one_has_the_pool(self):
        script = f"{PROGRAM} & wait; ls >/dev/null; taskset 1 true; {PROGRAM}"
        run = self.run_it("pmthreads", "sh", "-c", script)
        self.assertEqual(run.stdout, "start 1 run 1\nstart 2 run 2\n", run.stderr)

    def test_open_start_opens_at_the_start_of_every_program(self):
        run = self.run_it("pmthreads", PLAIN, options=("--open", "start"))
        self.assertIn("new pool", run.stderr)
        self.assertEqual(self.run_it("pmthreads", PROGRAM).stdout, "start 2 run 1\n")


if __name__ == "__main__":
    unittest.main()
