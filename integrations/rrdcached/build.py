#!/usr/bin/env python3
"""Builds Debian's rrdcached as it is, and durable by the engine breeze.

    python3 integrations/rrdcached/build.py

fetches the source package rrdtool, and leaves in build/integrations/rrdcached/

    stock/rrdcached, stock/rrdtool     the daemon and the tool, without graphs, bindings and import from XML
    breeze/rrdcached                   with breeze.patch; rrd_daemon.c is compiled by `stillpoint cc --runtime=breeze`

Nothing is installed. What is up to date is not built again. Exit codes: 0; 69 where the source, a library or a compiler is not
available here (the message names it); 1 where the build fails (its log is named).
"""

import argparse
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import debian_source  # noqa: E402  (it lies beside this folder)
from debian_build import (ROOT, add_build_options, apply_patch, begin_again, check_headers, check_library, exit_code_of,  # noqa: E402
                          identity, is_built_from, linked_with, plain_compiler, step, stillpoint_compiler)

PATCH = HERE / "breeze.patch"
HEADERS = {"glib-2.0/glib.h": "libglib2.0-dev"}
LEFT_OUT = ("rrd_graph", "rrd_restore", "perl", "ruby", "lua", "tcl", "python", "libwrap", "libdbi", "librados", "nls", "docs", "examples")
CONFIGURE = ["./configure", "--disable-shared", *(f"--disable-{part}" for part in LEFT_OUT)]
FLAGS = "-O2 -g -w"
BREEZE_OBJECT = "rrdcached-rrd_daemon.o"
PROGRAM = "rrdcached"
TOOL = "rrdtool"
SOURCES = "src"  # their folder in the package


def build_stock(folder: pathlib.Path, jobs: int) -> pathlib.Path:
    """Builds `folder`/stock and returns it. Raises SourceUnavailable and BuildFailed."""
    source = debian_source.fetch("rrdtool", folder.parent / "sources")
    target, log = folder / "stock", folder / "stock.log"
    wanted = identity([source.name, plain_compiler()], [pathlib.Path(__file__)], None)
    if not is_built_from(target / "built-from", wanted, target / PROGRAM):
        print(f"rrdcached: building stock (log: {log})", flush=True)
        begin_again(source, target, log)
        step([*CONFIGURE, f"CC={plain_compiler()}", f"CFLAGS={FLAGS}"], target, log)
        step(["make", "-C", SOURCES, f"-j{jobs}", PROGRAM, TOOL], target, log)
        for name in (PROGRAM, TOOL):
            shutil.copy2(target / SOURCES / name, target / name)
        (target / "built-from").write_text(wanted)
    return target


def build_breeze(folder: pathlib.Path, stock: pathlib.Path, stillpoint_build: pathlib.Path) -> pathlib.Path:
    """Builds `folder`/breeze from what was built for stock, and returns it. Raises SourceUnavailable and BuildFailed."""
    target, log = folder / "breeze", folder / "breeze.log"
    wanted = identity([], [stock / "built-from", PATCH], stillpoint_build)
    if not is_built_from(target / "built-from", wanted, target / PROGRAM):
        print(f"rrdcached: building breeze (log: {log})", flush=True)
        begin_again(stock, target, log)
        (target / "built-from").unlink()
        apply_patch(PATCH, target, log)
        make = ["make", "-C", SOURCES]
        step([*make, BREEZE_OBJECT, f"CC={stillpoint_compiler(stillpoint_build, '--runtime=breeze')}",
              f"CFLAGS={FLAGS} -I{ROOT / 'include'}"], target, log)
        step([*make, PROGRAM, f"LIBS={linked_with(stillpoint_build)} -lstillpoint-layer-breeze -lstillpoint -lm -lglib-2.0"], target, log)
        shutil.copy2(target / SOURCES / PROGRAM, target / PROGRAM)
        (target / "built-from").write_text(wanted)
    return target


def build_all(arguments: argparse.Namespace) -> None:
    folder, stillpoint_build = arguments.folder.resolve(), arguments.stillpoint.resolve()
    check_headers("rrdcached", HEADERS)
    check_library(stillpoint_build)
    stock = build_stock(folder, arguments.jobs)
    for target in (stock, build_breeze(folder, stock, stillpoint_build)):
        print(target / PROGRAM)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_build_options(parser, "rrdcached")
    arguments = parser.parse_args()
    return exit_code_of("rrdcached", lambda: build_all(arguments))


if __name__ == "__main__":
    sys.exit(main())
