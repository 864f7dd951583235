"""The hunks that docs/guide/porting.md shows are lines of the patches."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("memcached/durable.patch", "kyotocabinet/durable.patch", "kyotocabinet/kcpool.h")


def bare(line):
    """Without indentation and without the sign that a patch puts before it."""
    return line.strip().lstrip("+-").strip()


class PortingGuide(unittest.TestCase):
    def test_each_line_of_its_hunks_is_in_a_patch(self):
        there = {bare(line) for name in SOURCES for line in (ROOT / "integrations" / name).read_text().splitlines()}
        blocks = re.findall(r"```c(?:pp)?\n(.*?)```", (ROOT / "docs/guide/porting.md").read_text(), re.DOTALL)
        self.assertGreater(len(blocks), 10)
        shown = {bare(line) for block in blocks for line in block.splitlines()} - {"", "..."}
        self.assertEqual(sorted(shown - there), [])


if __name__ == "__main__":
    unittest.main()
