"""The report: one page that needs no network, no other file and no script."""

from html import escape

from . import facts, svg
from .drawing import drawn
from .html_tables import cell_table, level_key, summary_table
from .palette import Styles
from .plots import key_of, plots_of_cell, plots_of_run, plots_of_workload
from .style import SHEET

THEMES = """<fieldset class="theme"><legend>Colours:</legend>
<label><input type="radio" name="theme" id="theme-system" checked>as the system</label>
<label><input type="radio" name="theme" id="theme-light">light</label>
<label><input type="radio" name="theme" id="theme-dark">dark</label></fieldset>"""


class Page:
    def __init__(self, run):
        self.run = run
        self.styles = Styles(run.kinds)
        self.figures = 0
        self.anchors = {workload: f"w{at}-{key_of(workload)}" for at, workload in enumerate(run.workloads, start=1)}

    def html(self):
        title = escape(facts.TITLE)
        return ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
                '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
                f"<title>{title} – stillpoint bench</title>\n<style>\n{SHEET}\n</style>\n</head>\n<body>\n"
                f'<header>\n<h1>{title}</h1>\n<p class="lead">{escape(facts.SENTENCE)}</p>\n{self.notices()}{THEMES}\n</header>\n'
                f"<main>\n{self.verdicts()}{self.summary()}\n{self.workloads()}\n{self.made()}\n</main>\n"
                "<footer><p>Made by <code>stillpoint bench</code>.</p></footer>\n</body>\n</html>\n")

    def notices(self):
        notices = facts.notices(self.run) + ([] if self.run.cells else ["Nothing was measured."])
        return "".join(f'<p class="notice" role="note"><strong>{escape(text)}</strong></p>\n' for text in notices)

    def verdicts(self):
        if not self.run.bars:
            return ""
        items = []
        for text, is_met, short in facts.verdicts(self.run):
            verdict = '<span class="met">✓ met</span>' if is_met else '<span class="missed">✗ fell short</span>'
            details = "" if is_met else "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in short) + "</ul>"
            items.append(f"<li>{verdict} <code>{escape(text)}</code>{details}</li>")
        return '<h2 id="bars">What had to be reached</h2>\n<ul class="bars">' + "\n".join(items) + "</ul>\n"

    def summary(self):
        if not self.run.cells:
            return ""
        return (f'<h2 id="summary">Summary</h2>\n{summary_table(self.run, self.anchors)}\n{level_key()}\n'
                f"{self.plots(plots_of_run(self.run))}")

    def plots(self, plots):
        if not plots:
            return ""
        figures = []
        for plot in plots:
            self.figures += 1
            note = f"<small>{escape(plot.note)}</small>" if plot.note else ""
            picture = svg.inline(drawn(plot, self.styles), f"p{self.figures}", plot.title, plot.description)
            figures.append(f"<figure>\n<figcaption>{escape(plot.title)}{note}</figcaption>\n{picture}\n</figure>")
        return '<div class="plots">\n' + "\n".join(figures) + "\n</div>"

    def workloads(self):
        if not self.run.cells:
            return ""
        links = "".join(f'<li><a href="#{self.anchors[name]}">{escape(name)}</a></li>' for name in self.run.workloads)
        parts = [f'<h2 id="workloads">Workloads</h2>\n<nav aria-label="Workloads"><ul>{links}</ul></nav>']
        for workload in self.run.workloads:
            cells = self.run.cells_of(workload)
            parts.append(f'<section aria-labelledby="{self.anchors[workload]}">\n<h3 id="{self.anchors[workload]}">{escape(workload)}</h3>')
            parts.append(self.plots(plots_of_workload(self.run, workload)) if len(cells) > 1 else "")
            parts += [self.cell(cell, at == 0, len(cells) > 1) for at, cell in enumerate(cells)]
            parts.append("</section>")
        return "\n".join(parts)

    def cell(self, cell, is_open, is_one_of_many):
        left_out = f'<p class="muted">Cannot do this workload: {escape("; ".join(cell.left_out))}.</p>\n' if cell.left_out else ""
        figures = cell_table(cell) or "<p>Nothing was measured here.</p>"
        content = f"{figures}\n{left_out}{self.plots(plots_of_cell(cell))}"
        if not is_one_of_many:
            return content
        opened = " open" if is_open else ""
        return f"<details{opened}><summary>{escape(cell.parameters)}</summary>\n{content}\n</details>"

    def made(self):
        run = self.run
        parts = [f'<h2 id="how">How it was measured</h2>\n<p>{escape(facts.how(run))}</p>\n<h3>Machine and program</h3>\n'
                 f"{definitions(facts.machine_facts(run))}"]
        if options := facts.option_facts(run):
            parts.append(f"<h3>Options</h3>\n{definitions(options)}")
        if run.skipped:
            items = "".join(f"<li><strong>{escape(engine)}</strong>: {escape(reason)}"
                            + (f'<pre><code>{escape(remedy)}</code></pre>' if remedy else "") + "</li>"
                            for engine, reason, remedy in facts.skipped_lines(run))
            parts.append(f"<h3>Left out</h3>\n<ul>{items}</ul>")
        lines = "\n".join(escape(line) for line in facts.commands(run))
        parts.append('<h3 id="commands">Commands</h3>\n<p>A tap or click selects all of them.</p>\n'
                     f'<pre tabindex="0"><code>{lines}</code></pre>')
        return "\n".join(parts)


def definitions(pairs):
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs) + "</dl>"
