#!/usr/bin/env python3
"""Makes the documents into a site with search: build/site/index.html. Nothing is read from a network, neither here nor by a browser.

Usage: site.py [--output build/site]. Needs MkDocs with its theme Material (Debian: mkdocs, mkdocs-material); exit code 69 without them.
MkDocs wants its pages in one folder, so this script copies the Markdown files of the project to build/site-pages, and with them
each file that a page links: a link to a source leads to its text. Any warning of MkDocs ends the run with exit code 1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
ENGINE_GUIDES = [f"guide/{folder.name}.md" for folder in sorted((ROOT / "src/engines").iterdir()) if folder.is_dir()]
SECTIONS = [
    ("Guide", ["guide/tutorial.md", "guide/engines.md", *ENGINE_GUIDES, "guide/guarantees.md", "guide/*.md"]),
    ("Measured", ["measured/performance.md", "measured/reliability.md", "measured/tables/*.md"]),
    ("Internals", ["ARCHITECTURE.md", "trace-of-one-store.md", "internals/*.md"]),
    ("Formats", ["internals/format/*.md"]),
    ("Decisions", ["internals/decisions/*.md"]),
]
SETTINGS = """\
site_name: Stillpoint
site_description: Memory of a multi-threaded program that survives a crash
docs_dir: {pages}
site_dir: {output}
use_directory_urls: false
theme:
  name: material
  font: false
  palette:
    - {{scheme: default, toggle: {{icon: material/weather-night, name: dark}}}}
    - {{scheme: slate, toggle: {{icon: material/weather-sunny, name: light}}}}
  features: [navigation.tabs, navigation.sections, navigation.top, search.highlight]
extra: {{generator: false}}
plugins: [search]
markdown_extensions:
  - tables
  - attr_list
  - toc: {{permalink: true}}
  - pymdownx.highlight: {{anchor_linenums: false}}
  - pymdownx.superfences
nav:
{nav}
"""


def title_of(page):
    return page.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ").replace('"', "'").replace("`", "")


def navigation(pages):
    """MkDocs' nav as YAML lines: the sections' pages in their order, each once; then the READMEs of folders."""
    lines, placed = ["  - Start: index.md", "  - Documents: docs/README.md"], {"index.md", "docs/README.md"}
    for section, patterns in SECTIONS:
        found = [page for pattern in patterns for page in sorted((pages / "docs").glob(pattern))]
        lines.append(f"  - {section}:")
        for page in found:
            name = str(page.relative_to(pages))
            if name not in placed:
                placed.add(name)
                lines.append(f'      - "{title_of(page)}": {name}')
    lines.append("  - Folders:")
    rest = sorted(str(page.relative_to(pages)) for page in pages.rglob("*.md"))
    lines += [f'      - "{title_of(pages / name)}": {name}' for name in rest if name not in placed]
    return "\n".join(lines)


def documents():
    """Not those of build folders, in which tests make and delete folders meanwhile."""
    for folder, names, files in os.walk(ROOT):
        if Path(folder) == ROOT:
            names[:] = [name for name in names if not name.startswith(("build", "."))]
        names[:] = [name for name in names if name != "corpus"]
        yield from (Path(folder) / name for name in files if name.endswith(".md"))


class Pages:
    """The folder that MkDocs reads: every document, and every file that one links."""

    def __init__(self, folder):
        self.folder = folder
        self.documents = {}
        for path in sorted(documents()):
            name = path.relative_to(ROOT)
            self.documents[path] = Path("index.md") if str(name) == "README.md" else name

    def target(self, page, link):
        """The target of a link; files other than documents are copied as text. None: the link is left out."""
        aim = (page.parent / link).resolve()
        if aim.is_dir():
            readme = aim / "README.md"
            if readme in self.documents:
                return self.documents[readme]
            return self.listing(aim)
        if aim in self.documents:
            return self.documents[aim]
        name = aim.relative_to(ROOT)
        if aim.suffix not in {".svg", ".png"}:
            name = name.with_name(name.name + ".txt")
        copy = self.folder / name
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(aim, copy)
        return name

    def listing(self, folder):
        """A text with the names in a folder that has no README."""
        name = folder.relative_to(ROOT) / "FILES.txt"
        text = "\n".join(sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())) + "\n"
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def write(self):
        for page, name in self.documents.items():
            def relink(found, page=page, name=name):
                link = found.group(2)
                if re.match(r"\w+:", link):
                    return found.group()
                return found.group(1) + os.path.relpath(self.target(page, link), name.parent) + found.group(3)

            copy = self.folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(LINK.sub(relink, page.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build/site")
    arguments = parser.parse_args()
    mkdocs = shutil.which("mkdocs")
    if mkdocs is None or not has_material():
        print("site: MkDocs with the theme Material is not installed. On Debian: apt-get install mkdocs mkdocs-material", file=sys.stderr)
        return 69
    output = arguments.output.resolve()
    pages = output.with_name(output.name + "-pages")
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    Pages(pages).write()
    settings = output.with_name(output.name + ".yml")
    settings.write_text(SETTINGS.format(pages=pages, output=output, nav=navigation(pages)), encoding="utf-8")
    words = [mkdocs, "build", "--strict", "--quiet", "--clean", "--config-file", settings]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    warnings = made.stdout + made.stderr
    if made.returncode != 0 or "WARNING" in warnings:
        print(warnings, file=sys.stderr)
        return 1
    print(f"site: {output}/index.html. The search needs a server: python3 -m http.server --directory {output} 8000")
    return 0


def has_material():
    """Debian's package has the theme in a folder, pip's as a module."""
    words = [sys.executable, "-c", "import material"]
    return Path("/usr/share/mkdocs/themes/material").is_dir() or subprocess.run(words, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
