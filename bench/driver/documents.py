"""Files that a run writes and reads."""

import json
import sys
from pathlib import Path

from .errors import CANNOT_CREATE, BenchError


def write_text(path, text):
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise BenchError(f"{path} cannot be written: {failure.strerror}", CANNOT_CREATE) from None


def write_json(document, path):
    if path == "-":
        json.dump(document, sys.stdout)
        print()
    else:
        write_text(path, json.dumps(document, indent=1) + "\n")


def read_json(path, file_format, version):
    """The result of an earlier run."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise BenchError(f"{path} cannot be read as the JSON file of a run: {failure}") from None
    if not isinstance(document, dict) or document.get("format") != file_format or document.get("format_version") != version:
        raise BenchError(f"{path} is not a result of this version of the benchmark ({file_format}): name another file")
    return document
