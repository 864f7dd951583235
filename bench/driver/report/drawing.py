"""Draws the plots of plots.py with matplotlib: as wide as a phone, one unit a CSS pixel, so that text stays readable there."""

import io
import math
import textwrap

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from .palette import MARKS
from .plots import Bars

WIDTH = 340
TEXT = 15
ROW = 24
GAP = 12
LETTER = 0.62 * TEXT  # width of a wide letter's share
INSET = 8  # from the edge of the picture
INK, MUTED, LINE, SURFACE = (MARKS[name] for name in ("ink", "muted", "line", "surface"))
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "stillpoint", "font.size": TEXT, "text.parse_math": False,
            "text.color": INK, "axes.edgecolor": LINE, "axes.labelcolor": INK, "xtick.color": MUTED, "ytick.color": MUTED,
            "axes.spines.top": False, "axes.spines.right": False}


def drawn(plot, styles):
    """The SVG as matplotlib writes it."""
    with rc_context(SETTINGS):
        figure = draw_bars(plot, styles) if isinstance(plot, Bars) else draw_lines(plot, styles)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()


def figure_of(height):
    return Figure(figsize=(WIDTH / 72, height / 72), dpi=72)


def axes_of(figure, height, left, top, right, bottom):
    """Margins in pixels."""
    return figure.add_axes([left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - top - bottom) / height])


def lay_out(plot, name_width):
    """(headings, rows, height): each line of text and each bar with its distance from the top."""
    headings, rows, y = [], [], 0
    for heading, bars in plot.groups:
        for line in textwrap.wrap(heading, int((WIDTH - 2 * INSET) / LETTER)) or [""]:
            headings.append((y + ROW / 2, line))
            y += ROW - 2
        for bar in bars:
            lines = textwrap.wrap(bar.name, max(6, int(name_width / LETTER))) or [bar.name]
            tall = max(ROW, 17 * len(lines) + 4)
            rows.append((y + tall / 2, bar, "\n".join(lines)))
            y += tall
        y += GAP
    return headings, rows, y


def draw_bars(plot, styles):
    longest = max(len(name) for name in plot.names)
    labels = max(len(bar.label) for _, bars in plot.groups for bar in bars)
    left = min(longest * LETTER, 0.38 * WIDTH) + INSET + 8
    right = labels * LETTER + INSET + 4
    headings, rows, height = lay_out(plot, left - INSET - 8)
    figure = figure_of(height)
    axes = axes_of(figure, height, left, 0, right, 0)
    axes.set_ylim(height, 0)
    end, least = set_scale(axes, plot, [bar for _, bar, _ in rows])
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.yaxis.set_major_locator(NullLocator())
    axes.tick_params(bottom=False, labelbottom=False, which="both")
    vertical(axes, least, headings, rows, color=LINE, linewidth=1, clip_on=False)
    for y, bar, name in rows:
        value = min(bar.value, end)
        if value > least:
            axes.barh(y, value - least, left=least, height=15, color=styles.colour(bar.name), linewidth=0)
        if bar.high > bar.low and bar.low < end:
            axes.plot([max(least, bar.low), min(bar.high, end)], [y, y], color=INK, linewidth=1.6, marker="|", markersize=8, clip_on=False)
        axes.annotate(name, (0, y), (-7, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
                      va="center", color=INK, linespacing=1.05)
        axes.annotate(bar.label, (1, y), (right - INSET, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
                      va="center", color=INK)
    for y, line in headings:
        axes.annotate(line, (0, y), (INSET - left, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="left",
                      va="center", color=MUTED)
    if plot.reference is not None:
        vertical(axes, plot.reference, headings, rows, color=INK, linewidth=1.2, linestyle="--")
    return figure


def vertical(axes, x, headings, rows, **style):
    """A line over all bars; it stops at headings, which it would cross."""
    starts = [y for y, _ in headings]
    parts = []
    for (y, _, lines), before in zip(rows, [None, *(row[0] for row in rows)]):
        if before is None or any(before < start < y for start in starts):
            parts.append([])
        half = max(ROW, 17 * (1 + lines.count("\n")) + 4) / 2
        parts[-1] += [y - half, y + half]
    for part in parts:
        axes.plot([x, x], [part[0], part[-1]], **style)


def set_scale(axes, plot, bars):
    """The x axis of bars; returns (its end, its begin)."""
    values = [value for bar in bars for value in (bar.value, bar.high)]
    if plot.is_log:
        positive = [value for value in values if value > 0] or [1]
        end, least = max(positive) * 1.1, min(positive) / 4
        axes.set_xscale("log")
    else:
        end, least = max([*values, (plot.reference or 0) * 1.05, 1e-9]), 0
        if plot.limit:
            end = min(end, plot.limit)
    axes.set_xlim(least, end)
    return end, least


def draw_lines(plot, styles):
    columns = 2 if max(len(name) for name in plot.names) <= 13 else 1
    shown = {name: "\n".join(textwrap.wrap(name, 32)) for name in plot.names}
    legend_rows = -(-sum(1 + text.count("\n") for text in shown.values()) // columns)
    legend_height = 20 * legend_rows + 14
    height = 250 + legend_height
    figure = figure_of(height)
    axes = axes_of(figure, height, 66, 30, 14, 48 + legend_height)
    # Beside each other where they stand at the same place, so that whiskers do not hide one another.
    step = min(0.06, 0.5 / max(1, len(plot.series)))
    for at, (name, points) in enumerate(plot.series):
        shift = (at - (len(plot.series) - 1) / 2) * step
        x = [point[0] + shift for point in points]
        y = [point[1] for point in points]
        colour = styles.colour(name)
        marker = styles.marker(name)
        axes.plot(x, y, color=colour, marker=marker, markersize=10 if marker == "*" else 7, linewidth=1.8, markeredgecolor=SURFACE,
                  markeredgewidth=0.7, label=shown[name])
        axes.vlines(x, [point[2] for point in points], [point[3] for point in points], color=colour, linewidth=1.4)
    if plot.is_log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        decades = math.log10(high / low)
        # Powers of ten alone would leave a short axis with one tick or none.
        axes.yaxis.set_major_locator(LogLocator(numticks=6, subs=(1, 2, 5) if decades < 1.2 else (1, 3) if decades < 2.5 else (1,)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        top = max(value for _, points in plot.series for _, value, _, high in points for value in (value, high))
        axes.set_ylim(0, 1.08 * max(top, plot.reference or 0, 1e-9))
        axes.yaxis.set_major_locator(MaxNLocator(5))
    if plot.reference is not None:
        axes.axhline(plot.reference, color=INK, linewidth=1.2, linestyle="--")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else plot.show(value)))
    axes.xaxis.set_major_locator(FixedLocator(range(len(plot.places))))
    axes.set_xticks(range(len(plot.places)), plot.places)
    axes.set_xlim(-0.4, len(plot.places) - 0.6)
    axes.grid(axis="y", color=LINE, linewidth=0.8, alpha=1)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)
    figure.text(INSET / WIDTH, 1 - 4 / height, plot.y_label, ha="left", va="top", color=MUTED)
    figure.text(1 - 14 / WIDTH, (legend_height + 6) / height, plot.x_label, ha="right", va="bottom", color=MUTED)
    figure.legend(loc="lower left", bbox_to_anchor=(INSET / WIDTH, 6 / height), ncols=columns, frameon=False, borderpad=0.2,
                  labelspacing=0.35, handlelength=1.6, handletextpad=0.5, columnspacing=1.0, borderaxespad=0)
    return figure
