#!/usr/bin/env python3
"""`make test`: builds the product and its tests, and runs them, the unit tests under AddressSanitizer too. `make test-all` (--all): the
long tests with their programs as well (cmake/LongTests.cmake), and the unit tests under ThreadSanitizer.

A build keeps all CPUs busy; tests mostly wait for disks, kills and intervals. So two things go on at a time: the unit tests under
AddressSanitizer run while the release is built, and ThreadSanitizer's build and unit tests run beside the release's tests. Compilers
have a lower priority than tests. What goes on beside is written to a file, and shown where it fails. The first failure ends all.
The tests of the layers are run under the sanitizers alone; `make check` runs them in the release too. `make test` takes a part of the
cases of those with many (tests/support/cases.hpp), `make test-all` and `make check` take all.
ThreadSanitizer leaves out tests that one thread does alone and that take long: every crash of a log, a file with each bit flipped
(CMakePresets.json).
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"asan": "AddressSanitizer and UBSan", "tsan": "ThreadSanitizer"}
LINES_SHOWN = 60
COMPLAINT = r": Failure$|\[  FAILED  \]|ERROR: |WARNING: ThreadSanitizer|runtime error: |\*\*\*(Failed|Exception|Timeout)"
COMPLAINT_LINES = 6
LINES_OF_A_TEST = 15
POLL_S = 0.2
PATIENCE_S = 10  # between SIGTERM and SIGKILL
INTERRUPTED = 130


def say(text):
    print(f"\n== {text}", flush=True)


class Failed(Exception):
    """The failure, in a sentence."""


class Steps:
    """Commands one after the other in a process group of their own; with `log`, their output goes there."""

    def __init__(self, what, commands, log=None):
        self.what, self.commands, self.log, self.begun = what, list(commands), log, time.monotonic()
        self.process = None
        if log:
            log.write_bytes(b"")
        self.go_on()

    def go_on(self):
        """Starts the next command when the last one is done; True: all are. Raises Failed."""
        code = self.process.poll() if self.process else 0
        if code is None:
            return False
        if code != 0:
            raise Failed(f"{self.what}: exit code {code} of {' '.join(map(str, self.process.args))}")
        if not self.commands:
            self.process = None
            return True
        with self.log.open("ab") if self.log else contextlib.nullcontext() as output:
            self.process = subprocess.Popen(self.commands.pop(0), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT if output else None, start_new_session=True)
        return False

    def stop(self):
        if self.process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(PATIENCE_S)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue


def complaints_in(lines):
    """The lines at which a test or a sanitizer says that something is wrong, each with the lines after it."""
    begins = [i for i, line in enumerate(lines) if re.search(COMPLAINT, line)]
    shown = sorted({j for i in begins for j in range(i, min(i + COMPLAINT_LINES, len(lines)))})
    return [lines[j] for j in shown[:LINES_SHOWN]]


def ends_of_tests(log, names):
    """The last lines of what these tests printed, from ctest's own log (LastTest.log)."""
    wanted = []
    for entry in log.split("<end of output>"):
        head, _, output = entry.partition("\nOutput:\n")
        name = re.search(r"^\d+/\d+ Test: (.+)$", head, re.MULTILINE)
        if name and name[1] in names:
            wanted += [f"-- the end of {name[1]}:", *output.strip().splitlines()[-LINES_OF_A_TEST:]]
    return wanted


class TwoAtATime:
    """The shown output of one command, and that of the one that runs at the same time."""

    def __init__(self):
        self.shown, self.beside = None, None

    def start_beside(self, *words):
        """After what went on beside until now."""
        self.wait_for_beside()
        self.beside = Steps(*words)

    def show(self, *words):
        self.shown = Steps(*words)
        while not self.shown.go_on():
            self.look_beside()
            time.sleep(POLL_S)
        self.shown = None

    def look_beside(self):
        """True: nothing goes on beside."""
        if self.beside is not None and self.beside.go_on():
            found = re.findall(r"tests? passed.* out of (\d+)", self.beside.log.read_text(errors="replace"))
            say(f"{self.beside.what}: {found[-1] if found else 'all'} tests passed, after {time.monotonic() - self.beside.begun:.0f} s")
            self.beside = None
        return self.beside is None

    def wait_for_beside(self):
        if not self.look_beside():
            say(f"Waiting for {self.beside.what} ({os.path.relpath(self.beside.log, ROOT)})")
            while not self.look_beside():
                time.sleep(POLL_S)

    def stop(self):
        for steps in filter(None, (self.shown, self.beside)):
            steps.stop()

    def show_failure(self):
        """The end of a file that was not shown yet, and what tests and sanitizers complain of."""
        if self.beside is not None and self.beside.process is not None and self.beside.process.poll():
            lines = self.beside.log.read_text(errors="replace").splitlines()
            name = os.path.relpath(self.beside.log, ROOT)
            last = lines[-LINES_SHOWN:]
            print("\n".join(["", f"The last {len(last)} lines of {name}:", *last]), flush=True)
            if complaints := complaints_in(lines[:-LINES_SHOWN]):
                print("\n".join(["", f"Complaints in {name} before them:", *complaints]), flush=True)

    def show_failed_tests(self, folder):
        """Shows the last lines of ctest's failed tests in this build folder: they scrolled away while others went on."""
        kept = folder / "Testing/Temporary"
        if self.shown is None or "ctest" not in self.shown.process.args or not (kept / "LastTestsFailed.log").exists():
            return
        names = {line.partition(":")[2] for line in (kept / "LastTestsFailed.log").read_text().splitlines()}
        print("\n".join(["", *ends_of_tests((kept / "LastTest.log").read_text(errors="replace"), names)]), flush=True)


def configure(preset, definitions):
    return ["cmake", "--preset", preset, "-Wno-dev", "--log-level=WARNING", *definitions]


def build(preset, jobs, *targets):
    return ["nice", "-n", "10", "cmake", "--build", "--preset", preset, "-j", str(jobs), "--target", *targets]


def tests(preset, labels, without):
    """ctest's command for the tests that have all `labels` and none of `without`."""
    return ["ctest", "--preset", preset, *(word for label in labels for word in ("-L", label)),
            *(["-LE", "|".join(f"^{label}$" for label in without)] if without else [])]


def run(two, jobs, definitions, everything):
    programs, unit_tests = ("program_tests", "unit_tests") if everything else ("everyday_programs", "everyday_unit_tests")
    left_out = [] if everything else ["long"]
    say(f"Building the unit tests with {NAMES['asan']} in build-asan/: six minutes on two CPUs from nothing")
    two.show("the build of the preset asan", [configure("asan", definitions), build("asan", jobs, unit_tests)])
    two.start_beside("unit tests under " + NAMES["asan"], [tests("asan", ["unit"], left_out)], ROOT / "build-asan/tests.log")
    say("Building all in build/ but tests of the layers, about a quarter of an hour from nothing; the tests of build-asan/ go on beside it")
    two.show("the build of the preset release", [configure("release", definitions), build("release", jobs, "all", programs)])
    if everything:
        two.start_beside("build and unit tests under " + NAMES["tsan"],
                         [configure("tsan", definitions), build("tsan", jobs, "unit_tests"), tests("tsan", ["unit"], [])],
                         ROOT / "build/tsan.log")
    say("Testing the release" + ("; build-tsan/ is built and tested beside it" if everything else "") +
        ". Quick tests alone: ctest --test-dir build -L quick")
    two.show("tests of the release", [tests("release", [], ["layer", *left_out])])
    two.wait_for_beside()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="compilers at a time (default: %(default)s)")
    parser.add_argument("--all", action="store_true", help="the long tests and ThreadSanitizer too")
    parser.add_argument("definitions", nargs="*", help="for CMake: -- -DNAME=VALUE")
    arguments = parser.parse_args()
    name = "make test-all" if arguments.all else "make test"
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    if arguments.all:
        os.environ["STILLPOINT_CASES"] = "all"  # tests/support/cases.hpp
    two = TwoAtATime()
    try:
        run(two, arguments.jobs, arguments.definitions, arguments.all)
        say(f"{name}: everything passed, after {(time.monotonic() - begun) / 60:.1f} minutes")
        return 0
    except Failed as failure:
        two.show_failure()
        two.show_failed_tests(ROOT / "build")
        say(f"{name}: {failure}")
        return 1
    except KeyboardInterrupt:
        say(f"{name}: interrupted")
        return INTERRUPTED
    finally:
        two.stop()


if __name__ == "__main__":
    sys.exit(main())
