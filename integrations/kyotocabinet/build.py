#!/usr/bin/env python3
"""Builds Kyoto Cabinet's in-memory databases from Debian's source: as they are, and durable.

    python3 integrations/kyotocabinet/build.py
    build/bin/stillpoint run --pool kc.pool -- build/integrations/kyotocabinet/durable/kccachetest-named order 10000

One folder each under build/integrations/kyotocabinet: stock (unpatched), durable (durable.patch and kcpool.h, the same
compiler and flags), hooks (the durable source compiled by `stillpoint c++`), lint (by `stillpoint c++ --lint`). In each:
Kyoto Cabinet's own kccachetest and kcprototest, the worker of bench/kyotocabinet, and, where durable, those two test
programs with a database that has a name ("-named"), and the ledger of tests/integrations/kyotocabinet.
Exit code 77: the source is not available here.
"""

import argparse
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import debian_source  # noqa: E402  (the path must be set first)

EXIT_SKIPPED = 77
# The parts of the library that the databases on memory need. Its file databases, tools and bindings are left out.
LIBRARY = "kcutil kcthread kcfile kccompress kccompare kcmap kcregex kcdb kcplantdb kcprotodb kccachedb".split()
# As Debian builds it, without the compressors LZO and LZMA.
FLAGS = ("-std=gnu++17 -O2 -g1 -DNDEBUG -D_GNU_SOURCE=1 -D_FILE_OFFSET_BITS=64 -D_REENTRANT -D_MYZLIB "
         "-Wall -Wno-unused -Wno-format")
# Kyoto Cabinet's spinlocks of its own, which Clang does not compile; without this it has those of pthread. The databases use neither.
GCC_FLAGS = "-D_MYGCCATOMIC"
CLANG_FLAGS = "-Wno-undefined-var-template"
# Kyoto Cabinet's own test programs are not measured, and the databases' templates in them are most of the work of a build.
UNMEASURED_FLAGS = "-O1"
HARNESS = "turns commands answer clock ending slice_threads".split()
# Both programs open a database by its class's nameless name; the second one of each transaction test is "para". As a program whose
# name ends with "-named" they open one with a name: the databases' templates are compiled once for both.
NAMED = {"kccachetest": "*", "kcprototest": "-"}


@dataclasses.dataclass
class Flavour:
    name: str
    compiler: str
    flags: str
    durable: bool


def flavours(build: pathlib.Path) -> list[Flavour]:
    ccache = shutil.which("ccache")
    plain = f"{ccache} {os.environ.get('CXX', 'g++')}" if ccache else os.environ.get("CXX", "g++")
    hooked = str(build / "bin/stillpoint-c++")
    return [Flavour("stock", plain, GCC_FLAGS, False), Flavour("durable", plain, GCC_FLAGS, True),
            Flavour("hooks", hooked, CLANG_FLAGS, True), Flavour("lint", hooked, f"--lint {CLANG_FLAGS}", True)]


def patched(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The durable source: made again when the patch or kcpool.h has changed."""
    digest = hashlib.sha256()
    for path in (HERE / "durable.patch", HERE / "kcpool.h", pathlib.Path(__file__)):
        digest.update(path.read_bytes())
    stamp = folder / "made-from"
    if stamp.is_file() and stamp.read_text() == digest.hexdigest():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in [*source.glob("*.h"), *source.glob("*.cc")]:
        shutil.copy2(path, folder)
    subprocess.run(["patch", "--quiet", "-p1", "-i", str(HERE / "durable.patch")], cwd=folder, check=True)
    shutil.copy2(HERE / "kcpool.h", folder)
    for name, nameless in NAMED.items():
        text = (folder / f"{name}.cc").read_text()
        if text.count(f'open("{nameless}"') != 4:
            raise debian_source.SourceUnavailable(f"{name}.cc is not the one that the patch was made for")
        chosen = f'open(std::strstr(program_invocation_short_name, "-named") ? "casket" : "{nameless}"'
        includes = "#include <cerrno>\n#include <cstring>\n#line 1\n"
        (folder / f"{name}-named.cc").write_text(includes + text.replace(f'open("{nameless}"', chosen))
    stamp.write_text(digest.hexdigest())
    return folder


class Ninja:
    """The text of a build.ninja: every program of every flavour."""

    def __init__(self, build: pathlib.Path):
        self.build = build
        self.lines = ["rule compile", "  command = $compiler $flags -MMD -MF $out.d -c $in -o $out", "  depfile = $out.d",
                      "  deps = gcc", "  description = compile $out", "rule link",
                      "  command = $compiler $flags $in -o $out $libraries", "  description = link $out"]

    def compile(self, flavour: Flavour, source: pathlib.Path, includes: list[pathlib.Path], extra: str = "") -> str:
        target = f"{flavour.name}/objects/{source.stem}.o"
        flags = " ".join([FLAGS, flavour.flags, extra, *(f"-I{path}" for path in includes)])
        plugins = sorted((self.build / "lib").glob("libstillpoint-nvhooks-*.so")) if flavour.name in ("hooks", "lint") else []
        rebuilt_with = " | " + " ".join(map(str, plugins)) if plugins else ""
        self.lines += [f"build {target}: compile {source}{rebuilt_with}", f"  compiler = {flavour.compiler}", f"  flags = {flags}"]
        return target

    def link(self, flavour: Flavour, name: str, objects: list[str]) -> str:
        library = self.build / "lib"
        stillpoint = f"-L{library} -lstillpoint -Wl,-rpath,{library}" if flavour.durable else ""
        self.lines += [f"build {flavour.name}/{name}: link {' '.join(objects)}", f"  compiler = {flavour.compiler}",
                       f"  flags = -g1 {'--lint' if flavour.name == 'lint' else ''}", f"  libraries = {stillpoint} -lz -pthread"]
        return f"{flavour.name}/{name}"

    def flavour(self, flavour: Flavour, source: pathlib.Path) -> None:
        includes = [source, ROOT / "include", ROOT / "bench"]
        library = [self.compile(flavour, source / f"{name}.cc", includes) for name in LIBRARY]
        programs = {name: [source / f"{name}.cc"] for name in NAMED}
        programs["kyotocabinet_worker"] = [ROOT / "bench/kyotocabinet/kyotocabinet_worker.cpp",
                                           *(ROOT / f"bench/harness/{name}.cpp" for name in HARNESS)]
        if flavour.durable:
            programs |= {name + suffix: [source / f"{name}-named.cc"] for name in NAMED for suffix in ("", "-named")}
            programs["ledger"] = [ROOT / "tests/integrations/kyotocabinet/ledger.cpp"]
        objects = {}
        for path in dict.fromkeys(path for paths in programs.values() for path in paths):
            extra = UNMEASURED_FLAGS if path.stem.partition("-")[0] in NAMED else ""
            objects[path] = self.compile(flavour, path, includes, extra)
        targets = [self.link(flavour, name, [objects[path] for path in paths] + library) for name, paths in programs.items()]
        self.lines.append(f"build {flavour.name}: phony {' '.join(targets)}")


def can_be_built(target: str, build: pathlib.Path) -> bool:
    """False for what needs Clang where `stillpoint c++` does not find one."""
    if target.partition("/")[0] not in ("hooks", "lint"):
        return True
    probe = subprocess.run([build / "bin/stillpoint-c++", "--version"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        print(f"kyotocabinet: without {target}: {probe.stderr.strip()}", file=sys.stderr)
    return probe.returncode == 0


def build_all(build: pathlib.Path, wanted: list[str], jobs: int) -> pathlib.Path:
    if not pathlib.Path("/usr/include/zlib.h").exists():
        raise debian_source.SourceUnavailable("Kyoto Cabinet is built with zlib: apt-get install zlib1g-dev")
    if not (build / "lib/libstillpoint.so").exists():
        raise debian_source.SourceUnavailable(f"{build} has no lib/libstillpoint.so: run make first")
    wanted = [target for target in wanted if can_be_built(target, build)]
    stock = debian_source.fetch("kyotocabinet", build / "integrations" / "sources")
    folder = build / "integrations/kyotocabinet"
    durable = patched(stock, folder / "patched")
    ninja = Ninja(build)
    for flavour in flavours(build):
        ninja.flavour(flavour, durable if flavour.durable else stock)
    (folder / "build.ninja").write_text("\n".join(ninja.lines) + "\n")
    subprocess.run(["ninja", "--quiet", "-C", str(folder), f"-j{jobs}", *wanted], check=True)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["stock", "durable"],
                        help="stock, durable, hooks, lint, or one program of them: hooks/ledger (default: stock durable)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the project's build folder (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    try:
        print(build_all(arguments.build.resolve(), arguments.targets, arguments.jobs))
    except debian_source.SourceUnavailable as reason:
        print(f"kyotocabinet: skipped: {reason}", file=sys.stderr)
        return EXIT_SKIPPED
    except subprocess.CalledProcessError as failure:
        return failure.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
