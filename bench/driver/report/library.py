"""Matplotlib: looked for before anything is measured."""

import importlib.util
import os
import subprocess
import sys

from ..errors import UNAVAILABLE, BenchError

# Where apt's python3-matplotlib belongs; the python3 that comes first in PATH may be another one.
SYSTEM_PYTHON = "/usr/bin/python3"


def make_sure_of_matplotlib(option, program, arguments):
    """Where this interpreter has no matplotlib and the system's has, continues in that one; where none has, says what to install."""
    if importlib.util.find_spec("matplotlib"):
        return
    if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and has_matplotlib(SYSTEM_PYTHON):
        sys.stdout.flush()
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", str(program), *arguments])
    raise BenchError(f"stillpoint bench {option} needs matplotlib: apt-get install python3-matplotlib", UNAVAILABLE)


def has_matplotlib(python):
    question = "import importlib.util, sys; sys.exit(sys.version_info < (3, 9) or not importlib.util.find_spec('matplotlib'))"
    try:
        return subprocess.run([python, "-c", question], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False
