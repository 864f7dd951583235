"""Figures as text for a terminal and as Markdown for docs/measured/tables/papers.md."""

from driver.report.markdown import table
from driver.tables import lines_of

from . import rows


def count_words(figure, count):
    return f"{count} {figure.counted}{'s' if count > 1 else ''}"


def headings(figure):
    return ["what", "system", "the paper", *(f"here, {count_words(figure, count)}" for count in (1, 2)),
            *(f"at {count_words(figure, count)}" for count in figure.modelled_threads)]


def cells(figure, row):
    ours = [row.ours.get(threads, "") for threads in (1, 2)]
    if row.note:
        ours[0] = f"{ours[0]} ({row.note})" if ours[0] else row.note
    modelled = [row.modelled.get(threads, "") for threads in figure.modelled_threads]
    return [row.what, row.system, row.paper, *ours, *modelled]


def general(figure, shown):
    """The stated numbers that no row has."""
    taken = [row.facts for row in shown]
    return [one for one in figure.stated if not any(one.belongs_to(facts) for facts in taken)]


def sentence(text):
    return text if text.endswith(".") else text + "."


def statement(one):
    return f"{one.value}: {one.of} ({one.where})"


def text_of(figure, shown, remarks):
    lines = [f"{figure.number}. {figure.title}", f"  The paper measured: {figure.measured}"]
    lines += [f"  The paper states {statement(one)}" for one in general(figure, shown)]
    if not figure.stated:
        lines.append("  The paper states no number.")
    if figure.why_not:
        return [*lines, f"  Not reproduced: {figure.why_not}", ""]
    lines += [f"  Figures here: {figure.reading.heading}."]
    lines += ["    " + line for line in lines_of(headings(figure), [cells(figure, row) for row in shown])]
    lines += [f"  {remark}" for remark in remarks]
    lines += [f"  Beside the paper: {sentence(figure.outcome)}"] if figure.outcome else []
    return [*lines, f"  What differs: {sentence(figure.differs)}", ""]


def escaped(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def markdown_of(figure, shown, remarks, commands):
    lines = [f"### {figure.number}. {escaped(figure.title)}", "", f"The paper measured: {sentence(escaped(figure.measured))}", ""]
    unmatched = general(figure, shown)
    if unmatched:
        lines += ["The paper states:", "", *(f"- {escaped(statement(one))}" for one in unmatched), ""]
    if not figure.stated:
        lines += ["The paper states no number.", ""]
    if figure.why_not:
        return [*lines, f"**Not reproduced:** {sentence(escaped(figure.why_not))}", ""]
    if shown:
        rows_shown = [[escaped(word) for word in cells(figure, row)] for row in shown]
        lines += [f"Figures here: {escaped(figure.reading.heading)}.", "", *table(headings(figure), rows_shown), ""]
    for remark in remarks:
        lines += [f"Left out, {escaped(remark)}.", ""]
    if figure.outcome:
        lines += [f"Beside the paper: {sentence(escaped(figure.outcome))}", ""]
    lines += [f"What differs: {sentence(escaped(figure.differs))}", ""]
    if commands:
        lines += ["Made by:", "", *(f"    {command}" for command in commands), ""]
    return lines


INTRODUCTION = """\
# The papers' figures, measured here

This page is generated: `python3 bench/run.py papers{choice} --markdown {page}`. Each figure and table of
the papers stands here with the numbers that its text states, what the same work gives on this machine with one and two
threads, and, where the paper had more cores, what [a model](../../internals/scaling-model.md) makes of our figures for its
number of threads. A figure in a plot that no sentence, caption or table
states is not guessed at: "no number". A model's figure is marked as one; after it stands how far the same model was off at two threads.
More than 20 % makes it "not trustworthy", and so does a machine whose cores other programs had for more than a tenth of the time. Other
machines, other media, other processors: ratios can be compared, rates cannot.
"""


SLOW_LOAD = 0.8  # an average for each CPU; what built the programs just before counts too


def introduction(paper=None):
    """`paper`: the key of the only one on the page; None: all are."""
    folder = "docs/measured/tables/"
    return INTRODUCTION.format(choice=f" --paper {paper}" if paper else "", page=folder + (f"papers-{paper}.md" if paper else "papers.md"))


def conditions(measurements):
    """How this page's figures came about."""
    document = measurements.document
    lines = [f"Measured {document['began']} on {document['cpus']} processors, load average {document['load_before']:.1f} when it began"]
    if document["load_before"] > SLOW_LOAD * document["cpus"]:
        lines[0] += ": other work ran at the same time, so single figures are off by 20 % and more"
    lines[0] += "."
    if document.get("seconds"):
        lines.append(f"Each configuration was measured for {document['seconds']:g} s or more, in at least {document['repeat']} rounds.")
    bandwidths = document.get("bandwidths")
    if bandwidths:
        lines.append(f"Copies in memory: {bandwidths['copy_bytes_per_s'] / 1e9:.1f} GB/s; writes to the medium "
                     f"({bandwidths['medium_folder']}): {bandwidths['medium_bytes_per_s'] / 1e9:.1f} GB/s.")
    if document["quick"]:
        lines.append("This was a quick run (`--quick`: small inputs, slices of 30 ms): it shows that everything works and measures nothing.")
    return " ".join(lines)


def paper_markdown(paper, figures):
    """`figures`: [(figure, rows, remarks, commands)]."""
    lines = [f"## {escaped(paper.title)}", "", f"Its machine: {sentence(escaped(paper.machine))}", ""]
    for parts in figures:
        lines += markdown_of(*parts)
    if paper.beyond:
        lines += ["### Stated outside of figures and tables", "", *(f"- {escaped(statement(one))}" for one in paper.beyond), ""]
    return lines


def as_json(figure, shown, remarks, commands):
    return {"number": figure.number, "title": figure.title, "measured": figure.measured, "why_not": figure.why_not,
            "differs": figure.differs, "stated": [{"value": one.value, "of": one.of, "where": one.where} for one in figure.stated],
            "rows": [{"what": row.what, "system": row.system, "paper": None if row.paper == rows.NO_NUMBER else row.paper,
                      "ours": row.ours, "values": row.values, "model": row.modelled, "model_error_at_two": row.error_at_two,
                      "note": row.note} for row in shown],
            "remarks": remarks, "commands": commands}
