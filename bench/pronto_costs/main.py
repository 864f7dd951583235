"""The command: measures the parts that are asked for, keeps what it has measured, writes the page."""

import dataclasses
import json
import shlex
import signal
import sys
from pathlib import Path

from driver.errors import FELL_SHORT, INTERRUPTED, WRONG_RESULT, BenchError
from driver.progress import Progress
from driver.record import first_line, record
from driver.tables import lines_of
from paired import Tool, ToolError, pool_folders

from . import command_line, document
from .parts import PARTS
from .sides import Place

FORMAT, FORMAT_VERSION = "stillpoint-pronto-bench", 1


@dataclasses.dataclass
class Bench:
    """What a part needs: its options, where processes lie and how they are started, and whom it tells."""

    options: object
    place: Place
    progress: Progress


def read(path, must_be_there):
    path = Path(path)
    if not path.is_file() and not must_be_there:
        return None
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise BenchError(f"{path} cannot be read as an earlier run: {failure}") from None
    if whole.get("format") != FORMAT or whole.get("format_version") != FORMAT_VERSION:
        raise BenchError(f"{path} has no results of this version of bench/pronto_costs.py: name another file")
    return whole


def command_of(options, part):
    words = ["--part", part, "--seconds", f"{options.seconds:g}", "--repeat", str(options.repeat)]
    return "python3 bench/pronto_costs.py " + shlex.join(["--part", part, "--quick"] if options.quick else words)


def measure(options, whole, keep):
    """Adds parts to `whole`, and calls keep() after each. The part that was interrupted is not added."""
    parts = [name for name in PARTS if name in options.part and (options.again or name not in whole["parts"])]
    progress = Progress(options.quiet)
    progress.plan(sum(PARTS[name].steps(options) for name in parts))
    tool = Tool(options.binaries)
    version = first_line([tool.program("stillpoint"), "--version"])
    with pool_folders("pronto-costs") as (disk, shared):
        bench = Bench(options, Place(tool, options.binaries, disk, shared), progress)
        for name in parts:
            command = command_of(options, name)
            facts = record(command, version, None, {"seconds": options.seconds, "repeat": options.repeat, "quick": options.quick})
            whole["parts"][name] = {"command": command, "facts": facts, "result": PARTS[name].measure(bench)}
            keep()
    progress.end()


def tell_bars(found):
    rows = [[bar["text"], document.value_of(bar), "met" if bar["met"] else "missed"] for bar in found if bar["value"] is not None]
    for line in lines_of(["bar", "reached", ""], rows) if rows else []:
        print(line, file=sys.stderr)


def interrupt(*_):
    """SIGTERM ends a run as Ctrl-C does: with what there is, and nothing left behind."""
    raise KeyboardInterrupt


def main(arguments):
    options = command_line.parse(arguments)
    if options.report:
        whole = read(options.report, must_be_there=True)
    else:
        whole = (options.json not in (None, "-") and read(options.json, must_be_there=False)) or {
            "format": FORMAT, "format_version": FORMAT_VERSION, "quick": options.quick, "parts": {}}
        if whole["quick"] != options.quick:
            raise BenchError(f"{options.json} is of a run with{'out' if options.quick else ''} --quick: name another file with --json")

        def keep():
            if options.json and options.json != "-":
                Path(options.json).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")

        signal.signal(signal.SIGTERM, interrupt)
        measure(options, whole, keep)
    text = document.page(whole)
    if options.markdown:
        Path(options.markdown).write_text(text, encoding="utf-8")
    if options.json == "-":
        print(json.dumps(whole))
    elif not options.markdown:
        print(text)
    found = document.bars_of(whole)
    tell_bars(found)
    fell_short = any(not bar["met"] for bar in found if bar["value"] is not None)
    return FELL_SHORT if fell_short and not (options.quick or options.no_bars) else 0


def run(arguments):
    """The command as a whole: its exit code."""
    try:
        return main(arguments)
    except (BenchError, ToolError) as failure:
        print(f"pronto_costs.py: {failure}", file=sys.stderr)
        return getattr(failure, "code", WRONG_RESULT)
    except KeyboardInterrupt:
        print("pronto_costs.py: interrupted; what was measured until then is in the file that --json names", file=sys.stderr)
        return INTERRUPTED
