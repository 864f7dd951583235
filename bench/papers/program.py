"""The figures and tables of the papers: measured, shown, checked."""

import sys

from driver import benchmark, command_line
from driver.documents import read_json, write_json, write_text
from driver.errors import BenchError

from . import nvhooks, nvthreads, page, pmthreads, probe, pronto, respct, rows, runs, spht

PAPERS = {module.PAPER.key: module.PAPER for module in (pmthreads, respct, pronto, nvhooks, nvthreads, spht)}


def parse(arguments):
    made = benchmark.parser("papers", "The figures and tables of the papers on this machine, with the papers' numbers next to ours.",
                            seconds=1.5, repeat=5)
    made.add_argument("--paper", action="append", choices=PAPERS, help="only the figures of this one; several times")
    made.add_argument("--figure", action="append", metavar="N", help="only this figure or table (4a, \"table 3\"); several times")
    made.add_argument("--medium", choices=["file", "memory", "dax"], default="file", help="medium of the folder named by --pool")
    made.add_argument("--pool", metavar="DIR", help="folder of the pools (default: shared memory)")
    made.add_argument("--from", metavar="FILE", dest="saved", help="measure nothing: make the figures of an earlier --json FILE")
    made.add_argument("--resume", action="store_true", help="with --from: measure what is not in FILE, or failed there")
    made.add_argument("--markdown", metavar="FILE", help="write the page")
    made.add_argument("--check", action="store_true", help="measure nothing: show that every run's workload, engine and options are known")
    return made.parse_args(arguments)


def made_from(figure, measurements, known):
    """(figure, rows, remarks, commands)."""
    if figure.why_not:
        return figure, [], [], []
    commands = [run.command(words) for run in figure.runs if not run.why_not_here(known) for _, words in run.commands(known.engines_here)]
    shown, remarks = rows.rows_of(figure, measurements, known)
    return figure, shown, remarks, list(dict.fromkeys(commands))


def planned(papers, numbers, known):
    return [words for paper in papers for figure in paper.chosen(numbers) for run in figure.runs
            if not run.why_not_here(known) for _, words in run.commands(known.engines_here)]


def check(papers, numbers, known):
    """Every run is one that the bench takes, or is marked: (faults, {mark: figures that it is in})."""
    faults, marked = [], {}
    for paper in papers:
        for figure in paper.chosen(numbers):
            for run in figure.runs:
                if run.why_not_here(known):
                    marked.setdefault(f"{run.workload}: {run.why_not_here(known)}", []).append(figure.number)
                for system in run.systems:
                    reason = run.why_without(system, known)
                    if reason is not None:
                        marked.setdefault(f"{system.name}: {reason}", []).append(figure.number)
                engines = list(dict.fromkeys(system.engine for system in run.systems if system.engine))
                for _, words in run.commands(engines) if not run.by_program else []:
                    try:
                        command_line.parse([*words, "--json", "-"])
                    except BenchError as failure:
                        faults.append(f"{paper.key}, {figure.number}: {failure}")
    return faults, marked


def run_check(papers, options):
    known = runs.catalogue(options.binaries)
    faults, marked = check(papers, options.figure, known)
    for mark, figures in marked.items():
        print(f"marked: {mark} ({', '.join(dict.fromkeys(figures))})")
    for line in faults:
        print(f"wrong: {line}", file=sys.stderr)
    count = sum(len(paper.chosen(options.figure)) for paper in papers)
    print(f"{count} figures and tables; {len(marked)} marks; {len(faults)} faults")
    return 1 if faults else 0


def run(papers, options):
    if options.check:
        return run_check(papers, options)
    known = runs.catalogue(options.binaries)
    saved = read_json(options.saved, runs.FORMAT, runs.FORMAT_VERSION)["measurements"] if options.saved else None
    measurements = runs.Measurements(options, saved, only_saved=saved is not None and not options.resume)
    measurements.plan(planned(papers, options.figure, known))
    measurements.note("bandwidths", lambda: probe.bandwidths(options.pool))
    lines = [page.introduction(papers[0].key if len(papers) == 1 else None), page.conditions(measurements), ""]
    results = {}
    for paper in papers:
        figures = []
        print(f"{paper.title}\n  {paper.machine}\n")
        for figure in paper.chosen(options.figure):
            figures.append(made_from(figure, measurements, known))
            print("\n".join(page.text_of(*figures[-1][:3])), flush=True)
            results[paper.key] = [page.as_json(*parts) for parts in figures]
            if options.json:  # after each figure: an interruption loses at most the one that was being measured
                write_json({"format": runs.FORMAT, "format_version": runs.FORMAT_VERSION, "measurements": measurements.document,
                            "papers": results}, options.json)
        lines += page.paper_markdown(paper, figures)
    print(page.conditions(measurements))
    if options.markdown:
        write_text(options.markdown, "\n".join(lines).rstrip() + "\n")
    return 0


def main(_module, _name, arguments):
    options = parse(arguments)
    return run([PAPERS[key] for key in options.paper or PAPERS], options)
