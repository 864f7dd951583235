#!/usr/bin/env python3
"""The binary interface of libstillpoint.so, against the one that is promised: tests/abi/names.txt and tests/abi/types.abi.

    python3 scripts/abi.py             # exit code 1 if a program that was linked earlier could break, or a name is not recorded
    python3 scripts/abi.py --update    # records the present interface: for a new function, or a new major version

names.txt has each exported function or variable with its version; nm tells the present ones. types.abi has their types, as abidw (Debian:
abigail-tools) reads them from a library that takes the address of each as the public headers declare it; abidiff compares. Without
abidiff the names alone are compared, and --update is refused.
"""

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES, TYPES = ROOT / "tests/abi/names.txt", ROOT / "tests/abi/types.abi"
EXPORTS = ROOT / "src/interpose/exports.map"
API_PREFIX = re.compile(r"(sp|nvm|nvhooks)_")
INCOMPATIBLE = 8  # a bit of abidiff's exit code; 4: changed, compatibly as far as it knows
CHANGED = 4


def output_of(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def exported(library):
    """(name@@VERSION of the API, names without a version)"""
    words = [line.split()[-1] for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()]
    versioned = {word for word in words if "@" in word and not word.startswith("STILLPOINT_")}
    return versioned, {word for word in words if "@" not in word}


def names_in_the_map():
    text = re.sub(r"/\*.*?\*/", "", EXPORTS.read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"\b(\w+);", text)) - {"STILLPOINT_1"}


def complaints_about_names(library):
    versioned, bare = exported(library)
    recorded = set(NAMES.read_text(encoding="utf-8").split())
    for name in sorted(recorded - versioned):
        yield f"{name} is promised, and {library.name} does not export it: programs that use it would not start"
    for name in sorted(versioned - recorded):
        yield f"{name} is new: record it by `make abi`"
    for name in sorted(one for one in bare if API_PREFIX.match(one)):
        yield f"{name} has no version: list it in {EXPORTS.relative_to(ROOT)}"
    for name in sorted(names_in_the_map() - {one.split("@")[0] for one in versioned}):
        yield f"{EXPORTS.relative_to(ROOT)} lists {name}, which {library.name} does not have"


def write_types(library, folder, compiler):
    """The interface as XML: of all functions and variables, and of the types that they need."""
    names = sorted(one.split("@")[0] for one in exported(library)[0])
    headers = sorted(path.name for path in (ROOT / "include/stillpoint").glob("*.h"))
    lines = [f"#include <stillpoint/{name}>" for name in headers]
    lines += [f"__typeof__({name})* of_{name}(void) {{ return &{name}; }}" for name in names]
    source, built, xml = folder / "interface.c", folder / "interface.so", folder / "types.abi"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    output_of(compiler, "-std=gnu11", "-g", "-shared", "-fPIC", f"-I{ROOT / 'include'}", source, "-o", built)
    output_of("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--drop-undefined-syms",
              "--out-file", xml, built)
    return xml


def complaints_about_types(library, compiler):
    with tempfile.TemporaryDirectory() as folder:
        xml = write_types(library, Path(folder), compiler)
        done = subprocess.run(["abidiff", "--no-added-syms", TYPES, xml], capture_output=True, text=True, check=False)
    if done.returncode & INCOMPATIBLE or done.returncode & CHANGED:
        yield f"a type of the C API has changed:\n{done.stdout}"
    elif done.returncode != 0:
        yield f"abidiff failed with {done.returncode}: {done.stderr or done.stdout}"


def update(library, compiler):
    NAMES.write_text("".join(f"{name}\n" for name in sorted(exported(library)[0])), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        TYPES.write_text(write_types(library, Path(folder), compiler).read_text(encoding="utf-8"), encoding="utf-8")
    print(f"{NAMES.relative_to(ROOT)} and {TYPES.relative_to(ROOT)} written")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "build/lib/libstillpoint.so")
    parser.add_argument("--compiler", default="cc", help="of C, for the types")
    parser.add_argument("--update", action="store_true", help="record the present interface")
    arguments = parser.parse_args()
    # The record is of x86-64; sizes of types differ elsewhere.
    has_abigail = shutil.which("abidw") and shutil.which("abidiff") and platform.machine() == "x86_64"
    if arguments.update:
        if not has_abigail:
            print("abi: the record is made on x86-64, by abidw: apt-get install abigail-tools", file=sys.stderr)
            return 69
        update(arguments.library, arguments.compiler)
        return 0
    complaints = [*complaints_about_names(arguments.library)]
    if has_abigail:
        complaints += complaints_about_types(arguments.library, arguments.compiler)
    else:
        print("abi: types are compared on x86-64, where abidiff (Debian: abigail-tools) is installed")
    for complaint in complaints:
        print(f"abi: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
