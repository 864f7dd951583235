#!/usr/bin/env python3
"""Rejects an include that points the wrong way, and an engine's name outside its folder.

The order of the layers is the list of stillpoint_layer() calls in CMakeLists.txt, lowest first; this
program reads it from there. The rules:

  src/<layer>/          includes its own layer, lower layers and include/stillpoint/
  src/engines/<a>/      never includes src/engines/<b>/: what two engines need moves down
  include/stillpoint/   includes only other public headers and the standard library
  src/: nvhooks/abi/    includes nothing; nvhooks/pass/ only the abi;
                        nvhooks/runtime/ the abi and every layer
  examples/             includes only public headers: they show what a user can do
  src/core/             no header of the operating system; only src/arch includes one of the CPU
  no folder of src/     includes tools/, tests/, bench/ or examples/
  tests/support/        helpers for tests: *_test.cpp of src/ and fuzz/ may include them, no other file of src/
  src/, tools/, layers/, include/stillpoint/, bench/, scripts/, cmake/, integrations/, Makefile, CMakeLists.txt
                        name no engine (a folder of src/engines), also not in strings and comments,
                        except in its folder, its layer and its public headers, in bench/ in files and folders
                        whose names begin with its own, in unit tests, in documents, and
                        where NAMED_HERE says why. A citation of a paper, [PMThreads §4.2], is not a name.

What an include names and does not exist is the compiler's to report.

Usage: check_includes.py [--root DIRECTORY]. Exit code 1 if a rule is broken.
"""

import argparse
import re
import sys
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".hpp", ".inc", ".c", ".cpp"}
FOLDERS = ("include", "src", "tools", "tests", "bench", "examples", "fuzz", "layers")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
LAYER = re.compile(r"^\s*stillpoint_layer\((\w+)\)", re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CPU_HEADER = re.compile(r"^(\w*intrin\.h|arm_\w+\.h|cpuid\.h)$")
SYSTEM_HEADER = re.compile(r"^((sys|linux|asm|netinet|arpa)/.*|(unistd|pthread|fcntl|signal|sched|dlfcn|poll|"
                           r"semaphore|ucontext|execinfo|liburing)\.h)$")
# Where engines are named: suffixes of files beyond the sources above, by folder; files at the root.
NAMING_FOLDERS = ("src", "tools", "layers", "include", "bench", "scripts", "cmake", "integrations")
NAMING_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".cmake", ".txt"}
NAMING_FILES = ("Makefile", "CMakeLists.txt")
# The files and folders that name engines, and why. An entry that is no longer needed is an error.
NAMED_HERE = {
    "src/api/registry.cpp": "it lists the engines",
    "include/stillpoint/stillpoint.h": "it tells users what a failure-atomic section is with each engine",
    "include/stillpoint/memory.hpp": "it is a part of that engine's header too, and pools have a name of that engine for the resource",
    "src/itm/": "it offers the transactions of one engine through another interface",
    "include/stillpoint/itm.h": "the interface of src/itm",
    "layers/respct/respct-hooks.h": "the runtime of one layer is the other's, with another engine",
    "layers/lint/lint-hooks.h": "what the layer of that name has compiled is watched as it is",
    "layers/lint/pmthreads-hooks.h": "programs that are written for the layer of that name include it",
    "bench/papers/": "the papers measure systems of these names",
    "bench/nvhooks/": "it measures the layers, one of which has such a name",
    "bench/parts/": "it measures parts of one engine",
    "bench/model/": "it models the systems of a paper, by their names",
    "bench/tokyocabinet/": "it measures one library on the engines that suit it",
    "bench/breeze_ports/": "it compares ports by one engine with the same program by another",
    "bench/memcached/": "one of the ports that it measures is by another engine",
    "bench/rrdcached/": "the port that it measures is by this engine",
    "integrations/memcached/": "one of its patches is by another engine",
    "integrations/rrdcached/": "the port is by this engine",
    "integrations/changed_lines.py": "it counts as that engine's ports do",
    "bench/respct_costs.py": "it shows counters of two engines side by side",
    "bench/driver/command_line.py": "its help shows commands",
    "bench/driver/bars.py": "it shows bars",
    "bench/driver/registry.py": "it lists the benchmarks, some of which are of one engine",
    "tools/stillpoint/known_types.cpp": "it prints a type of the namespace of one engine",
    "tools/gdb/": "it prints types of the namespaces of two engines, and reads the memory of a third",
    "scripts/check_includes.py": "this list",
}
# Public headers that do not begin with the name of the engine that they belong to.
HEADERS_OF_ENGINES = {"include/stillpoint/durable": "pronto"}
# Public headers that have the name of a paper's interface, which every engine offers: to include one names no engine.
HEADERS_OF_ALL = {"stillpoint/nvthreads.h"}
CITATION = re.compile(r"\[[A-Z][^\]\n]*\]")


def layers_of(cmake_lists):
    """Names of the layers, lowest first."""
    return LAYER.findall(cmake_lists)


def place_of(path):
    """The part of the project that a path (relative to the root) belongs to, e.g. ('src', 'pool')."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        if parts[1] in ("engines", "nvhooks") and len(parts) > 3:
            return ("src", parts[1], parts[2])
        return ("src", parts[1])
    return (parts[0],)


def rejected_target(layers, source, target):
    """Why `source` may not include `target`, both relative to the root; None if it may."""
    here, there = place_of(source), place_of(target)
    if here == there or there == ("include",):
        return None
    if here == ("include",):
        return "a public header includes only public headers and the standard library"
    if here == ("examples",):
        return "examples include only public headers (include/stillpoint/)"
    if here[0] != "src":
        return None if there[0] in ("src", here[0], "tests", "bench") else f"{there[0]}/ is not for others"
    if there[0] != "src":
        if source.name.endswith("_test.cpp") and target.parts[:2] == ("tests", "support"):
            return None
        return f"src/ does not depend on {there[0]}/"
    return rejected_layer(layers, here, there)


def rejected_layer(layers, here, there):
    """Whether an include between two places inside src/ is rejected, and why."""
    if here[1] == "nvhooks":
        part = here[2] if len(here) > 2 else ""
        if part == "abi":
            return "nvhooks/abi includes nothing"
        if there == ("src", "nvhooks", "abi"):
            return None
        if part == "pass":
            return "the compiler pass includes only nvhooks/abi"
        return None if there[1] in layers else "unknown layer"
    if there[1] == "nvhooks":
        return None if there == ("src", "nvhooks", "abi") else "only the ABI of nvhooks is for others"
    for place in (here, there):
        if place[1] not in layers:
            return f"src/{place[1]} is not a layer of CMakeLists.txt"
    if layers.index(there[1]) > layers.index(here[1]):
        return f"src/{there[1]} lies above src/{here[1]}"
    if here[1] == "engines" and len(here) > 2 and there[1] == "engines" and len(there) > 2:
        return "an engine never includes another engine: move what both need down"
    return None


def rejected_system_header(source, name):
    place = place_of(source)
    if CPU_HEADER.match(name) and place != ("src", "arch") and place[0] != "bench":
        return "only src/arch knows the CPU"
    if place == ("src", "core") and SYSTEM_HEADER.match(name):
        return "src/core knows no operating system"
    if place == ("src", "nvhooks", "abi"):
        return "nvhooks/abi includes nothing"
    return None


def find_target(root, source, name):
    """The file that an include names, relative to the root, or None."""
    for folder in (root / source.parent, root / "src", root / "include", root / "tests", root):
        candidate = folder / name
        if candidate.is_file():
            try:
                return candidate.resolve().relative_to(root)
            except ValueError:
                return None
    return None


def without_comments(text):
    """The text with block comments blanked, line numbers kept."""
    return BLOCK_COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text)


def check_file(root, layers, source):
    """Yields 'path:line: error: ...' for each broken rule."""
    text = without_comments((root / source).read_text(encoding="utf-8", errors="replace"))
    for found in INCLUDE.finditer(text):
        quote, name = found.groups()
        reason = None
        if quote == "<" and not name.startswith("stillpoint/"):
            reason = rejected_system_header(source, name)
        else:
            target = find_target(root, source, name)
            if target is not None:
                reason = rejected_target(layers, source, target)
        if reason:
            line = text.count("\n", 0, found.start(1)) + 1
            yield f"{source}:{line}: error: include of {name}: {reason}"


def engines_of(root):
    """Names of the engines: the folders of src/engines."""
    folder = root / "src/engines"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def belongs_to(source, engine):
    """Whether the file lies in a folder of that engine, or is a public header of it."""
    if source.parts[:3] == ("src", "engines", engine) or source.parts[:2] == ("layers", engine):
        return True
    if source.parts[0] == "bench" and any(part.startswith(engine) for part in source.parts):
        return True
    text = source.as_posix()
    return text.startswith(f"include/stillpoint/{engine}") or any(
        text.startswith(header) and owner == engine for header, owner in HEADERS_OF_ENGINES.items())


def is_include_of(line, any_header):
    """Whether the line includes a header of all engines, or any header."""
    found = INCLUDE.match(line)
    return found is not None and (any_header or found.group(2) in HEADERS_OF_ALL)


def files_that_may_name(root):
    """Every file that may name no engine, relative to the root."""
    for name in NAMING_FILES:
        if (root / name).is_file():
            yield Path(name)
    for folder in NAMING_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in NAMING_SUFFIXES and path.is_file() and not path.name.endswith("_test.cpp"):
                yield path.relative_to(root)


def exception_for(source):
    """The entry of NAMED_HERE that lets the file name engines, or None."""
    text = source.as_posix()
    return next((entry for entry in NAMED_HERE if text == entry or (entry.endswith("/") and text.startswith(entry))), None)


def names_in(root, source, engines):
    """(line number, engine) of each that is named in the file and is not the file's own."""
    lines = (root / source).read_text(encoding="utf-8", errors="replace").split("\n")
    inside_an_engine = source.parts[:2] == ("src", "engines") and len(source.parts) > 3  # rejected_layer() has its includes
    return [(number, engine) for number, line in enumerate(lines, 1) for engine in engines
            if engine in CITATION.sub("", line).lower() and not belongs_to(source, engine)
            and not is_include_of(line, inside_an_engine)]


def check_names(root, engines):
    """Yields 'path:line: error: ...' for each line that names an engine outside its folder, and for exceptions that are not needed."""
    seen, needed = set(), set()
    for source in files_that_may_name(root):
        entry = exception_for(source)
        named = names_in(root, source, engines)
        if entry is None:
            for number, engine in named:
                yield f"{source}:{number}: error: engine {engine} is named here: only src/engines/{engine} and the registry know it"
        else:
            seen.add(entry)
            needed |= {entry} if named else set()
    for entry in sorted(seen - needed):
        yield f"{entry}:1: error: no engine is named here any more: take it out of NAMED_HERE (check_includes.py)"


def check_tree(root):
    """All broken rules of the tree at `root`, and the number of files looked at."""
    layers = layers_of((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not layers:
        return ["CMakeLists.txt:1: error: no stillpoint_layer() found, so the order is unknown"], 0
    errors, files = list(check_names(root, engines_of(root))), 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                files += 1
                errors.extend(check_file(root, layers, path.relative_to(root)))
    return errors, files


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    arguments = parser.parse_args()
    errors, files = check_tree(arguments.root.resolve())
    for error in errors:
        print(error, file=sys.stderr)
    if not errors and not arguments.quiet:
        print(f"check_includes: {files} files, no include points the wrong way, and no engine is named outside its folder")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
