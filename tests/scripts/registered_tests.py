"""What the CMakeLists under a folder register: names of tests, and the source files of tests. Read from the text, so that it holds without
a build: loops over written lists are written out, globs are followed. A test file that no list names is in neither."""

import re
from pathlib import Path

LOOP = re.compile(r"foreach\((\w+)((?:(?!foreach\()[^)])*)\)((?:(?!foreach\().)*?)endforeach\(\)", re.DOTALL)


def without_comments(text):
    return re.sub(r"(^|\s)#[^\n]*", r"\1", text)


def written_out(text):
    """Loops over written lists, the innermost first, as their bodies one after the other. Those over variables stay, once."""
    found = LOOP.search(text)
    while found:
        variable, words, body = found.groups()
        items = words.replace("\n", " ").split()
        items = items[1:] if items[:1] == ["IN"] else items
        items = ["${" + variable + "}"] if items[:1] in (["LISTS"], ["RANGE"]) else items[items[:1] == ["ITEMS"]:]
        text = text[:found.start()] + "\n".join(body.replace("${" + variable + "}", item) for item in items) + text[found.end():]
        found = LOOP.search(text)
    return text


def without_exclusions(text):
    """What `list(FILTER ... EXCLUDE ...)` leaves out is named, but not registered."""
    return re.sub(r"list\(FILTER \w+ EXCLUDE [^)]*\)", "", text)


class RegisteredTests:
    """`names`: of add_test. `files`: paths that a CMakeLists names, by itself or by a glob."""

    def __init__(self, root, folder="tests"):
        self.names, self.files = set(), set()
        for lists in sorted((root / folder).glob("**/CMakeLists.txt")):
            text = without_exclusions(written_out(without_comments(lists.read_text(encoding="utf8"))))
            self.names.update(re.findall(r"add_test\(\s*NAME (\S+)", text))
            text = text.replace("${CMAKE_CURRENT_SOURCE_DIR}", str(lists.parent)).replace("${CMAKE_SOURCE_DIR}", str(root))
            for word in re.findall(r"[^\s()\";]+\.(?:py|cpp)\b", text):
                self.files.update(self.paths_of(lists.parent, word))
            self.files.update(lists.parent / f"{module}.py" for module in re.findall(r"-m unittest (\w+)", text))

    @staticmethod
    def paths_of(folder, word):
        path = folder / word
        if "*" in path.name:
            return set(path.parent.glob(path.name)) if path.parent.is_dir() else set()
        return {path}

    def has(self, path):
        return Path(path) in self.files
