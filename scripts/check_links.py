#!/usr/bin/env python3
"""Rejects a call that goes upwards when the library is linked.

check_includes.py sees what a file includes; this program sees what its object file asks for. A lower layer must not need a function or
variable that only a higher layer defines: otherwise it cannot be linked, or understood, without that layer.

The input has a line for each layer, lowest first: its name and its object files, separated by ";". CMake lists a layer's precompiled
header among them, which is not an object file and is left out. What the interposer defines under a name of libc does not count: a call of
close() asks for libc's.

Usage: check_links.py OBJECTS [--nm PROGRAM]. Exit code 1 if a call goes upwards.
"""

import argparse
import ctypes
import subprocess
import sys
from pathlib import Path

# The letters by which nm marks a symbol that others may use; lower-case letters are local, except weak ones that are undefined.
DEFINED = set("TBDRVWuSG")


def symbols_of(nm, files):
    """Yields (file, kind, symbol) for each global symbol of the object files."""
    command = [nm, "--format=posix", "--print-file-name", "--extern-only", *files]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        file, _, rest = line.rpartition(": ")
        fields = rest.split()
        if len(fields) >= 2:
            yield file, fields[1], fields[0]


def is_of_libc(symbol, libc=ctypes.CDLL(None)):
    """Whether the C library of this machine has it."""
    return hasattr(libc, symbol)


def upward_calls(layers, nm):
    """Yields (layer, file, symbol, higher layer). `layers`: (name, object files), lowest first."""
    lowest, wanted = {}, []
    for place, (_, files) in enumerate(layers):
        for file, kind, symbol in symbols_of(nm, files) if files else ():
            if kind in DEFINED:
                lowest.setdefault(symbol, place)
            elif kind == "U":
                wanted.append((place, file, symbol))
    for place, file, symbol in wanted:
        if lowest.get(symbol, -1) > place and not is_of_libc(symbol):
            yield layers[place][0], file, symbol, layers[lowest[symbol]][0]


def readable(symbol):
    """The symbol as C++ source has it."""
    shown = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=False)
    return shown.stdout.strip() or symbol


def layers_of(text):
    """(name, object files) of each line."""
    for line in text.splitlines():
        name, *files = filter(None, line.split(";"))
        yield name, [file for file in files if file.endswith(".o")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("objects", type=Path)
    parser.add_argument("--nm", default="nm")
    arguments = parser.parse_args()
    layers = list(layers_of(arguments.objects.read_text(encoding="utf-8")))
    found = 0
    for layer, file, symbol, higher in upward_calls(layers, arguments.nm):
        print(f"{Path(file).name}: error: src/{layer} needs {readable(symbol)}, which only src/{higher} above it defines", file=sys.stderr)
        found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
