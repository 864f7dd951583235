"""Bar charts as SVG, drawn with nothing but text: Figures 4.10 and 4.11 of the NVHooks paper with our figures."""

from html import escape

COLOURS = ["#9aa5b1", "#3e6e9e", "#5b9bd5", "#8fbf8f", "#e0a458", "#c0504d"]
BAR = 16
GAP = 26
PLOT_HEIGHT = 180
LEFT = 52
TOP = 34


def panel(title, groups, series, unit, x, y):
    """One chart as SVG elements, and its width. `groups`: [(label, [value for each of `series`, or None])]."""
    top = max([value for _, values in groups for value in values if value is not None] + [1e-9]) * 1.1
    width = LEFT + sum(GAP + BAR * len(series) for _ in groups) + 10
    out = [f'<text x="{x + LEFT}" y="{y + 18}" class="title">{escape(title)}</text>']
    for step in range(5):
        value = top * step / 4
        at = y + TOP + PLOT_HEIGHT * (1 - step / 4)
        out.append(f'<line x1="{x + LEFT}" y1="{at:.1f}" x2="{x + width}" y2="{at:.1f}" class="grid"/>')
        out.append(f'<text x="{x + LEFT - 5}" y="{at + 4:.1f}" class="axis" text-anchor="end">{value:.2g}</text>')
    left = x + LEFT + GAP / 2
    for label, values in groups:
        for index, value in enumerate(values):
            if value is not None:
                height = PLOT_HEIGHT * value / top
                out.append(f'<rect x="{left + BAR * index:.1f}" y="{y + TOP + PLOT_HEIGHT - height:.1f}" width="{BAR - 2}" '
                           f'height="{height:.1f}" fill="{COLOURS[index % len(COLOURS)]}"><title>{escape(series[index])}: '
                           f'{value:.3g} {escape(unit)}</title></rect>')
        middle = left + BAR * len(series) / 2
        out.append(f'<text x="{middle:.1f}" y="{y + TOP + PLOT_HEIGHT + 16}" class="axis" text-anchor="middle">{escape(label)}</text>')
        left += BAR * len(series) + GAP
    return out, width


def draw(path, caption, panels, series, unit):
    """Writes the file. `panels`: rows of [(title, groups)]."""
    body, y, width = [], 30, 0
    for row in panels:
        x = 0
        for title, groups in row:
            elements, used = panel(title, groups, series, unit, x, y)
            body += elements
            x += used + 20
        width = max(width, x)
        y += TOP + PLOT_HEIGHT + 40
    width = max(width, LEFT + sum(30 + 7 * len(name) for name in series), LEFT + 8 * len(caption))
    legend, left = [], LEFT
    for index, name in enumerate(series):
        legend.append(f'<rect x="{left}" y="{y}" width="12" height="12" fill="{COLOURS[index % len(COLOURS)]}"/>')
        legend.append(f'<text x="{left + 16}" y="{y + 10}" class="axis">{escape(name)}</text>')
        left += 30 + 7 * len(name)
    style = ("text{font-family:sans-serif;fill:#222} .title{font-size:13px;font-weight:bold} .axis{font-size:11px} "
             ".grid{stroke:#ccc;stroke-width:0.7}")
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y + 30}">', f"<style>{style}</style>",
             '<rect width="100%" height="100%" fill="white"/>', f'<text x="{LEFT}" y="20" class="title">{escape(caption)}</text>',
             *body, *legend, "</svg>"]
    path.write_text("\n".join(lines) + "\n")
