"""Which file is written where."""

import json
from pathlib import Path

from ..documents import write_text
from .markdown import Document
from .palette import Styles
from .reading import RunDocument
from .svg import standalone


def write_report(document, folder):
    """Makes the page of a run; returns its path."""
    from .page import Page  # imports matplotlib, which a document's text does not need

    path = Path(folder) / "index.html"
    write_text(path, Page(RunDocument(document)).html())
    return path


def document_text(document, path):
    """The text of write_document() alone; needs no matplotlib."""
    return Document(RunDocument(document), Path(path).stem).text()


def write_document(document, path):
    """Makes a document of the sources: PATH, its data next to it as .json, its plots in figures/. Returns the path."""
    path = Path(path)
    run = RunDocument(document)
    made = Document(run, path.stem)
    write_text(path, made.text())
    write_text(path.with_suffix(".json"), json.dumps(document, separators=(",", ":")) + "\n")
    draw_plots(path.parent / "figures", f"{path.stem}-plot", made.plots(), run.kinds)
    return path


def draw_plots(folder, stem, plots, kinds=None):
    """Files STEM-KEY.svg; those of plots that an earlier run had are removed. `kinds`: of the configurations, for their colours."""
    from .drawing import drawn

    styles = Styles(kinds or {})
    wanted = {f"{stem}-{plot.key}.svg": plot for plot in plots}
    for name, plot in wanted.items():
        write_text(folder / name, standalone(drawn(plot, styles), plot.title, plot.description))
    for old in folder.glob(f"{stem}-*.svg"):
        if old.name not in wanted:
            old.unlink()
