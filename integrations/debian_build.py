"""The common part of the builds of Debian's programs: steps with a log, Stillpoint's compiler, and what a built variant depends on."""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import debian_source

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXIT_UNAVAILABLE = 69
COMPILERS_IN_ANSWERS = ("ac_cv_prog_CC", "ac_cv_prog_ac_ct_CC", "ac_cv_prog_CPP")


class BuildFailed(Exception):
    """A step ended with an error; the message names its log."""


def step(command: list[str], folder: pathlib.Path, log: pathlib.Path) -> None:
    """Runs the command in `folder`; its output goes to the end of `log`. Raises BuildFailed."""
    with log.open("ab") as output:
        done = subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        lines = log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if "error" in line.lower()][-3:] or lines[-3:]
        raise BuildFailed(f"{command[0]} failed in {folder}: " + " / ".join(errors) + f" (all of it: {log})")


def check_headers(program: str, packages: dict[str, str]) -> None:
    """`packages`: Debian's package of each header below /usr/include. Raises SourceUnavailable where one is missing."""
    missing = [package for header, package in packages.items() if not (pathlib.Path("/usr/include") / header).exists()]
    if missing:
        raise debian_source.SourceUnavailable(f"install what {program} is built with: apt-get install " + " ".join(missing))


def plain_compiler() -> str:
    return "ccache gcc" if shutil.which("ccache") else "gcc"


def stillpoint_compiler(stillpoint_build: pathlib.Path, *words: str) -> str:
    """`stillpoint cc` with the words. Raises SourceUnavailable where it does not work."""
    tool = stillpoint_build / "bin/stillpoint"
    probe = subprocess.run([tool, "cc", *words, "--version"], capture_output=True, check=False)
    if probe.returncode != 0:
        raise debian_source.SourceUnavailable(f"{tool} cc does not work here: {probe.stderr.decode().strip()}")
    return " ".join([f"{tool} cc", *words])


def check_library(stillpoint_build: pathlib.Path) -> None:
    if not (stillpoint_build / "lib/libstillpoint.so").exists():
        raise debian_source.SourceUnavailable(f"{stillpoint_build} has no lib/libstillpoint.so: run make first")


def check_instrumented(program: pathlib.Path) -> None:
    """Raises BuildFailed where Stillpoint's compiler has made no part of the program."""
    sections = subprocess.run(["readelf", "--section-headers", "--wide", program], capture_output=True, text=True, check=True).stdout
    if " .stillpoint.functions " not in sections:
        raise BuildFailed(f"{program} has no part that Stillpoint's compiler made (config.log beside it names the one that did)")


def linked_with(stillpoint_build: pathlib.Path) -> str:
    """The linker's words for Stillpoint's libraries."""
    return f"-L{stillpoint_build / 'lib'} -Wl,-rpath,{stillpoint_build / 'lib'}"


def identity(parts: list[str], files: list[pathlib.Path], stillpoint_build: pathlib.Path | None) -> str:
    """Changes with the words, the content of the files and of this one, and, where a build is given, the compiler plugin in it."""
    plugins = sorted((stillpoint_build / "lib").glob("*nvhooks*")) if stillpoint_build else []
    words = [*parts, *(path.read_text() for path in [pathlib.Path(__file__), *files]),
             *(f"{path.name} {path.stat().st_mtime_ns}" for path in plugins)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def is_built_from(stamp: pathlib.Path, wanted: str, program: pathlib.Path) -> bool:
    return stamp.exists() and stamp.read_text() == wanted and program.exists()


def begin_again(source: pathlib.Path, target: pathlib.Path, log: pathlib.Path) -> None:
    """`target` is a copy of the source, and the log is empty."""
    shutil.rmtree(target, ignore_errors=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    shutil.copytree(source, target, symlinks=True)  # with its times: make must not run autoconf


def apply_patch(patch: pathlib.Path, target: pathlib.Path, log: pathlib.Path) -> None:
    step(["patch", "-p1", "--no-backup-if-mismatch", "-i", str(patch)], target, log)


def configure(words: list[str], answers: pathlib.Path, target: pathlib.Path, log: pathlib.Path) -> None:
    """Runs the source's configure. `answers` keeps what it finds out, for variants that differ in compilers and flags alone."""
    step(["./configure", f"--cache-file={answers}", *words], target, log)
    # Configure would refuse answers that were found with other flags, and would take the compiler's name from them.
    kept = [line for line in answers.read_text().splitlines(keepends=True)
            if not line.startswith("ac_cv_env_") and line.partition("=")[0] not in COMPILERS_IN_ANSWERS]
    answers.write_text("".join(kept))


def add_build_options(parser: argparse.ArgumentParser, program: str) -> None:
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/integrations" / program, help="where (default: %(default)s)")
    parser.add_argument("--stillpoint", type=pathlib.Path, default=ROOT / "build", help="Stillpoint's build (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="at once (default: %(default)s)")


def exit_code_of(program: str, build: Callable[[], None]) -> int:
    """Builds, and says on standard error what went wrong: 69 where something is not available here, 1 where a step failed."""
    try:
        build()
    except debian_source.SourceUnavailable as reason:
        print(f"{program}: {reason}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    except BuildFailed as reason:
        print(f"{program}: {reason}", file=sys.stderr)
        return 1
    return 0
