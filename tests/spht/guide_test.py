"""The blocks of docs/guide/spht.md, one after the other, compile without a warning with each compiler that is there."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOOKS = "spht-hooks.h"  # of the blocks that are programs of their own
USES = """
void use_all(bank& all, queue& one, queue& other, std::vector<std::string>& letters)
{
    add(one, "text");
    move_one(one, other);
    withdraw(all, balance(all));
    pay(all, 1, letters);
}
"""


class Guide(unittest.TestCase):
    def compiled(self, words, text):
        for compiler in filter(shutil.which, words[0]):
            done = subprocess.run([compiler, *words[1:], "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only",
                                   f"-I{ROOT / 'include'}", "-"], input=text, capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), compiler)

    def test_its_programs_compile(self):
        page = (ROOT / "docs/guide/spht.md").read_text(encoding="utf-8")
        blocks = {language: re.findall(rf"```{language}\b[^\n]*\n(.*?)```", page, re.DOTALL) for language in ("cpp", "c")}
        plain = {language: [block for block in blocks[language] if HOOKS in block] for language in blocks}
        blocks = {language: [block for block in blocks[language] if HOOKS not in block] for language in blocks}
        self.assertGreaterEqual(len(blocks["cpp"]), 6)
        self.assertEqual([len(plain["c"]), len(plain["cpp"])], [1, 1])
        layer = f"-I{ROOT / 'layers/spht'}"
        self.compiled([("g++", "clang++-19"), "-std=c++20", layer, "-x", "c++"], plain["cpp"][0])
        self.compiled([("gcc", "clang-19"), "-std=gnu11", layer, "-x", "c"], plain["c"][0])
        self.compiled([("g++", "clang++-19"), "-std=c++20", "-x", "c++"], "\n".join(blocks["cpp"]) + USES)
        self.compiled([("gcc", "clang-19"), "-std=c11", "-x", "c"], "\n".join(blocks["c"]))


if __name__ == "__main__":
    unittest.main()
