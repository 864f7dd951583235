"""How many lines a durable source has changed, against the volatile one: a replaced line counts once, and so does one that is new or gone.
Comments and empty lines do not count."""

import difflib
import re


def lines_of_code(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    return [line.strip() for line in text.splitlines() if line.strip()]


def changed(before, after):
    """How many, between two lists of lines."""
    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(old_end - old, new_end - new) for what, old, old_end, new, new_end in steps if what != "equal")


def count(volatile, *durable):
    """(lines of the volatile source, lines changed by each other)."""
    before = lines_of_code(volatile)
    return len(before), [changed(before, lines_of_code(path)) for path in durable]
