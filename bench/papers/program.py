"""The command of each paper's program: measure, print, check."""

import argparse
import json
import shlex
import sys
from pathlib import Path

import page
import probe
import rows
import runs

FOLDER = Path(__file__).resolve().parent


def parser(description):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--figure", action="append", metavar="N", help="only this figure or table (4a, \"table 3\"); several times")
    made.add_argument("--quick", action="store_true", help="small inputs, slices of 30 ms: shows that it works, measures nothing")
    made.add_argument("--seconds", type=float, default=1.5, metavar="S", help="time of each configuration in each cell (default 1.5)")
    made.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds, at least (default 5)")
    made.add_argument("--medium", choices=["file", "memory", "dax"], default="file", help="medium of the folder named by --pool")
    made.add_argument("--pool", metavar="DIR", help="folder of the pools (default: shared memory)")
    made.add_argument("--json", metavar="FILE", help="write what was measured and the figures made of it")
    made.add_argument("--from", metavar="FILE", dest="saved", help="measure nothing: make the figures of an earlier --json FILE")
    made.add_argument("--resume", action="store_true", help="with --from: measure what is not in FILE, or failed there")
    made.add_argument("--markdown", metavar="FILE", help="write the page")
    made.add_argument("--check", action="store_true", help="measure nothing: show that every run's workload, engine and options are known")
    made.add_argument("--binaries", default=str(runs.ROOT / "build" / "bin"), help="folder of the build's programs (default build/bin)")
    made.add_argument("--quiet", action="store_true", help="no progress")
    return made


def made_from(figure, measurements, known):
    """(figure, rows, remarks, commands)."""
    if figure.why_not:
        return figure, [], [], []
    commands = [shlex.join(words) for run in figure.runs if not run.why_not_here(known)
                for _, words in run.commands(known.engines_here)]
    shown, remarks = rows.rows_of(figure, measurements, known)
    return figure, shown, remarks, [run_command(command) for command in dict.fromkeys(commands)]


def run_command(arguments):
    return arguments if arguments.startswith("python3") else f"stillpoint bench {arguments}"


def planned(papers, numbers, known):
    return [words for paper in papers for figure in paper.chosen(numbers) for run in figure.runs
            if not run.why_not_here(known) for _, words in run.commands(known.engines_here)]


def check(papers, numbers, known):
    """Every run is one that the bench takes, or is marked: (faults, {mark: figures that it is in})."""
    sys.path.insert(0, str(runs.ROOT / "bench"))
    from driver import command_line, errors

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
                    except errors.BenchError as failure:
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
    saved = runs.load(options.saved)["measurements"] if options.saved else None
    measurements = runs.Measurements(options, saved, only_saved=saved is not None and not options.resume)
    measurements.plan(planned(papers, options.figure, known))
    measurements.note("bandwidths", lambda: probe.bandwidths(options.pool))
    lines = [page.INTRODUCTION, page.conditions(measurements), ""]
    results = {}
    for paper in papers:
        figures = []
        print(f"{paper.title}\n  {paper.machine}\n")
        for figure in paper.chosen(options.figure):
            figures.append(made_from(figure, measurements, known))
            print("\n".join(page.text_of(*figures[-1][:3])), flush=True)
            results[paper.key] = [page.as_json(*parts) for parts in figures]
            if options.json:  # after each figure: an interruption loses at most the one that was being measured
                Path(options.json).write_text(json.dumps({"format": runs.FORMAT, "format_version": runs.FORMAT_VERSION,
                                                          "measurements": measurements.document, "papers": results}, indent=1) + "\n")
        lines += page.paper_markdown(paper, figures)
    print(page.conditions(measurements))
    if options.markdown:
        Path(options.markdown).write_text("\n".join(lines).rstrip() + "\n")
    return 0


def main(papers, description, arguments=None):
    options = parser(description).parse_args(arguments)
    try:
        return run(papers, options)
    except (runs.PapersError, ValueError) as failure:
        print(f"{Path(sys.argv[0]).name}: {failure}", file=sys.stderr)
        return 64
    except KeyboardInterrupt:
        print(f"{Path(sys.argv[0]).name}: interrupted; --from the JSON file with --resume goes on", file=sys.stderr)
        return 130
