"""The commands that README.md and the pages of docs/guide show: each runs and ends with code 0, or NOT_RUN has the reason why not.

A page is one script in a folder of its own, which looks like a built clone: its fenced blocks are taken in their order. A block with
a title (```c title="notes.c") becomes a file. In a block `sh` each line is a command; in a block `console` each line that begins
with "$ ", and the lines below it are what the command prints. NOT_RUN holds no line that no page shows.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("STILLPOINT_BUILD", ROOT / "build")).resolve()
BLOCK = re.compile(r'^ *```(\w+)(?: title="([^"]+)")?\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (?:\$ )?((?:build/bin/)?stillpoint(?:-cc|-c\+\+)? .*|make\b.*|python3 .*|g\+\+ .*|cc .*|ctest .*)$", re.MULTILINE)
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs/guide").glob("*.md"))]

# Commands that are not run here, by their beginning, and why.
NOT_RUN = {
    "make demo": "builds; tests/kill runs the same kills",
    "make test": "runs this test",
    "make install PREFIX=$HOME/stillpoint": "done once for all pages",
    "make uninstall PREFIX=$HOME/stillpoint": "other pages need it; tests/install removes an installation",
    "make packages": "tests/install makes them",
    "make build-bench": "make test-all has built it",
    "pip install ./bindings/python": "downloads; tests/bindings builds the package",
    "stillpoint run --pool visits.pool -- python3 visits.py": "tests/bindings runs the program with the package",
    "stillpoint bench --workload": "measures for minutes; tests/bench runs the bench",
    "stillpoint cc --runtime=undo -O2 -c tree.c": "any file of the reader's",
    "stillpoint cc --runtime=./bad.yaml": "shows an error in a file that the page does not show whole; tests/nvhooks has its like",
    "stillpoint c++ --lint -g1 ...": "the reader's program",
    "stillpoint crashtest --kills 100 --check './ledger": "Kyoto Cabinet's ledger: make kyotocabinet-kills",
    "g++ -std=c++20 -g transfer.cpp": "shows an error of a program that the page does not show; tests/respct has its like",
    "stillpoint run --engine=respct --pool t.pool": "the same program",
    "stillpoint c++ --runtime=respct -std=c++20 -g power.cpp": "another such program",
    "stillpoint lint -- ./power": "the same program",
}


CLANG_IS_MISSING = shutil.which("clang-19") is None or not list((BUILD / "lib").glob("libstillpoint-nvhooks-*.so"))


def commands_of(body, language):
    """[(command, expected output or None)] of one block."""
    if language == "sh":
        return [(line, None) for line in body.split("\n") if line.strip()]
    found = []
    for line in body.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return [(command, "\n".join(lines) if lines else None) for command, lines in found]


def bare(command):
    """Without the remark at its end."""
    return re.sub(r"\s+#\s.*$", "", command).strip()


class Page:
    """One page's folder and the commands that run in it, one after the other, in one shell."""

    def __init__(self, folder, home):
        self.folder, self.home = folder, home
        for entry in ROOT.iterdir():
            if entry.name not in {"build", ".git"} and not entry.name.startswith("build"):
                (folder / entry.name).symlink_to(entry)
        (folder / "build").symlink_to(BUILD)
        self.exports = []

    def run(self, command):
        if command.startswith("export "):
            self.exports.append(command)
        script = "\n".join([*self.exports, command])
        installed = self.home / "stillpoint"
        environment = {**os.environ, "HOME": str(self.home), "PATH": f"{installed / 'bin'}:{os.environ['PATH']}",
                       "PKG_CONFIG_PATH": str(installed / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(installed / "lib")}
        environment.pop("LD_PRELOAD", None)
        return subprocess.run(["bash", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=120, check=False)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(dir=BUILD)
        cls.addClassCleanup(cls.home.cleanup)
        words = ["cmake", "--install", str(BUILD), "--prefix", str(Path(cls.home.name) / "stillpoint")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    def reason(self, command):
        found = [begin for begin in NOT_RUN if command.startswith(begin)]
        self.seen.update(found)
        needs_clang = re.match(r"stillpoint (cc|c\+\+|lint)\b|.*-lint\b|.*--tracker=hooks|.* -- \./accounts", command)
        return bool(found) or CLANG_IS_MISSING and bool(needs_clang)

    def run_page(self, name):
        text = (ROOT / name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            page = Page(Path(folder), Path(self.home.name))
            for language, title, body in BLOCK.findall(text):
                if title:
                    (page.folder / title).write_text(body, encoding="utf-8")
                elif language in {"sh", "console"}:
                    for command, printed in commands_of(body, language):
                        self.run_command(page, name, bare(command), printed)

    def run_command(self, page, name, command, printed):
        if self.reason(command):
            return
        with self.subTest(page=name, command=command):
            done = page.run(command)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            if printed is not None:
                self.assertEqual(done.stdout.rstrip("\n"), printed)

    def test_each_page(self):
        self.seen = set()
        for name in PAGES:
            self.run_page(name)
            for command in INDENTED.findall((ROOT / name).read_text(encoding="utf-8")):
                self.assertTrue(self.reason(bare(command)), f"{name} shows `{bare(command)}` in a block that no test runs: make it ```sh")
        self.assertEqual(set(NOT_RUN) - self.seen, set(), "no page shows these any more")


if __name__ == "__main__":
    unittest.main()
