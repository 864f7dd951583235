#!/usr/bin/env python3
"""How many lines of a store know of durability: in the source for NVHooks, and in the one annotated by hand.

NVHooks: lines of code that name an operation of the layer (durable_...); without them the source is volatile. By hand: lines of
code of the annotated source that the other has not (difflib). Comments and empty lines do not count.
"""

import difflib
import re
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent


def lines_of_code(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return [line.strip() for line in text.splitlines() if line.strip()]


def count(store):
    """Lines of code and changed lines of both sources."""
    plain = lines_of_code(SOURCES / f"{store}.c")
    by_hand = lines_of_code(SOURCES / f"{store}_pmdk.c")
    changed = sum(line.startswith("+ ") for line in difflib.ndiff(plain, by_hand))
    return {"store": store, "lines": len(plain), "nvhooks": sum("durable_" in line or "DURABLE_" in line for line in plain),
            "lines_by_hand": len(by_hand), "by_hand": changed}


def main():
    for store in ("hash_map", "btree"):
        facts = count(store)
        print(f"{store}: NVHooks {facts['nvhooks']} of {facts['lines']} lines; by hand {facts['by_hand']} of {facts['lines_by_hand']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
