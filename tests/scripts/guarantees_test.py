"""docs/guide/guarantees.md against the tests. guarantees-tests.md quotes what the page promises and names tests for it. Every quotation
stands in the page, word for word; every named test is one that runs; and each sentence of the page is quoted, names its test itself, or
is quoted among those that promise nothing. So a sentence that changes, a test that goes, and a new promise without a test are noticed."""

import re
import tempfile
import unittest
from pathlib import Path

from registered_tests import RegisteredTests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guide/guarantees.md"
LIST = ROOT / "docs/internals/guarantees-tests.md"
NOTHING = "## What promises nothing\n"
NAMES_ITS_TEST = re.compile(r"_test(\.py)?\b|\btests?/|\(?tests? `|same test|`\w+\.[A-Z]\w+`")


def plain(text):
    """Without marks of emphasis and links, and with one blank between words."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[*]", "", text).split())


def blocks(text):
    """Paragraphs, list items and rows of tables, without headings, heads of tables and code."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found, current = [], []
    lines = text.splitlines()
    for at, line in enumerate([*lines, ""]):
        begins = re.match(r"\s*$|#|\||- ", line)
        if begins and current:
            found.append(plain(" ".join(current)))
            current = []
        is_head = line.startswith("|") and at + 1 < len(lines) and re.match(r"\|[-| ]+$", lines[at + 1])
        if line.strip() and not line.startswith("#") and not re.match(r"\|[-| ]+$", line) and not is_head:
            current.append(line.strip())
    return found


def sentences(block):
    """A label, such as "Locks.", belongs to the sentence after it."""
    found = []
    for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`(\[-])", plain(block)):
        if found and len(found[-1].split()) <= 3:
            found[-1] += " " + part
        else:
            found.append(part)
    return found


def rows_of(text):
    return [tuple(cell.strip() for cell in row.split(" | ")) for row in re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
            if not re.match(r"[-| ]+$", row)][1:]


def sources(pattern):
    return "\n".join(path.read_text(encoding="utf8") for path in sorted(ROOT.glob(pattern)))


class KnownTests:
    """Tests that are run: those in files that a CMakeLists names, and the names that are registered."""

    def __init__(self, root=ROOT):
        self.root = root
        tests = RegisteredTests(root)
        self.registered = set(tests.names)
        # src and layers find their tests by the CMakeLists at the top.
        files = [*root.glob("src/**/*_test.cpp"), *root.glob("layers/**/*_test.cpp"),
                 *(path for path in root.glob("tests/**/*_test.cpp") if tests.has(path))]
        programs = "\n".join(path.read_text(encoding="utf8") for path in sorted(files))
        self.cases = {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\)", programs)}
        found = [*root.glob("tests/**/*_test.py"), *root.glob("tests/**/*_test.cpp")]
        self.unregistered = [path for path in sorted(found) if not tests.has(path)]
        for path in root.glob("tests/*/*_test.py"):
            if tests.has(path):
                self.registered.add(f"{path.parent.name}.{path.stem}")
                for name in re.findall(r"^    def (test_\w+)", path.read_text(encoding="utf8"), re.MULTILINE):
                    self.cases.add(f"{path.parent.name}.{path.stem}:{name}")
        self.campaigns = sources("tests/explorer/*.cpp") + sources("tests/explorer/workloads/*.cpp")

    def has(self, name):
        if name.startswith("explore "):
            return name.removeprefix("explore ").split("/")[-1] in self.campaigns
        if name.startswith("make "):
            makefile = (self.root / "Makefile").read_text(encoding="utf8")
            return re.search(rf"^{name.removeprefix('make ')}:", makefile, re.MULTILINE) is not None
        return name in self.cases or name in self.registered


class Guarantees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.body = PAGE.read_text(encoding="utf8")
        promises, nothing = LIST.read_text(encoding="utf8").split(NOTHING)
        cls.promises = rows_of(promises)
        cls.nothing = rows_of(nothing)
        cls.known = KnownTests()

    def test_every_named_test_exists(self):
        self.assertGreater(len(self.promises), 50)
        for quotation, tests in self.promises:
            names = re.findall(r"`([^`]+)`", tests)
            self.assertTrue(names, quotation)
            for name in names:
                self.assertTrue(self.known.has(name), f"there is no test {name}, named for \"{quotation}\"")

    def test_every_quotation_stands_in_the_page(self):
        body = plain(self.body)
        for quotation in [row[0] for row in self.promises + self.nothing]:
            self.assertIn(plain(quotation), body, "the page does not say this any more: quote what it says, and see that the tests hold that")

    def test_every_sentence_is_quoted_or_names_its_test(self):
        quotations = [plain(row[0]) for row in self.promises + self.nothing]
        missing = [sentence for block in blocks(self.body) for sentence in sentences(block)
                   if not NAMES_ITS_TEST.search(sentence) and not any(quotation in sentence for quotation in quotations)]
        self.assertEqual(missing, [], f"quote these in {LIST.name}, each with a test that holds it, or in \"{NOTHING[3:-1]}\"")

    def test_every_quotation_is_of_one_sentence(self):
        """One that stands in several would cover a sentence that nobody has read."""
        body = [sentence for block in blocks(self.body) for sentence in sentences(block)]
        for quotation, _ in self.promises + self.nothing:
            self.assertEqual(sum(plain(quotation) in sentence for sentence in body), 1, quotation)

    def test_the_tests_that_the_text_names_exist(self):
        text = plain(self.body)
        groups = re.findall(r"\((?:tests? )?((?:`[^`]+`(?:, | and )?)+)\)", text)
        names = [name for group in groups for name in re.findall(r"`([^`]+)`", group)]
        for name in [name for name in names if re.fullmatch(r"(?!vm\.)[a-z]+\.[a-z_]+|[A-Z]\w+\.[A-Z]\w+", name)]:
            self.assertTrue(self.known.has(name) or self.known.has(name + "_test"), name)
        files = {path.name for path in ROOT.glob("tests/*/*_test.py")}
        self.assertLessEqual(set(re.findall(r"\w+_test\.py", text)), files)

    def test_every_file_of_tests_is_registered(self):
        self.assertEqual([str(path.relative_to(ROOT)) for path in self.known.unregistered], [], "no CMakeLists names these: they never run")

    def test_a_text_is_cut_into_its_sentences(self):
        self.assertEqual(sentences("- **One.** It holds (`a.b`, 1.5 s). `sp_x` does, too: see below | - not this"),
                         ["- One. It holds (`a.b`, 1.5 s).", "`sp_x` does, too: see below | - not this"])


class WhatIsRegistered(unittest.TestCase):
    """The check of the names above, on a folder of its own."""

    def known(self, lists):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        place = self.root / "tests/part"
        place.mkdir(parents=True)
        for name in ("first_test.py", "second_test.py"):
            (place / name).write_text("class Case(unittest.TestCase):\n    def test_it_holds(self):\n        pass\n", encoding="utf8")
        (place / "third_test.cpp").write_text("TEST(Third, Holds) {}\n", encoding="utf8")
        (place / "CMakeLists.txt").write_text(lists, encoding="utf8")
        return KnownTests(self.root)

    def names_of_unregistered(self, known):
        return [path.name for path in known.unregistered]

    def test_a_file_that_no_list_names_is_unknown(self):
        known = self.known("foreach(name first)\n"
                           "    add_test(NAME part.${name} COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/${name}_test.py)\n"
                           "endforeach()\n# second_test.py and third_test.cpp stand in a comment only.\n")
        for name in ("part.first", "part.first_test", "part.first_test:test_it_holds"):
            self.assertTrue(known.has(name), name)
        for name in ("part.second", "part.second_test", "part.second_test:test_it_holds", "Third.Holds"):
            self.assertFalse(known.has(name), name)
        self.assertEqual(self.names_of_unregistered(known), ["second_test.py", "third_test.cpp"])

    def test_globs_names_and_modules_are_followed(self):
        for lists in ("file(GLOB all ${CMAKE_CURRENT_SOURCE_DIR}/*_test.py)\nadd_executable(c third_test.cpp)\n",
                      "add_test(NAME a COMMAND python3 -m unittest first_test)\n"
                      "add_test(NAME b COMMAND p ${CMAKE_SOURCE_DIR}/tests/part/second_test.py)\n"
                      "file(GLOB c ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)\n"):
            known = self.known(lists)
            self.assertEqual(self.names_of_unregistered(known), [], lists)
            self.assertTrue(known.has("Third.Holds") and known.has("part.second_test:test_it_holds"), lists)

    def test_what_is_filtered_out_is_not_named_by_that(self):
        known = self.known('list(FILTER tests EXCLUDE REGEX "first_test.py")\n'
                           "file(GLOB all ${CMAKE_CURRENT_SOURCE_DIR}/s*_test.py *.cpp)\n")
        self.assertEqual(self.names_of_unregistered(known), ["first_test.py"])

    def test_loops_in_loops_are_written_out(self):
        known = self.known("foreach(a x y)\nforeach(b IN ITEMS 1 2)\nadd_test(NAME ${a}.${b} COMMAND c)\nendforeach()\nendforeach()\n")
        for name in ("x.1", "x.2", "y.1", "y.2"):
            self.assertTrue(known.has(name), name)


if __name__ == "__main__":
    unittest.main()
