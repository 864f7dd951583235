"""`stillpoint bench`: see command_line.py for its options."""

import os
import shlex
import sys
from pathlib import Path

from . import bars, command_line, record, report, tables
from .documents import read_json, write_json
from .engines import Installation
from .errors import CANNOT_CREATE, FELL_SHORT, INTERRUPTED, UNAVAILABLE, BenchError, Unavailable, WorkerFailed
from .plan import catalogue, cells_of, configurations_of
from .progress import Progress
from .rounds import CellRun

FORMAT, FORMAT_VERSION = "stillpoint-bench", 1


def installation_of(options):
    """In a build tree, and where it is installed, the command says where its parts are (tools/stillpoint/bench.cpp)."""
    root = Path(__file__).resolve().parent.parent.parent
    binaries = options.binaries or root / "build" / "bin"
    return Installation(binaries, options.command or Path(binaries) / "stillpoint")


def listing(installation):
    """Workloads, engines and peers, and which are here."""
    known, compiler = catalogue(installation)
    return {"workloads": list(known.values()), "compiler": compiler, "engines": [
        {"name": engine.name, "kind": engine.kind, "state": state_of(installation, engine), "sentence": engine.sentence,
         "has_trackers": engine.has_trackers, "has_intervals": engine.has_intervals} for engine in installation.engines]}


def show_list(installation, options):
    listed = listing(installation)
    if options.json:
        write_json(listed, options.json)
        return 0
    for heading, rows in (
            ("Workloads", [[row["name"], row["family"], row["unit"], "mix" if row["mix"] == "mix" else "",
                            "value size" if row["values"] == "sized" else "",
                            "operation size" if row["operations"] != "fixed" else "", row["sentence"]] for row in listed["workloads"]]),
            ("Engines and peers", [[row["name"], row["kind"], row["state"], row["sentence"]] for row in listed["engines"]])):
        print(heading)
        widths = [max(map(len, column)) for column in zip(*rows)][:-1] + [0]  # a sentence needs no blanks after it
        for row in rows:
            print("  " + "  ".join(word.ljust(width) for word, width in zip(row, widths)))
    return 0


def state_of(installation, engine):
    try:
        installation.worker(engine)
        return "here"
    except Unavailable as missing:
        return missing.remedy
    except BenchError as failure:
        return str(failure)


def writable_output(options):
    """A folder that is missing is found before an hour of measuring, not after it."""
    for path in filter(None, (options.json if options.json != "-" else None, options.html, options.markdown)):
        parent = Path(path).resolve().parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise BenchError(f"{path}: {parent} is not a folder that can be written", CANNOT_CREATE)


class Run:
    """Everything that one command measures; what there is can be written at any time."""

    def __init__(self, options, arguments):
        self.options = options
        self.installation = installation_of(options)
        for path in options.peer:
            self.installation.load(path)
        self.known, compiler = catalogue(self.installation)
        self.cells = cells_of(options, self.known)
        self.configurations, self.skipped = configurations_of(options, self.installation)
        self.results = []
        self.failures = []
        self.complete = False
        shown = {name: value for name, value in vars(options).items() if name not in ("bars", "binaries", "command", "action", "file")}
        version = record.first_line([str(self.installation.command), "--version"])
        self.record = record.record(shlex.join(["stillpoint", "bench", *arguments]), version, compiler, shown)

    def measure(self):
        progress = Progress(self.options.quiet)
        progress.plan(len(self.cells))
        for one in self.skipped:
            progress.say(f"skipped: {one['engine']}: {one['reason']}; {one['remedy']}")
        for cell in self.cells:
            progress.step(cell.title)
            running = CellRun(cell, self.configurations, self.options, self.installation, progress)
            try:
                running.run()
            except KeyboardInterrupt:
                self.keep(running.result())
                progress.end()
                return
            self.keep(running.result())
            self.failures += [f"{cell.title}: {failure}" for failure in running.failures]
            if self.options.json != "-":
                self.print_cell(progress)
        progress.end()
        self.complete = True

    def keep(self, result):
        if result is not None:
            self.results.append(result)

    def print_cell(self, progress):
        progress.end()
        cell = self.results[-1]
        print(f"\n{cell['title']} ({cell['unit']})")
        for line in tables.cell_lines(cell):
            print("  " + line)
        sys.stdout.flush()

    def document(self):
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **self.record, "complete": self.complete,
                "skipped": self.skipped, "cells": self.results, "bars": bars.judge(self.options.bars, self.results)}


def write_results(document, options):
    if options.json:
        write_json(document, options.json)
    for path in reports_of(document, options):
        print(f"report: {path}", file=sys.stderr)


def reports_of(document, options):
    """Makes the reports that are asked for; gives the path of each."""
    if options.html:
        yield report.write_report(document, Path(options.html))
    if options.markdown:
        yield report.write_document(document, Path(options.markdown))


def joined(documents):
    """One document of several runs: a cell of a later run takes the place of the same cell of an earlier one, and every command is named."""
    whole = documents[0]
    for document in documents[1:]:
        cells = {cell["title"]: cell for cell in document["cells"]}
        whole["cells"] = [cells.pop(cell["title"], cell) for cell in whole["cells"]] + list(cells.values())
        whole["command"] += "\n" + document["command"]
        whole["bars"] += document["bars"]
        whole["complete"] = whole["complete"] and document["complete"]
    return whole


def make_report(options):
    for path in reports_of(joined([read_json(path, FORMAT, FORMAT_VERSION) for path in options.file]), options):
        print(path)
    return 0


def as_typed(arguments):
    """Without what the command itself puts before a person's words (tools/stillpoint/bench.cpp)."""
    own = ("--binaries", "--command")
    return [word for before, word in zip(["", *arguments], arguments) if word not in own and before not in own
            and not word.startswith(tuple(f"{name}=" for name in own))]


def main(arguments):
    options = command_line.parse(arguments)
    if options.action != "list" and (options.html or options.markdown):
        program = Path(__file__).resolve().parent.parent / "run.py"
        report.make_sure_of_matplotlib("--html" if options.html else "--markdown", program, arguments)
    if options.action == "report":
        return make_report(options)
    writable_output(options)
    if options.action == "list":
        installation = installation_of(options)
        for path in options.peer:
            installation.load(path)
        return show_list(installation, options)
    run = Run(options, as_typed(arguments))
    machine = run.record["machine"]
    if warning := report.load_warning(machine["load_before"], machine["cpus"]):
        print(f"stillpoint bench: warning: {warning}", file=sys.stderr)
    run.measure()
    document = run.document()
    write_results(document, options)
    for line in tables.bar_lines(document["bars"]) if options.json != "-" else []:
        print(line)
    if not run.complete:
        print("stillpoint bench: interrupted: the result is what was measured until then", file=sys.stderr)
        return INTERRUPTED
    if not run.results:
        return UNAVAILABLE
    if run.failures:
        raise WorkerFailed("; ".join(run.failures))
    return 0 if all(bar["met"] for bar in document["bars"]) else FELL_SHORT
