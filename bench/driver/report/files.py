"""What is written where."""

import json
from pathlib import Path

from ..errors import CANNOT_CREATE, BenchError
from .markdown import Document
from .palette import Styles
from .reading import RunDocument
from .svg import standalone


def write(path, text):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise BenchError(f"{path} cannot be written: {failure.strerror}", CANNOT_CREATE) from None


def write_report(document, folder):
    """Makes the page of a run; returns its path."""
    from .page import Page  # imports matplotlib, which a document's text does not need

    path = Path(folder) / "index.html"
    write(path, Page(RunDocument(document)).html())
    return path


def document_text(document, path):
    """The text of write_document() alone; needs no matplotlib."""
    return Document(RunDocument(document), Path(path).stem).text()


def write_document(document, path):
    """Makes a document of the sources: PATH, its data beside it as .json, its plots in figures/. Returns the path."""
    from .drawing import drawn

    path = Path(path)
    run = RunDocument(document)
    made = Document(run, path.stem)
    write(path, made.text())
    write(path.with_suffix(".json"), json.dumps(document, separators=(",", ":")) + "\n")
    styles = Styles(run)
    folder = path.parent / "figures"
    wanted = {made.file_of(plot): plot for plot in made.plots()}
    for name, plot in wanted.items():
        write(folder / name, standalone(drawn(plot, styles), plot.title, plot.description))
    for old in folder.glob(f"{path.stem}-plot-*.svg"):
        if old.name not in wanted:
            old.unlink()
    return path
