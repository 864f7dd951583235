#!/usr/bin/env python3
"""Writes docs/guide/options.md, docs/guide/statistics.md and the options in manual pages from the program's own tables, and workloads.md
and memcached.md in docs/measured/tables from their runs.

Usage: generate_docs.py [--check] [--tool build/bin/stillpoint]. With --check nothing is written: exit code 1 if a
document differs from its table. Of runs only the text: plots are drawn by `stillpoint bench report` and `bench/run.py memcached`.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN = '.\\" Options of the runtime: made by `make docs` from their tables; do not edit.\n'
END = '.\\" End of the options of the runtime.\n'


def of_table(tool, table):
    return subprocess.run([tool, "tables", table], capture_output=True, text=True, check=True).stdout


def of_run(name, text_of):
    """docs/NAME.md as the data next to it give it; None before the first run of a release. `text_of`: run, file's stem -> text."""
    run = ROOT / "docs" / f"{name}.json"
    return text_of(json.loads(run.read_text(encoding="utf-8")), run.stem) if run.is_file() else None


def of_manual(tool, page, left_out=()):
    """A manual page with the runtime's options between its two marks, but for `left_out`, which its command does not take."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    entries = re.split(r"^(?=\.TP$|\.SS )", of_table(tool, "manual-options"), flags=re.MULTILINE)
    kept = [one for one in entries if not any(one.startswith(f".TP\n\\fB{flag}\\fR") for flag in left_out)]
    return before + BEGIN + "".join(kept) + END + after


def documents(tool):
    """[(name, text or None)]"""
    sys.path.insert(0, str(ROOT / "bench"))
    from driver.report import document_text  # its folder is not a package of this one; the next is not either
    from memcached.document import text_of

    def page_of(run, name):
        return document_text(run, f"{name}.md")

    return [("guide/options.md", of_table(tool, "options")), ("guide/statistics.md", of_table(tool, "statistics")),
            ("man/stillpoint-run.1", of_manual(tool, "man/stillpoint-run.1")),
            ("man/stillpoint-crashtest.1", of_manual(tool, "man/stillpoint-crashtest.1", left_out=(r"\-\-pool",))),
            ("measured/tables/workloads.md", of_run("measured/tables/workloads", page_of)),
            ("measured/tables/engines.md", of_run("measured/tables/engines", page_of)),
            ("measured/tables/engines-one-thread.md", of_run("measured/tables/engines-one-thread", page_of)),
            ("measured/tables/memcached.md", of_run("measured/tables/memcached", text_of))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--tool", default=str(ROOT / "build/bin/stillpoint"), help="the built command")
    arguments = parser.parse_args()
    outdated = 0
    for name, wanted in documents(arguments.tool):
        document = ROOT / "docs" / name
        if wanted is None or document.is_file() and document.read_text(encoding="utf-8") == wanted:
            continue
        if arguments.check:
            print(f"docs/{name} differs from what it is made of: run `make docs` and commit it", file=sys.stderr)
            outdated += 1
        else:
            document.write_text(wanted, encoding="utf-8")
            print(f"docs/{name} written")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
