"""docs/guarantees.md against the tests. Its last section quotes what the page promises and names tests for it. Every quotation stands in
the page, word for word; every named test exists; and each sentence above is quoted, names its test itself, or is quoted among those
that promise nothing. So a sentence that changes, a test that goes, and a new promise without a test are noticed."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guarantees.md").read_text(encoding="utf8")
HEADING = "## Which test holds which promise\n"
NOTHING = "### What promises nothing\n"
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
    def __init__(self):
        programs = sources("src/**/*_test.cpp") + sources("tests/**/*_test.cpp") + sources("layers/**/*_test.cpp")
        self.cases = {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\)", programs)}
        lists = sources("tests/**/CMakeLists.txt") + sources("CMakeLists.txt")
        self.registered = set(re.findall(r"add_test\(\s*NAME (\S+)", lists))
        for path in ROOT.glob("tests/*/*_test.py"):
            self.registered.add(f"{path.parent.name}.{path.stem}")
            for name in re.findall(r"^    def (test_\w+)", path.read_text(encoding="utf8"), re.MULTILINE):
                self.cases.add(f"{path.parent.name}.{path.stem}:{name}")
        self.campaigns = sources("tests/explorer/*.cpp") + sources("tests/explorer/workloads/*.cpp")

    def has(self, name):
        if name.startswith("explore "):
            return name.removeprefix("explore ").split("/")[-1] in self.campaigns
        if name.startswith("make "):
            return re.search(rf"^{name.removeprefix('make ')}:", (ROOT / "Makefile").read_text(encoding="utf8"), re.MULTILINE) is not None
        return name in self.cases or name in self.registered


class Guarantees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.body, rest = PAGE.split(HEADING)
        promises, nothing = rest.split(NOTHING)
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
        self.assertEqual(missing, [], f"quote these in \"{HEADING[3:-1]}\", each with a test that holds it, or in \"{NOTHING[4:-1]}\"")

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

    def test_a_text_is_cut_into_its_sentences(self):
        self.assertEqual(sentences("- **One.** It holds (`a.b`, 1.5 s). `sp_x` does, too: see below | - not this"),
                         ["- One. It holds (`a.b`, 1.5 s).", "`sp_x` does, too: see below | - not this"])


if __name__ == "__main__":
    unittest.main()
