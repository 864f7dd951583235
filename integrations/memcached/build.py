#!/usr/bin/env python3
"""Builds Debian's memcached as it is, and durable.

    python3 integrations/memcached/build.py                       # stock, durable and, where Clang 19 is there, hooks
    python3 integrations/memcached/build.py --variants durable
    python3 integrations/memcached/build.py --variants breeze     # by the engine breeze: each reply is durable

fetches the source package, applies durable.patch or breeze.patch, and leaves in build/integrations/memcached/

    stock/memcached               as Debian's, with Debian's configure options
    durable/memcached-durable     compiled by the same compiler with the same options: trackers uffd and mprotect
    hooks/memcached-durable       compiled by `stillpoint cc`: the tracker hooks too
    breeze/memcached-durable      assoc.c, which has the hash table, compiled by `stillpoint cc --runtime=breeze`

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
from debian_build import (ROOT, add_build_options, apply_patch, begin_again, check_headers, check_instrumented,  # noqa: E402
                          check_library, configure, exit_code_of, identity, is_built_from, linked_with, plain_compiler, step,
                          stillpoint_compiler)

PATCHES = {"durable": HERE / "durable.patch", "hooks": HERE / "durable.patch", "breeze": HERE / "breeze.patch"}
DEBIAN_CONFIGURE = ["--enable-sasl", "--enable-tls"]
HEADERS = {"event2/event.h": "libevent-dev", "sasl/sasl.h": "libsasl2-dev", "openssl/ssl.h": "libssl-dev"}
VARIANTS = ("stock", "durable", "hooks")
OTHER_VARIANTS = ("breeze",)
ANSWERS = "configure.answers"
BREEZE_OBJECT = "memcached-assoc.o"  # the compiler logs its stores; elsewhere a store of durable bytes is announced by hand
TEST_PROGRAMS = ["memcached-debug", "testapp", "timedrun", "sizes"]


def say(text: str) -> None:
    print(f"memcached: {text}", flush=True)


def compiler(variant: str, stillpoint_build: pathlib.Path) -> str:
    return stillpoint_compiler(stillpoint_build) if variant == "hooks" else plain_compiler()


def wanted_identity(variant: str, source: pathlib.Path, stillpoint_build: pathlib.Path) -> str:
    files = [pathlib.Path(__file__), *([PATCHES[variant]] if variant in PATCHES else [])]
    return identity([variant, source.name, compiler(variant, stillpoint_build)], files,
                    stillpoint_build if variant in ("hooks", "breeze") else None)


def build(variant: str, folder: pathlib.Path, stillpoint_build: pathlib.Path, jobs: int, with_tests: bool) -> pathlib.Path:
    """Builds one variant in `folder`/variant and returns the program. Raises SourceUnavailable and BuildFailed."""
    source = debian_source.fetch("memcached", folder.parent / "sources")
    target = folder / variant
    program = target / ("memcached" if variant == "stock" else "memcached-durable")
    wanted = wanted_identity(variant, source, stillpoint_build)
    stamp, tests_stamp = target / "built-from", target / "built-tests-from"
    log = folder / f"{variant}.log"
    if not is_built_from(stamp, wanted, program):
        say(f"building {variant} (log: {log})")
        begin_again(source, target, log)
        flags = ["CFLAGS=-O2 -g -Wno-strict-prototypes"]
        if variant != "stock":
            apply_patch(PATCHES[variant], target, log)
            libraries = "-lstillpoint-layer-breeze -lstillpoint" if variant == "breeze" else "-lstillpoint"
            flags = [f"CFLAGS=-O2 -g -Wno-strict-prototypes -I{ROOT / 'include'}", f"LIBS={libraries}",
                     f"LDFLAGS={linked_with(stillpoint_build)}"]
        configure([*DEBIAN_CONFIGURE, f"CC={compiler(variant, stillpoint_build)}", *flags], folder / ANSWERS, target, log)
        if variant == "breeze":
            step(["make", BREEZE_OBJECT, f"CC={stillpoint_compiler(stillpoint_build, '--runtime=breeze')}"], target, log)
        step(["make", f"-j{jobs}", "memcached"], target, log)
        if variant in ("hooks", "breeze"):
            check_instrumented(target / "memcached")
        if variant != "stock":
            shutil.copy2(target / "memcached", program)
        stamp.write_text(wanted)
    if with_tests and not is_built_from(tests_stamp, wanted, program):
        say(f"building the test programs of {variant}")
        step(["make", f"-j{jobs}", *TEST_PROGRAMS], target, log)
        tests_stamp.write_text(wanted)
    return program


def arguments_of(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", default=",".join(VARIANTS),
                        help="of stock, durable, hooks, breeze (default: all that can be built, without breeze)")
    parser.add_argument("--with-tests", metavar="VARIANTS", nargs="?", const=",".join(VARIANTS), default="",
                        help="also the programs that memcached's own tests need, for all variants or for these")
    add_build_options(parser, "memcached")
    return parser.parse_args(words)


def build_all(chosen: list[str], arguments: argparse.Namespace) -> None:
    stillpoint_build = arguments.stillpoint.resolve()
    check_headers("memcached", HEADERS)
    if chosen != ["stock"]:
        check_library(stillpoint_build)
    (arguments.folder / ANSWERS).unlink(missing_ok=True)  # of an earlier time; the machine may have changed
    for variant in chosen:
        try:
            print(build(variant, arguments.folder.resolve(), stillpoint_build, arguments.jobs, variant in arguments.with_tests.split(",")))
        except debian_source.SourceUnavailable as reason:
            if variant != "hooks" or arguments.variants != ",".join(VARIANTS):
                raise
            say(f"without the variant hooks: {reason}")


def main() -> int:
    arguments = arguments_of(None)
    chosen = arguments.variants.split(",")
    if unknown := [name for name in chosen if name not in VARIANTS + OTHER_VARIANTS]:
        print(f"memcached: there is no variant '{unknown[0]}'; variants: {', '.join(VARIANTS + OTHER_VARIANTS)}", file=sys.stderr)
        return 64
    return exit_code_of("memcached", lambda: build_all(chosen, arguments))


if __name__ == "__main__":
    sys.exit(main())
