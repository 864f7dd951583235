"""The Python package: compiled in the build folder by an interpreter that has cffi and setuptools, then its own tests, and the program of
its guide. Exit code 77: no such interpreter, or no header of Python."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["STILLPOINT_BUILD"]).resolve()
PACKAGE = ROOT / "bindings/python"
SKIPPED = 77
NEEDED = "import cffi, setuptools, sysconfig, os; assert os.path.exists(sysconfig.get_path('include') + '/Python.h')"
BLOCK = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def interpreter():
    """(its path or None, whether it has numpy)"""
    fit = [name for name in (sys.executable, "/usr/bin/python3") if os.path.exists(name) and can(name, NEEDED)]
    with_numpy = [name for name in fit if can(name, "import numpy")]
    return next(iter(with_numpy + fit), None), bool(with_numpy)


def can(name, program):
    return subprocess.run([name, "-c", program], capture_output=True, check=False).returncode == 0


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], text=True, check=False, timeout=250, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout or ''}{done.stderr or ''}\nexit code {done.returncode} of {' '.join(map(str, words))}")
    return done.stdout


def prefix_in(folder):
    """Looks like an installation, with the headers of the source and the library of the build."""
    for name, place in (("include", ROOT / "include"), ("lib", BUILD / "lib")):
        (folder / name).symlink_to(place)
    return folder


def guide(python, folder, environment):
    for title, body in BLOCK.findall((ROOT / "docs/guide/python.md").read_text(encoding="utf-8")):
        (folder / title).write_text(body, encoding="utf-8")
        words = (BUILD / "bin/stillpoint", "run", "--quiet", "--pool", folder / f"{title}.pool", "--", python, "-B", folder / title)
        first, second = (run(*words, env=environment, stdout=subprocess.PIPE, cwd=folder) for _ in range(2))
        if first == second:
            sys.exit(f"{title} prints the same in its second life: {first}")


def main():
    python, has_numpy = interpreter()
    if python is None:
        print("skipped: no interpreter has cffi, setuptools and the headers of Python (Debian: python3-cffi python3-setuptools python3-dev)")
        return SKIPPED
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = Path(name)
        shutil.copytree(PACKAGE, folder / "package", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        environment = {**os.environ, "STILLPOINT_PREFIX": str(prefix_in(folder)), "STILLPOINT": str(BUILD / "bin/stillpoint"),
                       "PYTHONPATH": str(folder / "built")}
        run(python, "setup.py", "-q", "build", "--build-lib", folder / "built", cwd=folder / "package", env=environment,
            capture_output=True)
        run(python, "-B", PACKAGE / "tests/test_stillpoint.py", env=environment, cwd=folder)
        if has_numpy:
            guide(python, folder, environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
