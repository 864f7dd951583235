"""The blocks of docs/guide/pronto.md, one after the other, compile without a warning with each compiler that is there."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
USES = """
void use_all()
{
    count_visits("page");
    auto& values = pronto::get_object<durable_vector<int>>("values");
    values.push_back(1);
    values.clear();
    account_of("ann").pay_in(100);
    pronto::get_object<Pages>("pages").add("page");
    pronto::get_object<Counters>("counters").add("one", 1);
    pronto::get_object<Names>("names").add("name");
    static_cast<void>(pronto::get_object<Tickets>("tickets").take(1) + pronto::get_object<Tickets>("tickets").next());
    copy_counters();
    static_assert(std::string_view(pronto::name_of<Money>) == "money");
}
"""


class Guide(unittest.TestCase):
    def test_its_program_compiles(self):
        blocks = re.findall(r"```cpp[^\n]*\n(.*?)```", (ROOT / "docs/guide/pronto.md").read_text(encoding="utf-8"), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 6)
        for compiler in filter(shutil.which, ("g++", "clang++-19")):
            words = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only",
                     f"-I{ROOT / 'include'}", "-x", "c++", "-"]
            done = subprocess.run(words, input="\n".join(blocks) + USES, capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), compiler)


if __name__ == "__main__":
    unittest.main()
