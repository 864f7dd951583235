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
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import debian_source  # noqa: E402  (it lies beside this folder)

PATCHES = {"durable": HERE / "durable.patch", "hooks": HERE / "durable.patch", "breeze": HERE / "breeze.patch"}
DEBIAN_CONFIGURE = ["--enable-sasl", "--enable-tls"]
HEADERS = {"event2/event.h": "libevent-dev", "sasl/sasl.h": "libsasl2-dev", "openssl/ssl.h": "libssl-dev"}
VARIANTS = ("stock", "durable", "hooks")
OTHER_VARIANTS = ("breeze",)
BREEZE_OBJECT = "memcached-assoc.o"  # the compiler logs its stores; elsewhere a store of durable bytes is announced by hand
TEST_PROGRAMS = ["memcached-debug", "testapp", "timedrun", "sizes"]


class BuildFailed(Exception):
    """A step ended with an error; the message names its log."""


def say(text: str) -> None:
    print(f"memcached: {text}", flush=True)


def step(command: list[str], folder: pathlib.Path, log: pathlib.Path, extra: dict[str, str] | None = None) -> None:
    with log.open("ab") as output:
        done = subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, **(extra or {})})
    if done.returncode != 0:
        lines = log.read_text(errors="replace").splitlines()
        errors = [line for line in lines if "error" in line.lower()][-3:] or lines[-3:]
        raise BuildFailed(f"{command[0]} failed in {folder}: " + " / ".join(errors) + f" (all of it: {log})")


def check_headers() -> None:
    missing = [package for header, package in HEADERS.items() if not (pathlib.Path("/usr/include") / header).exists()]
    if missing:
        raise debian_source.SourceUnavailable("install what memcached is built with: apt-get install " + " ".join(missing))


def stillpoint_compiler(stillpoint_build: pathlib.Path, *words: str) -> str:
    tool = stillpoint_build / "bin/stillpoint"
    probe = subprocess.run([tool, "cc", *words, "--version"], capture_output=True, check=False)
    if probe.returncode != 0:
        raise debian_source.SourceUnavailable(f"{tool} cc does not work here: {probe.stderr.decode().strip()}")
    return " ".join([f"{tool} cc", *words])


def compiler(variant: str, stillpoint_build: pathlib.Path) -> str:
    if variant == "hooks":
        return stillpoint_compiler(stillpoint_build)
    return "ccache gcc" if shutil.which("ccache") else "gcc"


def identity(variant: str, source: pathlib.Path, stillpoint_build: pathlib.Path) -> str:
    """Changes with whatever the result depends on."""
    parts = [variant, source.name, compiler(variant, stillpoint_build), pathlib.Path(__file__).read_text()]
    if variant != "stock":
        parts.append(PATCHES[variant].read_text())
    if variant in ("hooks", "breeze"):
        pass_plugin = sorted((stillpoint_build / "lib").glob("*nvhooks*"))
        parts += [f"{path.name} {path.stat().st_mtime_ns}" for path in pass_plugin]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def build(variant: str, folder: pathlib.Path, stillpoint_build: pathlib.Path, jobs: int, with_tests: bool) -> pathlib.Path:
    """Builds one variant in `folder`/variant and returns the program. Raises SourceUnavailable and BuildFailed."""
    source = debian_source.fetch("memcached", folder.parent / "sources")
    target = folder / variant
    program = target / ("memcached" if variant == "stock" else "memcached-durable")
    wanted = identity(variant, source, stillpoint_build)
    stamp, tests_stamp = target / "built-from", target / "built-tests-from"
    log = folder / f"{variant}.log"
    if not (stamp.exists() and stamp.read_text() == wanted and program.exists()):
        say(f"building {variant} (log: {log})")
        shutil.rmtree(target, ignore_errors=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        shutil.copytree(source, target, symlinks=True)  # with its times: make must not run autoconf
        flags = ["CFLAGS=-O2 -g -Wno-strict-prototypes"]
        if variant != "stock":
            step(["patch", "-p1", "--no-backup-if-mismatch", "-i", str(PATCHES[variant])], target, log)
            libraries = "-lstillpoint-layer-breeze -lstillpoint" if variant == "breeze" else "-lstillpoint"
            flags = [f"CFLAGS=-O2 -g -Wno-strict-prototypes -I{ROOT / 'include'}", f"LIBS={libraries}",
                     f"LDFLAGS=-L{stillpoint_build / 'lib'} -Wl,-rpath,{stillpoint_build / 'lib'}"]
        step(["./configure", *DEBIAN_CONFIGURE, f"CC={compiler(variant, stillpoint_build)}", *flags], target, log)
        if variant == "breeze":
            step(["make", BREEZE_OBJECT, f"CC={stillpoint_compiler(stillpoint_build, '--runtime=breeze')}"], target, log)
        step(["make", f"-j{jobs}", "memcached"], target, log)
        if variant != "stock":
            shutil.copy2(target / "memcached", program)
        stamp.write_text(wanted)
    if with_tests and not (tests_stamp.exists() and tests_stamp.read_text() == wanted):
        say(f"building the test programs of {variant}")
        step(["make", f"-j{jobs}", *TEST_PROGRAMS], target, log)
        tests_stamp.write_text(wanted)
    return program


def arguments_of(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", default=",".join(VARIANTS),
                        help="of stock, durable, hooks, breeze (default: all that can be built, without breeze)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/integrations/memcached", help="where (default: %(default)s)")
    parser.add_argument("--stillpoint", type=pathlib.Path, default=ROOT / "build", help="Stillpoint's build (default: %(default)s)")
    parser.add_argument("--with-tests", metavar="VARIANTS", nargs="?", const=",".join(VARIANTS), default="",
                        help="also the programs that memcached's own tests need, for all variants or for these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="at once (default: %(default)s)")
    return parser.parse_args(words)


def main() -> int:
    arguments = arguments_of(None)
    chosen = arguments.variants.split(",")
    if unknown := [name for name in chosen if name not in VARIANTS + OTHER_VARIANTS]:
        print(f"memcached: there is no variant '{unknown[0]}'; variants: {', '.join(VARIANTS + OTHER_VARIANTS)}", file=sys.stderr)
        return 64
    stillpoint_build = arguments.stillpoint.resolve()
    try:
        check_headers()
        if chosen != ["stock"] and not (stillpoint_build / "lib/libstillpoint.so").exists():
            raise debian_source.SourceUnavailable(f"{stillpoint_build} has no lib/libstillpoint.so: run make first")
        for variant in chosen:
            try:
                print(build(variant, arguments.folder.resolve(), stillpoint_build, arguments.jobs,
                            variant in arguments.with_tests.split(",")))
            except debian_source.SourceUnavailable as reason:
                if variant != "hooks" or arguments.variants != ",".join(VARIANTS):
                    raise
                say(f"without the variant hooks: {reason}")
    except debian_source.SourceUnavailable as reason:
        print(f"memcached: {reason}", file=sys.stderr)
        return 69
    except BuildFailed as reason:
        print(f"memcached: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
