"""The shared part of the tests of bad surroundings: running faults_program in a folder of its own, and what each failure owes its user."""

import re
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from command_line import BUILD, TOOL, CommandLineTest  # noqa: E402  (found by the line above)

LAUNCHER = BUILD / "bin/faults_launcher"
PROGRAM = BUILD / "bin/faults_program"
FRESH, CLEAN, CRASHED = 1, 2, 3
# Checkpoints when the program asks for one, and at no other time: what survives is exact.
OPTIONS = {"--durability": "process", "--pool-size": "4M", "--pool-max": "64M", "--interval": "3600s"}

# The programs crash on purpose: no cores.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class FaultyRun(CommandLineTest):
    program = PROGRAM

    def words_of_run(self, *arguments, pool=None, options=()):
        chosen = {**OPTIONS, **dict(options), "--pool": pool or self.pool}
        return ("run", *(word for option in chosen.items() for word in option), "--", self.program, *arguments)

    def run_program(self, *arguments, pool=None, options=(), fault=None, launcher=()):
        environment = {"STILLPOINT_FAULT": fault} if fault else {}
        words = self.words_of_run(*arguments, pool=pool, options=options)
        if launcher:
            return self.stillpoint(*launcher, TOOL, *words, tool=LAUNCHER, **environment)
        return self.stillpoint(*words, **environment)

    def assert_starts(self, kind, count, **how):
        """A run without faults finds that state, ends normally, and says nothing but its start line."""
        done = self.run_program(**how)
        self.assertEqual((done.returncode, done.stdout), (0, f"start {kind} count {count}\n"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done

    def assert_one_error(self, done, *messages):
        errors = [line for line in done.stderr.splitlines() if line.startswith("stillpoint: error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        for message in messages:
            self.assertRegex(errors[0], message)

    def assert_refused(self, done, exit_code, *messages):
        super().assert_refused(done, exit_code, *messages)
        self.assertEqual(done.stdout, "", "the program was started")

    def trackers(self):
        """The trackers that this kernel has."""
        done = self.run_program(pool=self.folder / "probe.pool", options={"--tracker": "uffd"})
        return ("uffd", "mprotect") if done.returncode == 0 else ("mprotect",)


def facts_of(done, pattern):
    """The groups of each line of the program's output that `pattern` matches, as numbers."""
    return [tuple(int(group) for group in found.groups()) for found in re.finditer(pattern, done.stdout, re.MULTILINE)]
