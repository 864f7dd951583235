"""The report of a run: write_report() makes a page, write_document() a document of the sources with its plots as files."""

from .facts import load_warning
from .files import document_text, draw_plots, write_document, write_report
from .library import make_sure_of_matplotlib

__all__ = ["document_text", "draw_plots", "load_warning", "make_sure_of_matplotlib", "write_document", "write_report"]
