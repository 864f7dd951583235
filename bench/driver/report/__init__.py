"""The report of a run: write_report() makes a page, write_document() a document of the sources with its plots as files."""

from .files import document_text, write_document, write_report
from .library import make_sure_of_matplotlib

__all__ = ["document_text", "make_sure_of_matplotlib", "write_document", "write_report"]
