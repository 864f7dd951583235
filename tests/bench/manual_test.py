"""stillpoint-bench(1) has the options of the program, no other ones, and its exit codes."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from driver import command_line, errors  # its folder is known from here on

MANUAL = (ROOT / "docs/man/stillpoint-bench.1").read_text(encoding="utf-8").replace("\\-", "-")


class Manual(unittest.TestCase):
    def test_it_has_each_option_and_no_other(self):
        shown = {option for action in command_line.parser()._actions if action.help != command_line.argparse.SUPPRESS
                 for option in action.option_strings}
        described = MANUAL[MANUAL.index(".SH OPTIONS"):MANUAL.index(".SH EXIT STATUS")]
        heads = [line for before, line in zip(described.split("\n"), described.split("\n")[1:]) if before == ".TP"]
        self.assertEqual(shown, {word for head in heads for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", re.sub(r"\\f.", " ", head))})

    def test_it_and_the_page_of_exit_codes_have_each_code(self):
        codes = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
        status = MANUAL[MANUAL.index(".SH EXIT STATUS"):MANUAL.index(".SH EXAMPLES")]
        self.assertEqual(codes - {int(found) for found in re.findall(r"(?:^|; |\n)(\d+) ", status)}, set())
        page = (ROOT / "docs/guide/exit-codes.md").read_text(encoding="utf-8")
        self.assertEqual(codes - {int(found) for found in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}, set())


if __name__ == "__main__":
    unittest.main()
