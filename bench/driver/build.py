"""Measured programs that are built when a benchmark asks for them: peers' workers, and those of the papers' benchmarks."""

import functools
import os
import re
import subprocess
import sys

from .errors import UNAVAILABLE, BenchError

RULES = "build.ninja"


@functools.lru_cache
def outputs(folder):
    """The programs that the build in `folder` can make, by its path there; nothing where that is not a build."""
    rules = folder / RULES
    if not rules.is_file():
        return frozenset()
    lines = re.findall(r"^build ([^:]*):", rules.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(word for line in lines for word in line.split())


def is_here(path):
    return path.is_file() and os.access(path, os.R_OK)


def can_be_made(path):
    """Whether a program is there, or its build knows how to make it. Programs lie in a folder of the build's folder."""
    return is_here(path) or f"{path.parent.name}/{path.name}" in outputs(path.parent.parent)


def make_sure_of(paths):
    """Builds those that are missing and can be made."""
    missing = [path for path in paths if not is_here(path) and can_be_made(path)]
    for folder in dict.fromkeys(path.parent.parent for path in missing):
        targets = [f"{path.parent.name}/{path.name}" for path in missing if path.parent.parent == folder]
        print(f"building {', '.join(path.name for path in missing)}", file=sys.stderr, flush=True)
        done = subprocess.run(["ninja", "-C", folder, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"ninja -C {folder} {' '.join(targets)} failed: {done.stdout[-2000:]}", UNAVAILABLE)
