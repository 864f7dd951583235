"""pymemcache, the client that the tests speak through: a library of others, so that a mistake of ours is not made on both sides."""

import importlib.util
import os
import subprocess
import sys

# Where apt's python3-pymemcache belongs; the python3 that comes first in PATH may be another one.
SYSTEM_PYTHON = "/usr/bin/python3"
EX_SKIP = 77  # for ctest: not run, since something is not here
MISSING = "pymemcache is missing: apt-get install python3-pymemcache"


def find():
    """True where `import pymemcache` works; where only the system's interpreter has it, continues in that one with the same arguments."""
    if importlib.util.find_spec("pymemcache"):
        return True
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and has_pymemcache(SYSTEM_PYTHON):
        sys.stdout.flush()
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
    return False


def find_or_exit():
    if not find():
        print(f"skipped: {MISSING}")
        sys.exit(EX_SKIP)


def has_pymemcache(python):
    question = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('pymemcache'))"
    try:
        return subprocess.run([python, "-c", question], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False
