"""From matplotlib's SVG to one that fits into a page: no declaration, no address, its own ids, colours as names."""

import re
from html import escape

from .palette import COLOURS, MARKS

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"


def element_of(drawn):
    """<svg>…</svg> without what belongs to a file of its own, as (width, height, content)."""
    found = re.search(r"<svg\b([^>]*)>(.*)</svg>", drawn, re.DOTALL)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', found[1])
    content = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", found[2], flags=re.DOTALL)
    # The drawing's own style sheet would hold for the whole page; the groups inherit the same from the svg element instead.
    content = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", content, flags=re.DOTALL).replace("xlink:href=", "href=")
    content = re.sub(r"\n\s*", "\n", content)
    content = re.sub(r' d="([^"]*)"', lambda found: f' d="{" ".join(found[1].split())}"', content)
    # A hundredth of a pixel is enough; text keeps its digits.
    content = re.sub(r'="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+\b", r"\1", found[0]), content)
    while (fewer := re.sub(r"<g(?:\s[^<>]*)?/>\n?|<g(?:\s[^<>]*)?(?<!/)>\s*</g>\n?", "", content)) != content:
        content = fewer
    content = content.strip()
    return box[1], box[2], content


def with_own_ids(content, prefix):
    """Ids are of the whole page: two plots must not share one."""
    content = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', content)
    content = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', content)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", content)


def without_idle_ids(content):
    """Matplotlib names every group; only what something refers to needs its name."""
    used = set(re.findall(r'href="#([^"]+)"', content)) | set(re.findall(r"url\(#([^)]+)\)", content))
    return re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", content)


def coloured(content, colour_of):
    """`colour_of`: name of a colour -> what stands in the SVG."""
    for name, mark in MARKS.items():
        content = content.replace(mark, colour_of(name))
    return content


def presentable(content, colour_of):
    """Colours as attributes of style, so that they may be var(): a presentation attribute may not; and the page's font."""
    content = re.sub(r'\b(fill|stroke)="(#0101[0-9a-f]{2})"', r'style="\1: \2"', content)
    content = re.sub(r"font: ([\d.]+)px [^;\"]*", rf"font: \1px {FONT}", content)
    return coloured(content, colour_of)


def inline(drawn, prefix, title, description):
    """For a page: as wide as its place, with an accessible name."""
    width, height, content = element_of(drawn)
    content = presentable(with_own_ids(without_idle_ids(content), prefix), lambda name: f"var(--{name})")
    return (f'<svg role="img" stroke-linejoin="round" aria-labelledby="{prefix}-title" aria-describedby="{prefix}-desc" '
            f'viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMid meet">\n<title id="{prefix}-title">{escape(title)}</title>\n'
            f'<desc id="{prefix}-desc">{escape(description)}</desc>\n{content}\n</svg>')


def standalone(drawn, title, description):
    """For a document: a file, in light colours on a ground of its own, so that it can be read wherever it is shown."""
    width, height, content = element_of(drawn)
    content = presentable(without_idle_ids(content), lambda name: COLOURS[name][0])
    scale = 1.3  # forges show a picture at its own size
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" stroke-linejoin="round" viewBox="0 0 {width} {height}" '
            f'width="{float(width) * scale:.0f}" height="{float(height) * scale:.0f}">\n'
            f'<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n'
            f'<rect width="100%" height="100%" fill="{COLOURS["surface"][0]}"/>\n{content}\n</svg>\n')
