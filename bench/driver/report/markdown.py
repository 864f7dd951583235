"""A run as a document of the sources: tables as text, plots as files beside it."""

from .. import tables
from . import facts
from .figures_shown import short_of
from .plots import plots_of_cell, plots_of_run, plots_of_workload
from .reading import best_ratio


def safe(text):
    """No markup of its own, whatever a name holds."""
    text = " ".join(str(text).split())
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "&#96;"), ("[", "&#91;"), ("*", "&#42;")):
        text = text.replace(sign, written)
    return text


def table(headings, rows):
    """Cells are text that is safe already. Figures stand to the right: in tables of two columns there are words."""
    lines = [headings, ["---", *["---:" if len(headings) > 2 else "---"] * (len(headings) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


class Document:
    """`stem`: the name of the document's file without its ending; its plots are named after it."""

    def __init__(self, run, stem):
        self.run = run
        self.stem = stem

    def file_of(self, plot):
        return f"{self.stem}-plot-{plot.key}.svg"

    def plots_of(self, workload):
        """Latencies and the kill for one cell in each family; everything across the cells of a workload."""
        cell = self.run.representative(workload)
        first = next(one for one in self.run.cells if one.family == cell.family)
        plots = plots_of_workload(self.run, workload)
        return plots + (plots_of_cell(cell) if first.workload == workload else [])

    def plots(self):
        return plots_of_run(self.run) + [plot for workload in self.run.workloads for plot in self.plots_of(workload)]

    def text(self):
        lines = [f"# {facts.TITLE}", "", facts.SENTENCE,
                 "What the parts cost, each by its own benchmark: [parts.md](parts.md)."]
        lines += [f"\n**{text}**" for text in facts.notices(self.run)]
        lines += ["", *self.bars(), *self.summary(), *self.how(), *self.workloads(), *self.commands()]
        return "\n".join(lines).rstrip() + "\n"

    def bars(self):
        if not self.run.bars:
            return []
        rows = [[safe(text), "met" if is_met else "fell short: " + safe("; ".join(short))]
                for text, is_met, short in facts.verdicts(self.run)]
        return ["## What had to be reached", "", *table(["asked for", "verdict"], rows), ""]

    def summary(self):
        names = self.run.compared
        rows = []
        for cell in self.run.cells:
            row = [safe(cell.title)]
            for name in names:
                value = best_ratio(cell.row(name))
                text = tables.ratio(value)
                row.append(f"**{text}**" if name == cell.best_peer and value is not None else text)
            baseline = cell.best_baseline
            rows.append(row + [tables.short(baseline.number("rate", "median")) if baseline else "-"])
        lines = ["## Summary", "", f"{facts.SUMMARY}, the median of the rounds; the best peer of a line is bold. Last column: what that "
                 "program does in a second.", "", *table(["workload", *map(safe, names), "volatile"], rows), ""]
        return lines + self.pictures(plots_of_run(self.run))

    def pictures(self, plots):
        lines = []
        for plot in plots:
            lines += [f"{safe(plot.title)}. {plot.note}".rstrip(), "", f"![{safe(plot.title)}](figures/{self.file_of(plot)})", ""]
        return lines

    def how(self):
        lines = ["## How it was measured", "", facts.how(self.run),
                 "The bench, its workloads and its engines: [bench](../../../bench/README.md).", ""]
        lines += table(["", ""], [[name, safe(value)] for name, value in facts.machine_facts(self.run)])
        lines.append("")
        for engine, reason, remedy in facts.skipped_lines(self.run):
            lines.append(f"Left out: {safe(engine)}, {safe(reason)}" + (f"; {safe(remedy)}" if remedy else "") + ".")
        return lines + ([""] if self.run.skipped else [])

    def workloads(self):
        lines = ["## Workloads", ""]
        for workload in self.run.workloads:
            lines += [f"### {safe(workload)}", ""]
            for cell in self.run.cells_of(workload):
                figures = short_of(cell.rows)
                if not figures:
                    lines += [f"{safe(cell.parameters)}: nothing was measured.", ""]
                    continue
                rows = [[safe(row.name), *(safe(values[at]) if values[at] is not None else "-" for _, values in figures)]
                        for at, row in enumerate(cell.rows)]
                lines += [f"{safe(cell.parameters)}; /s: {safe(cell.unit)} per second.", "",
                          *table(["configuration", *(label for label, _ in figures)], rows), ""]
            lines += self.pictures(self.plots_of(workload))
        return lines

    def commands(self):
        lines = ["## Commands", "", "What made this page, and makes one like it:", ""]
        lines += ["    " + " ".join(line.split()) for line in facts.commands(self.run)]
        return lines + [f"    stillpoint bench report {facts.data_files(self.run)} --markdown {self.stem}.md"]
