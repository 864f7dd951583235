"""Rules for documents, and for the paths that documents and comments name. Used by tidy.py.

A Markdown file has one title, in its first line; its relative links and anchors lead somewhere; and a path of this
project that a document or a comment names exists.
"""

import re

README_LINES_MAX = 150
CHANGE_ROWS_MAX = 30
FOLDERS = "src|include|tools|tests|scripts|docs|bench|examples|cmake|fuzz|layers|integrations"
NAMED_PATH = re.compile(rf"(?<![\w/.$~<}}\-])(?:{FOLDERS})/[\w./*<>{{}}\-…]+")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^(#+)\s+(.*)$")
COMMENT = re.compile(r"//.*$|/\*.*?\*/|#.*$", re.MULTILINE | re.DOTALL)
# A part of a name that stands for many: nothing to look up.
VARIABLE = re.compile(r"[*<>{}…]|NAME|\b[XP]\b|/X_")


def anchor_of(heading):
    """The anchor that a heading gets on the usual forges."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def outside_fences(text):
    """(line number, line) of what is not in a fenced block."""
    fence = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("```"):
            fence = not fence
        elif not fence:
            yield number, line


def check_titles(path, text):
    lines = list(outside_fences(text))
    titles = [number for number, line in lines if line.startswith("# ")]
    if titles != [1]:
        yield path, titles[1] if len(titles) > 1 else 1, "a document has exactly one title, in its first line"


def check_links(root, path, text, texts):
    for number, line in outside_fences(text):
        for target in LINK.findall(line):
            if re.match(r"\w+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (root / path.parent / name).resolve() if name else root / path
            if not file.exists():
                yield path, number, f"the link to {target} leads nowhere"
            elif anchor and file.suffix == ".md":
                aim = texts.get(file.relative_to(root), "")
                anchors = {anchor_of(found.group(2)) for _, one in outside_fences(aim) if (found := HEADING.match(one))}
                if anchor not in anchors:
                    yield path, number, f"{name or path} has no heading for #{anchor}"


def check_lengths(path, text):
    """Pages that a newcomer reads first stay short."""
    if str(path) == "README.md" and text.count("\n") > README_LINES_MAX:
        yield path, 1, f"{text.count(chr(10))} lines; at most {README_LINES_MAX}: move details to docs/guide"
    if str(path) == "docs/ARCHITECTURE.md" and "## Where do I change" in text:
        rows = len(re.findall(r"^\| ", text.split("## Where do I change")[1].split("\n## ")[0], re.MULTILINE)) - 1
        if rows > CHANGE_ROWS_MAX:
            yield path, 1, f"{rows} rows say where to change what; at most {CHANGE_ROWS_MAX}: use the README of the folder"


def exists(root, path, name):
    """Whether `name` is there, from the root or from the file that names it, as it is or as a stem."""
    for base in (root, root / path.parent):
        candidate = base / name
        if candidate.exists():
            return True
        if candidate.parent.is_dir() and not candidate.suffix and any(candidate.parent.glob(candidate.name + ".*")):
            return True
    return False


def check_named_paths(root, path, text):
    if path.suffix == ".md":
        pieces = [(0, text)]
    elif path.suffix == ".1":
        pieces = [(0, text.replace("\\-", "-"))]
    else:
        pieces = [(found.start(), found.group()) for found in COMMENT.finditer(text)]
    for offset, piece in pieces:
        for found in NAMED_PATH.finditer(piece):
            name = found.group().rstrip("./-")
            if not VARIABLE.search(name) and not exists(root, path, name):
                line = text.count("\n", 0, offset + found.start()) + 1
                yield path, line, f"names {name}, which does not exist"


def check(root, texts):
    """Yields (path, line, message); `texts` maps each text file, relative to the root, to its text."""
    for path, text in texts.items():
        if path.suffix == ".md":
            yield from check_titles(path, text)
            yield from check_lengths(path, text)
            yield from check_links(root, path, text, texts)
        if path.parts[:2] != ("tests", "scripts"):  # whose texts are examples
            yield from check_named_paths(root, path, text)
