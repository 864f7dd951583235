#!/usr/bin/env python3
"""Checks the style that CONTRIBUTING.md asks for, as far as a program can.

Sources: at most 500 lines a file and 70 a function; at most 140 characters a line; no trailing space, tab
or missing last newline; no words that mark unfinished work; no code in comments; a guard in every header;
no `using namespace` in a header; tests with names that say something; no catch-all folders.
Documents and the paths that comments name: scripts/tidy_documents.py. Words that the prose avoids: scripts/plain_words.py.

Usage: tidy.py [--root DIRECTORY]. Exit code 1 if a rule is broken.
"""

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path

import plain_words
import tidy_documents

LINES_MAX = 500
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 140

C_SUFFIXES = {".h", ".hpp", ".inc", ".c", ".cpp"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
TEXT_NAMES = {"CMakeLists.txt", "Makefile", "run"}
CATCH_ALL_FOLDERS = {"utils", "util", "common", "misc", "helpers", "helper"}

# Written in two parts, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK|not imple" r"mented|place" r"holder)\b|§" r"N\b",
                        re.IGNORECASE)
LINE_COMMENT = re.compile(r"^\s*//(?!/)\s?(.*)$")
CODE_IN_COMMENT = re.compile(
    r"^(\w[\w:.<>\->\[\]]*\(.*\);|[\w:<>*& ]+ [+|&-]?= .*;|(if|for|while|switch) \(.*[{;]|return\b[^.]*;|#include .*|\})$")
TEST_NAME = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
EMPTY_TEST_NAME = re.compile(r"^(Test|Basic|Simple|Works|Case|Smoke)?\d*$")
COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# A message is easier to find unbroken.
LONG_LITERAL = re.compile(r'"[^"]{80,}"')
# A set-uid program's caller commands it by nothing: the library reads variables through os::environment_variable.
ENVIRONMENT_CALL = re.compile(r"\b(secure_)?getenv\(")
READS_ENVIRONMENT = {"environment.cpp", "exec.cpp", "temporary_directory.hpp"}  # the door, execvp's own search, tests
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)


def blank(found):
    """As many lines as what was found, and nothing else."""
    return "\n" * found.group().count("\n")


def bare_code(text):
    """C or C++ without comments, literals and preprocessor lines; line numbers stay."""
    return DIRECTIVE.sub(blank, COMMENT_OR_LITERAL.sub(lambda found: blank(found) or " ", text))


def c_functions(text):
    """(first line, last line) of each function body's definition, found by its braces."""
    code = bare_code(text)
    kinds, starts = [], []
    begin, line, begin_line = 0, 1, None
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        if begin_line is None and not character.isspace() and character not in "{};":
            begin_line = line
        if character == "{":
            head = code[begin:position].strip()
            kinds.append(brace_kind(head, "function" in kinds))
            starts.append(begin_line or line)
        elif character == "}" and kinds:
            start = starts.pop()
            if kinds.pop() == "function":
                yield start, line
        if character in "{};":
            begin, begin_line = position + 1, None


def brace_kind(head, inside_function):
    """The kind of block that an opening brace after `head` begins."""
    if inside_function:
        return "block"
    if re.match(r"(inline\s+)?namespace\b|extern\b[^(]*$", head):
        return "scope"
    if re.match(r"(template\s*<.*>\s*)?(class|struct|union|enum)\b[^()]*$", head, re.DOTALL):
        return "scope"
    return "function" if ")" in head else "scope"


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def check_lines(path, text):
    """Rules for every text file of the project."""
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file"
    if text.endswith("\n\n"):
        yield text.count("\n"), "empty lines at the end of the file"
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            yield number, "trailing space or carriage return"
        if "\t" in line and path.name != "Makefile":
            yield number, "a tab: indent with spaces"
        found = UNFINISHED.search(line)
        if found:
            yield number, f"'{found.group()}' marks unfinished work: finish it, or open an issue"
        if path.suffix not in {".md", ".1", ".inc"} and len(line) > COLUMNS_MAX and not LONG_LITERAL.search(line):
            yield number, f"{len(line)} characters; at most {COLUMNS_MAX}"


def check_sizes(path, text):
    count = text.count("\n")
    if count > LINES_MAX:
        yield 1, f"{count} lines; at most {LINES_MAX}: split the file by concern"
    functions = python_functions(text) if path.suffix == ".py" else c_functions(text) if path.suffix in C_SUFFIXES else ()
    for first, last in functions:
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield first, f"a function of {last - first + 1} lines; at most {FUNCTION_LINES_MAX}"


def is_library_source(path):
    return "src" in path.parts and not path.stem.endswith("_test") and path.name not in READS_ENVIRONMENT


def check_c(path, text):
    """Rules for C and C++ alone."""
    if re.search(r"^[ \t]*#[ \t]*if[ \t]+0\b", text, re.MULTILINE):
        yield 1, "#if 0: delete the code, the history keeps it"
    for number, line in enumerate(text.split("\n"), start=1):
        comment = LINE_COMMENT.match(line)
        if comment and CODE_IN_COMMENT.match(comment.group(1).strip()):
            yield number, "code in a comment: delete it, the history keeps it"
        if ENVIRONMENT_CALL.search(line) and is_library_source(path):
            yield number, "getenv in the library: os::environment_variable obeys no variable in a set-uid program"
        for suite, name in TEST_NAME.findall(line):
            if EMPTY_TEST_NAME.match(name):
                yield number, f"{suite}.{name} does not say what holds: name the test as a sentence"
    if path.suffix == ".hpp" and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield 1, "a header without #pragma once"
    if path.suffix == ".h" and not re.search(r"^#(pragma once|ifndef \w+_H)$", text, re.MULTILINE):
        yield 1, "a header without a guard"
    if path.suffix in {".h", ".hpp"} and re.search(r"^using namespace", text, re.MULTILINE):
        yield 1, "`using namespace` in a header"


def check_source(path, text):
    """Yields (line, message) for one file; `path` is relative to the root."""
    yield from check_lines(path, text)
    if path.suffix not in {".md", ".1"}:
        yield from check_sizes(path, text)
    if path.suffix in C_SUFFIXES:
        yield from check_c(path, text)
    for part in path.parts[:-1]:
        if part in CATCH_ALL_FOLDERS:
            yield 1, f"the folder '{part}' says nothing of what is in it"


def project_files(root):
    """The files of the project, relative to the root: git's where it is a clone, otherwise all but the builds."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.split("\n")
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    paths = [Path(name) for name in names if name and not name.startswith(("build", ".git/"))]
    return sorted(path for path in paths if (root / path).is_file())


def is_text(path):
    return path.suffix in C_SUFFIXES | SCRIPT_SUFFIXES | {".md", ".yaml", ".1"} or path.name in TEXT_NAMES


def check_words(path, text):
    if path.name != "plain_words.py" and path.parts[:2] != ("tests", "scripts"):  # whose texts are examples
        yield from plain_words.check(path, text)


def check_tree(root):
    """All broken rules as 'path:line: error: …', and the number of files."""
    paths = [path for path in project_files(root) if is_text(path)]
    texts = {path: (root / path).read_text(encoding="utf-8", errors="replace") for path in paths}
    findings = []
    for path, text in texts.items():
        findings.extend((path, line, message) for line, message in check_source(path, text))
        findings.extend((path, line, message) for line, message in check_words(path, text))
    findings.extend(tidy_documents.check(root, texts))
    findings.extend(unused_scripts(texts))
    return [f"{path}:{line}: error: {message}" for path, line, message in findings], len(paths)


def unused_scripts(texts):
    """A script that no other file names is dead."""
    for path in texts:
        if path.parts[0] != "scripts":
            continue
        wanted = re.compile(rf"\b{re.escape(path.stem)}\b")
        if not any(wanted.search(text) for other, text in texts.items() if other != path):
            yield path, 1, "no other file names this script: use it or delete it"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    errors, files = check_tree(arguments.root.resolve())
    for error in errors:
        print(error, file=sys.stderr)
    if not errors:
        print(f"tidy: {files} files, nothing to fix")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
