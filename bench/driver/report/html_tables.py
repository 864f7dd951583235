"""The tables of the page."""

from html import escape

from .. import tables
from . import facts
from .figures_shown import groups_of
from .reading import best_ratio

KINDS = {"volatile": "baseline", "engine": "engine", "peer": "peer"}


def box(label, content):
    """A table wider than the screen is moved in its own box, by keyboard too."""
    return f'<div class="box" role="region" tabindex="0" aria-label="{escape(label)}">\n{content}\n</div>'


def kind_text(kind):
    return f'<span class="unit">{KINDS[kind]}</span>' if kind in KINDS else ""


def summary_table(run, anchors):
    """Workload x configuration: ratios to volatile. `anchors`: workload -> id of its section."""
    names = run.compared
    head = "".join(f'<th scope="col">{escape(name)}{kind_text(run.kind_of(name))}</th>' for name in names)
    parts = [f'<table>\n<caption>{facts.SUMMARY}; the best peer of each line is marked</caption>\n'
             f'<thead><tr><th scope="col">workload</th>{head}<th scope="col">volatile<span class="unit">per second</span></th></tr>'
             "</thead>"]
    for family in run.families:
        parts.append(f'<tbody>\n<tr><th scope="rowgroup" colspan="{len(names) + 2}"><span>{escape(family)}</span></th></tr>')
        parts += [summary_row(cell, names, anchors) for cell in run.cells if cell.family == family]
        parts.append("</tbody>")
    parts.append("</table>")
    return box("Summary: ratios to volatile", "\n".join(parts))


def summary_row(cell, names, anchors):
    columns = "".join(summary_figure(cell.row(name), name == cell.best_peer) for name in names)
    baseline = cell.best_baseline
    speed = tables.short(baseline.number("rate", "median")) if baseline else "-"
    return (f'<tr><th scope="row"><a href="#{anchors[cell.workload]}">{escape(cell.workload)}</a>'
            f'<span class="unit">{escape(cell.parameters)}</span></th>{columns}<td>{speed}</td></tr>')


def summary_figure(row, is_best_peer):
    value = best_ratio(row)
    if value is None:
        return '<td><span aria-label="not measured">–</span></td>'
    best = '<span class="best">best peer</span>' if is_best_peer else ""
    return f'<td class="level-{facts.level_of(value)}">{tables.ratio(value)}{best}</td>'


def level_key():
    items = "".join(f'<li class="level-{level}">{meaning}</li>' for _, level, meaning in facts.LEVELS)
    return f'<ul class="key" aria-label="Colours of the summary">{items}</ul>'


def figure_text(value):
    """Quartiles in a line of their own: a phone is narrow."""
    if value is None:
        return "–"
    figure, bracket, quartiles = value.partition(" (")
    return escape(figure) + (f'<span class="unit">{escape(quartiles.removesuffix(")"))}</span>' if bracket else "")


def cell_table(cell):
    """Figures down, configurations across: there are many more figures. Empty where there is none."""
    groups = groups_of(cell.rows)
    if not groups:
        return ""
    head = "".join(f'<th scope="col">{escape(row.name)}{kind_text(row.kind)}</th>' for row in cell.rows)
    parts = [f'<table>\n<caption>{escape(cell.title)}; /s: {escape(cell.unit)} per second</caption>\n'
             f'<thead><tr><th scope="col">figure</th>{head}</tr></thead>']
    for heading, figures in groups:
        parts.append(f'<tbody>\n<tr><th scope="rowgroup" colspan="{len(cell.rows) + 1}"><span>{escape(heading)}</span></th></tr>')
        for label, values in figures:
            style = ' class="text"' if label == "may lose" else ""
            columns = "".join(f"<td{style}>{figure_text(value)}</td>" for value in values)
            parts.append(f'<tr><th scope="row">{escape(label)}</th>{columns}</tr>')
        parts.append("</tbody>")
    parts.append("</table>")
    return box(f"Figures of {cell.title}", "\n".join(parts))
