#!/usr/bin/env python3
"""How many lines each patch changes of memcached, counted as Breeze's ports are: a replaced line counts once, and so does one that is new
or gone; comments and empty lines do not count.

    python3 integrations/memcached/changed_lines.py
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT / "bench")]

import debian_source  # noqa: E402  (it lies beside this folder)
from breeze_ports.changed_lines import changed, lines_of_code  # noqa: E402

PATCHES = ("breeze.patch", "durable.patch")


def count(source: pathlib.Path, patch: pathlib.Path) -> dict[str, int]:
    """Changed lines of each file that the patch changes."""
    with tempfile.TemporaryDirectory() as folder:
        names = [line[6:].strip() for line in patch.read_text().splitlines() if line.startswith("+++ b/")]
        for name in names:
            (pathlib.Path(folder) / name).write_bytes((source / name).read_bytes())
        subprocess.run(["patch", "-s", "-p1", "--no-backup-if-mismatch", "-i", patch], cwd=folder, check=True)
        return {name: changed(lines_of_code(source / name), lines_of_code(pathlib.Path(folder) / name)) for name in names}


def main() -> int:
    try:
        source = debian_source.fetch("memcached", ROOT / "build/integrations/sources")
    except debian_source.SourceUnavailable as reason:
        print(f"changed_lines: {reason}", file=sys.stderr)
        return 69
    whole = sum(len(lines_of_code(path)) for path in source.glob("*.[ch]"))
    for name in PATCHES:
        found = count(source, HERE / name)
        total = sum(found.values())
        print(f"{name:<14} {total:>4} of {whole} lines ({total / whole:.1%}): " + ", ".join(f"{file} {n}" for file, n in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
