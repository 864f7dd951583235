#!/usr/bin/env python3
"""Additions a second to numbers in durable memory, by C, C++, Python and Rust: the same loop, with one and with 100 additions in a section.

    python3 bench/languages/measure.py [--build build] [--seconds 1] [--rounds 5] [--pool-folder /dev/shm]

The languages take turns; the median of the rounds is shown. A language whose tools are not installed is left out.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PER_SECTION = (1, 100)


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def compiled(folder, build):
    """{name: command without its arguments} of C and C++."""
    flags = ("-O2", f"-I{ROOT / 'include'}", f"-L{build / 'lib'}", "-lstillpoint", f"-Wl,-rpath,{build / 'lib'}")
    run("cc", HERE / "loop.c", "-o", folder / "loop_c", *flags)
    run("c++", "-std=c++20", HERE / "loop.cpp", "-o", folder / "loop_cpp", *flags)
    return {"C": ([folder / "loop_c"], []), "C++, stillpoint.hpp": ([folder / "loop_cpp"], [])}


def of_python(folder, environment):
    needed = "import cffi, setuptools, numpy"
    fit = [name for name in (sys.executable, "/usr/bin/python3")
           if subprocess.run([name, "-c", needed], capture_output=True, check=False).returncode == 0]
    if not fit:
        return {}
    shutil.copytree(ROOT / "bindings/python", folder / "package")
    run(fit[0], "setup.py", "-q", "build", "--build-lib", folder / "built", cwd=folder / "package", env=environment,
        stderr=subprocess.DEVNULL)
    words = [fit[0], "-B", HERE / "loop.py"]
    return {"Python, list": (words, ["list"]), "Python, numpy array, one by one": (words, ["array"])}


def of_rust(folder, environment):
    if shutil.which("cargo") is None:
        return {}
    shutil.copytree(ROOT / "bindings/rust", folder / "crates", ignore=shutil.ignore_patterns("target"))
    (folder / "crates/stillpoint/examples").mkdir()
    shutil.copy(HERE / "loop.rs", folder / "crates/stillpoint/examples/loop_rs.rs")
    run("cargo", "build", "--offline", "-q", "--release", "--example", "loop_rs", cwd=folder / "crates/stillpoint", env=environment)
    return {"Rust": ([folder / "target/release/examples/loop_rs"], [])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pool-folder", default="/dev/shm")
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(dir=options.pool_folder) as pools:
        folder = Path(name)
        (folder / "lib").symlink_to(build / "lib")
        (folder / "include").symlink_to(ROOT / "include")
        environment = {**os.environ, "STILLPOINT_PREFIX": str(folder), "CARGO_TARGET_DIR": str(folder / "target"),
                       "LD_LIBRARY_PATH": str(build / "lib"), "PYTHONPATH": str(folder / "built")}
        programs = {**compiled(folder, build), **of_python(folder, environment), **of_rust(folder, environment)}
        figures = {(language, count): [] for language in programs for count in PER_SECTION}
        for _ in range(options.rounds):
            for (language, count), rates in figures.items():
                words, more = programs[language]
                pool = Path(pools) / f"{language.replace(' ', '')}.pool"
                rates.append(float(run(build / "bin/stillpoint", "run", "--quiet", "--durability", "process", "--pool-max", "64M",
                                       "--pool", pool, "--", *words, options.seconds, count, *more, env=environment)))
    print("| additions a second, millions | one in a section | 100 in a section |\n|---|---|---|")
    for language in programs:
        print(f"| {language} | " + " | ".join(f"{statistics.median(figures[language, count]) / 1e6:.2f}" for count in PER_SECTION) + " |")


if __name__ == "__main__":
    main()
