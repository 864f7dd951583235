#!/usr/bin/env python3
"""Writes docs/options.md and docs/statistics.md from the program's own tables.

Usage: generate_docs.py [--check] [--tool build/bin/stillpoint]. With --check nothing is written: exit code 1 if a
document differs from its table.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--tool", default=str(ROOT / "build/bin/stillpoint"), help="the built command")
    arguments = parser.parse_args()
    outdated = 0
    for table in ("options", "statistics"):
        document = ROOT / "docs" / f"{table}.md"
        wanted = subprocess.run([arguments.tool, "tables", table], capture_output=True, text=True, check=True).stdout
        if document.is_file() and document.read_text(encoding="utf-8") == wanted:
            continue
        if arguments.check:
            print(f"docs/{table}.md differs from its table: run `make docs` and commit it", file=sys.stderr)
            outdated += 1
        else:
            document.write_text(wanted, encoding="utf-8")
            print(f"docs/{table}.md written")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
