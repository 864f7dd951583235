"""Words and turns that the project's prose avoids, in documents, man pages, comments, docstrings and messages. Used by tidy.py.

A rule is a pattern, what to write in its place, and the phrases in which the word is right. A comment also says what it is about:
it does not begin with a pronoun, with "What", "Else" or "Of".
"""

import io
import re
import tokenize

RULES = [
    (re.compile(r"\b[Bb]ehind\b"), "'after' for time and order; 'behind' is for caches, devices and what hides something",
     re.compile(r"\b(left|leaves?|lags?|fall|fell|stays?|stayed|far|keeps?|kept|stands?) (\w+ ){0,2}behind"
                r"|behind (the )?(a |an |our |Stillpoint's |ours\b|virtio|volatile|sockets|pointers|program's back|interposer's back|shims"
                r"|descriptor|intercepted|same calls|virtual disk|backslash|reader-writer|Figure|figures|scenes|interposed|memory)"
                r"|(shims|handlers?|functions?|file|figures|descriptors?|cache|everything|memory|server|libc) behind"
                r"|put another file behind|behind one reader|the block behind|\[.behind.\]"
                r"|\"behind\b|(::|- )behind\b|what is behind|each leaves behind|nothing (is )?(left )?behind|no process is left behind", re.IGNORECASE)),
    (re.compile(r"\banew\b", re.IGNORECASE), "'again'", None),
    (re.compile(r"\bmend(s|ed|ing)?\b", re.IGNORECASE), "'fix' or 'repair'", None),
    (re.compile(r"\b(to|can|could|may|might|cannot|not) be had\b", re.IGNORECASE), "'is available', 'can be allocated', 'exists'", None),
    (re.compile(r"\boftener\b", re.IGNORECASE), "'more often'", None),
    (re.compile(r"\b(at|from|since) the begin\b(?!ning)", re.IGNORECASE), "'beginning'", None),
    (re.compile(r"\btowards? (a |the )?(crash|crashes|threads|other threads)\b", re.IGNORECASE), "'with respect to'", None),
    (re.compile(r"(?:^|[.:;] )Of which\b"), "a sentence with its subject first", None),
    (re.compile(r"\b(whereof|thereof|whence|hitherto|lest|nought|for want of)\b", re.IGNORECASE), "the common word", None),
    (re.compile(r"\bthat is there already\b", re.IGNORECASE), "'existing'", None),
    (re.compile(r"\b(takes?|took|taken|taking) (it |them |that |bytes |memory )?back\b", re.IGNORECASE), "'roll back', or 'withdraw'",
     re.compile(r"(release|calls?|returned|undo\(\)|lock) takes (one|it) back|is taken back", re.IGNORECASE)),
    (re.compile(r"\bfor ever\b", re.IGNORECASE), "'forever'", None),
    (re.compile(r"\b(is|are|was|were|be|been|being) (not |never )?looked at\b", re.IGNORECASE), "'examined', 'checked' or 'read'", None),
    (re.compile(r"\b(whither|thither|hither|wherein|whereby|wherefrom|therein|therewith|henceforth|forthwith|aught)\b", re.IGNORECASE),
     "the common word", None),
    (re.compile(r"\b(afresh|mistakable|somewhat of)\b", re.IGNORECASE), "'again', or the common word", None),
    (re.compile(r"[.;:] (Were|Had) (it|they|the|that|this)\b"), "'if', with the subject first", None),
    (re.compile(r"\bof its own making\b", re.IGNORECASE), "'of its own'", None),
    (re.compile(r"\bmixture\b", re.IGNORECASE), "'mix'", None),
    (re.compile(r"\b(one|ones|two) and the other(s)? of which\b", re.IGNORECASE), "two sentences", None),
]
# Where files are not clean yet: a rule of the second list is not held there.
NOT_YET = re.compile(r"tests/programs/|docs/measured/reliability\.md$")
RULES_OF_CLEAN_FILES = [
    (re.compile(r"(?<=[\w`)'\",] )(is|are|was|were|be) no\s+(?!(longer|more|less|later|older|newer|earlier|sooner|other|use)\b)(?=[a-z`])"),
     "'is not a', 'is not'", re.compile(r"\bthere (\w+ ){0,2}(is|are|was|were|be) no \w+", re.IGNORECASE)),
    (re.compile(r"\b(somebody|nobody|anybody|everybody|someone|anyone|everyone|whoever|whom)\b", re.IGNORECASE),
     "the thread, process, program or user that is meant", None),
    (re.compile(r"\bwho\b", re.IGNORECASE), "'which thread', 'the process that'; 'who' is for people",
     re.compile(r"\b(users?|people|person|programmers?|readers?|authors?|contributors?|customers?) who\b", re.IGNORECASE)),
]
BEGINS_WITHOUT_SUBJECT = re.compile(r"(It|Its|The same|Of|Of which|What|Those|Else|Whose|Nor)\b(?! course)")

C_PROSE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
SHELL_PROSE = re.compile(r"(?:^|\s)#[^\n]*|\"[^\"\n]*\"", re.MULTILINE)
FENCE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
C_COMMENT_MARK = re.compile(r"///?<?|/\*+<?|\*/|^\s*\*(?!/)", re.MULTILINE)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def prose_of(path, text):
    """[(offset, prose, whether it is a comment)] of a file."""
    if path.suffix == ".md":
        return [(0, FENCE.sub(lambda found: blank(found.group()), text), False)]
    if re.fullmatch(r"\.\d", path.suffix):
        return [(0, text, False)]
    if path.suffix in {".h", ".hpp", ".inc", ".c", ".cpp"}:
        return [(found.start(), found.group(), found.group().startswith("/")) for found in C_PROSE.finditer(text)]
    if path.suffix == ".py":
        return list(python_prose(text))
    return [(found.start(), found.group(), found.group().lstrip().startswith("#")) for found in SHELL_PROSE.finditer(text)]


def python_prose(text):
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            is_comment = token.type == tokenize.COMMENT or token.string.startswith('"""')
            yield starts[token.start[0] - 1] + token.start[1], token.string, is_comment


def is_allowed(allowed, prose, found):
    """Whether the words around a finding are one of the phrases in which it is right."""
    if allowed is None:
        return False
    begin = max(0, found.start() - 40)
    near = re.sub(r"\s+(//[/<]*|\*|#)?\s*", " ", prose[begin:found.end() + 40])
    return any(one.start() <= near.find(found.group(), max(0, near.find(found.group()))) < one.end() for one in allowed.finditer(near))


def check(path, text):
    """Yields (line, message) for one file."""
    before_end = -1
    rules = RULES if NOT_YET.match(path.as_posix()) else RULES + RULES_OF_CLEAN_FILES
    for offset, prose, is_comment in prose_of(path, text):
        if re.fullmatch(r"[\"']?\w*[\"']?:?", prose):  # a name, not a sentence
            continue
        for pattern, instead, allowed in rules:
            for found in pattern.finditer(prose):
                if not is_allowed(allowed, prose, found):
                    yield text.count("\n", 0, offset + found.start()) + 1, f"'{found.group().strip()}': write {instead}"
        goes_on = before_end >= 0 and not text[before_end:offset].strip() and text[before_end:offset].count("\n") < 2
        if is_comment and not goes_on:
            begin = prose.lstrip("/*<#\"! ")
            found = BEGINS_WITHOUT_SUBJECT.match(begin)
            if found:
                yield text.count("\n", 0, offset) + 1, f"a comment that begins with '{found.group(1)}': begin with what it is about"
        before_end = offset + len(prose) if is_comment else -1
