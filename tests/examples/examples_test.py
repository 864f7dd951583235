"""The example programs do what they say, in ordinary memory and under `stillpoint run`.

The expected index is made here a second time, in Python, from the description in examples/word-index/text.hpp.
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

BINARIES = Path(os.environ.get("STILLPOINT_BINARIES", Path(__file__).resolve().parent.parent.parent / "build" / "bin"))
WORD_BYTES_MAX = 200
PIECE = 256 * 1024  # word-index reads in pieces of this size


def expected_dump(folder):
    """The canonical text of the index of `folder`, as examples/word-index/dump.hpp defines it."""
    files = sorted((path.relative_to(folder).as_posix().encode() for path in folder.rglob("*")
                    if path.is_file() and not path.is_symlink()))
    lines, words = [], {}
    for number, name in enumerate(files):
        lines.append(b"file %d done %s\n" % (number, name))
        for line_number, line in enumerate((folder / name.decode()).read_bytes().split(b"\n"), start=1):
            for run in re.findall(rb"[A-Za-z0-9_]+", line):
                if not run[:1].isdigit():
                    posting = words.setdefault(run[:WORD_BYTES_MAX], {}).setdefault(number, [0, line_number])
                    posting[0] += 1
    for word in sorted(words):
        postings = words[word]
        lines.append(b"%s %d" % (word, sum(count for count, _ in postings.values())))
        lines += [b" %d:%d:%d" % (number, *postings[number]) for number in sorted(postings)]
        lines.append(b"\n")
    return b"".join(lines)


class ExampleTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        self.pool = self.folder / "test.pool"

    def run_program(self, name, *arguments, durable=False, expect=0):
        words = [str(BINARIES / name), *map(str, arguments)]
        if durable:
            words = [str(BINARIES / "stillpoint"), "run", "--quiet", "--pool", str(self.pool), "--interval", "5ms",
                     "--durability", "process", "--"] + words
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        output = done.stdout.decode(errors="replace")
        self.assertEqual(done.returncode, expect, output)
        return output


class WordIndex(ExampleTest):
    def make_tree(self):
        tree = self.folder / "tree"
        (tree / "a folder" / "deeper").mkdir(parents=True)
        (tree / "empty").write_bytes(b"")
        (tree / "plain.txt").write_bytes(b"one two two\nthree _x9 9x two\n\none")
        (tree / "a folder" / "binary").write_bytes(bytes(range(256)) * 50)
        (tree / "a folder" / "deeper" / "long").write_bytes(b"w" * 199 + b" " + b"w" * 200 + b"\n" + b"w" * 1000 + b"end 1" + b"d" * 300)
        (tree / "straddles").write_bytes(b"x" * (PIECE - 3) + b" straddle straddle\n" + b" " * (PIECE - 17) + b"y" * (PIECE + 5) + b" z")
        (tree / "crlf").write_bytes(b"a\r\nb\rc\n")
        (tree / "link").symlink_to("plain.txt")
        os.mkfifo(tree / "fifo")
        return tree

    def test_the_index_is_the_one_that_the_description_gives(self):
        tree = self.make_tree()
        self.run_program("word-index", "--threads", 3, "--dump", self.folder / "dump", tree)
        self.assertEqual((self.folder / "dump").read_bytes(), expected_dump(tree))

    def test_the_durable_index_is_the_same_and_stays(self):
        tree = self.make_tree()
        self.run_program("word-index", "--dump", self.folder / "first", tree, durable=True)
        output = self.run_program("word-index", "--dump", self.folder / "second", tree, durable=True)
        self.assertIn("closed normally; 6 of 6 files done, 0 interrupted", output)
        self.assertEqual((self.folder / "first").read_bytes(), expected_dump(tree))
        self.assertEqual((self.folder / "second").read_bytes(), expected_dump(tree))

    def test_a_changed_tree_is_reported_and_the_list_kept(self):
        tree = self.make_tree()
        self.run_program("word-index", tree, durable=True)
        (tree / "new").write_text("new")
        (tree / "crlf").unlink()
        output = self.run_program("word-index", tree, durable=True)
        self.assertIn("warning: 2 files were added, removed or changed", output)
        self.assertIn("done: 6 files", output)

    def test_the_pool_of_another_directory_is_refused(self):
        tree = self.make_tree()
        self.run_program("word-index", tree, durable=True)
        output = self.run_program("word-index", tree / "a folder", durable=True, expect=65)
        self.assertIn("name that directory, or another pool", output)

    def test_an_unreadable_file_counts_as_finished_and_is_named_so(self):
        tree = self.make_tree()
        (tree / "plain.txt").chmod(0)
        if os.access(tree / "plain.txt", os.R_OK):
            self.skipTest("this user reads everything")
        self.assertIn("(1 unreadable)", self.run_program("word-index", tree))

    def test_wrong_arguments_are_refused(self):
        self.run_program("word-index", "--threads", "0", expect=64)
        self.run_program("word-index", "--threads", "2x", expect=64)
        self.run_program("word-index", "a", "b", expect=64)
        self.run_program("word-index", self.folder / "missing", expect=66)

    def test_an_empty_directory_gives_an_empty_index(self):
        tree = self.folder / "nothing"
        tree.mkdir()
        self.run_program("word-index", "--dump", self.folder / "dump", tree)
        self.assertEqual((self.folder / "dump").read_bytes(), b"")


class Bank(ExampleTest):
    def test_the_sum_holds_in_ordinary_memory(self):
        self.assertIn("at the end: sum 10000 of 10000, 5000 transfers, seen by accounts 10000, 0 bad statements",
                      self.run_program("bank", "--accounts", 10, "--transfers", 5000))

    def test_a_second_run_goes_on_where_the_first_ended(self):
        self.run_program("bank", "--accounts", 10, "--transfers", 5000, "--acknowledge", self.folder / "ack", durable=True)
        output = self.run_program("bank", "--transfers", 9000, "--acknowledge", self.folder / "ack", durable=True)
        self.assertIn("pool closed normally; 5000 transfers done", output)
        self.assertIn("at the end: sum 10000 of 10000, 9000 transfers", output)

    def test_an_acknowledged_transfer_that_is_missing_is_noticed(self):
        self.run_program("bank", "--transfers", 100, durable=True)
        (self.folder / "ack").write_text("3 101\n4 999")  # the last line is cut off and does not count
        self.assertIn("LOST: 101", self.run_program("bank", "--acknowledge", self.folder / "ack", durable=True, expect=3))


class SmallExamples(ExampleTest):
    def test_a_durable_global_counts_runs(self):
        for run in range(1, 4):
            self.assertIn(f"run number {run}\n", self.run_program("durable-globals", durable=True))

    def test_the_papers_recovery_finds_its_integer(self):
        self.run_program("nvthreads-recovery", 5, durable=True, expect=-6)
        self.assertIn("recovered 5\nnvthreads-recovery: 10 is durable",
                      self.run_program("nvthreads-recovery", 5, durable=True, expect=-6))


if __name__ == "__main__":
    unittest.main()
