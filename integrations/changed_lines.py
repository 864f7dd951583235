#!/usr/bin/env python3
"""How many lines each patch changes of its program, counted as Breeze's ports are: a replaced line counts once, and so does one that is
new or gone; comments and empty lines do not count.

    python3 integrations/changed_lines.py [memcached] [rrdcached]
"""

import argparse
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.append(str(ROOT / "bench"))

import debian_source  # noqa: E402  (it lies beside this file)
from breeze_ports.changed_lines import changed, lines_of_code  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Program:
    package: str
    patches: tuple[str, ...]
    sources: str  # the files of the program, a glob in the package


PROGRAMS = {"memcached": Program("memcached", ("breeze.patch", "durable.patch"), "*.[ch]"),
            "rrdcached": Program("rrdtool", ("breeze.patch",), "*/rrd_daemon.c")}


def count(source: pathlib.Path, patch: pathlib.Path) -> dict[str, int]:
    """Changed lines of each file that the patch changes."""
    with tempfile.TemporaryDirectory() as folder:
        names = [line[6:].strip() for line in patch.read_text().splitlines() if line.startswith("+++ b/")]
        for name in names:
            copy = pathlib.Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((source / name).read_bytes())
        subprocess.run(["patch", "-s", "-p1", "--no-backup-if-mismatch", "-i", patch], cwd=folder, check=True)
        return {name: changed(lines_of_code(source / name), lines_of_code(pathlib.Path(folder) / name)) for name in names}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS], help="default: all")
    for name in parser.parse_args().programs or PROGRAMS:
        program = PROGRAMS[name]
        try:
            source = debian_source.fetch(program.package, ROOT / "build/integrations/sources")
        except debian_source.SourceUnavailable as reason:
            print(f"changed_lines: {reason}", file=sys.stderr)
            return 69
        whole = sum(len(lines_of_code(path)) for path in source.glob(program.sources))
        for patch in program.patches:
            found = count(source, HERE / name / patch)
            total = sum(found.values())
            print(f"{name}/{patch:<14} {total:>4} of {whole} lines ({total / whole:.1%}): "
                  + ", ".join(f"{file} {lines}" for file, lines in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
