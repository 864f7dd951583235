"""A page made of parts: each is measured once, kept in a JSON file, and has a section of the page. What had to be reached is told on
standard error: a reader of the page wants figures.

A part is a module or an object with TITLE and SAYS, steps(options), measure(bench) -> result, lines(result) -> Markdown, and
bars(result) -> what verdict() gives.
"""

import dataclasses
import os
import shlex
import sys
from pathlib import Path

from .benchmark import bench_of, parser
from .build import can_be_made
from .documents import read_json, write_json, write_text
from .errors import FELL_SHORT, BenchError
from .record import first_line, record
from .report.markdown import safe
from .subruns import bench_document
from .tables import duration, lines_of

FORMAT_VERSION = 2
SLICE_S, ROUNDS_OF_RUNS = 3, 5  # of runs of `stillpoint bench`: engines are judged by nothing shorter
GLUE = Path(__file__).resolve().parents[1] / "peer"
SLOW_LOAD = 0.5  # an average, for each CPU, that says that other work ran

EXAMPLES = """\
examples:
  python3 bench/run.py {name} --json build/{name}.json --markdown {document}    everything, on an idle machine
  python3 bench/run.py {name} --part {part} --json build/{name}.json --again    one part again, the others as they are in the file
  python3 bench/run.py {name} --quick                                           does it work; measures nothing
  python3 bench/run.py {name} --report build/{name}.json --markdown {document}  the page of an earlier run

parts:
{parts}

Pools of the medium memory lie in /dev/shm, those of the medium file below the build's folder.
Exit codes: 0 success; 1 a bar fell short; 64 wrong usage; 69 not available here; 70 a measured process failed;
  130 interrupted: what was measured until then is in the file that --json names.
"""


@dataclasses.dataclass(frozen=True)
class Page:
    name: str  # of the benchmark
    document: str  # where its page lies
    description: str
    introduction: str
    parts: dict
    seconds: float
    repeat: int

    @property
    def format(self):
        return f"stillpoint-{self.name.replace('_', '-')}"


def verdict(text, values, met, unit=""):
    """A bar and what was reached: values of several cells or of one; none: not measured."""
    return {"text": text, "values": list(values), "unit": unit, "met": met}


def reached(bar):
    show = duration if bar["unit"] == "ns" else lambda value: f"{value:.3g}{bar['unit']}"
    return " to ".join(dict.fromkeys(map(show, bar["values"][:1] + bar["values"][-1:]))) or "not measured"


def with_glued_peers(binaries):
    """Which of them can be built is a matter of Debian's packages (bench/worker/peers.cmake)."""
    libraries = [binaries.parent / "lib" / f"libpeer_{source.stem}.so" for source in sorted(GLUE.glob("*.cpp"))]
    here = [str(library) for library in libraries if can_be_made(library)]
    return shlex.join(["--peer", ",".join(here)]) if here else ""


@dataclasses.dataclass(frozen=True)
class BenchRuns:
    """A part that is runs of `stillpoint bench`. `commands`: (heading, arguments, bars); {disk} is a folder on a disk,
    {with_glued_peers} is --peer with the libraries of bench/peer that can be built here, or nothing."""

    TITLE: str
    SAYS: str
    commands: tuple
    table: object  # [(heading, cell)] -> lines

    def steps(self, _options):
        return len(self.commands)

    def measure(self, bench):
        runs = []
        places = {"disk": bench.place.folders["file"], "with_glued_peers": with_glued_peers(bench.options.binaries)}
        rounds = min(bench.options.repeat, ROUNDS_OF_RUNS)
        seconds = max(bench.options.seconds, SLICE_S * rounds)
        for heading, words, bars in self.commands:
            bench.progress.step("stillpoint bench " + words.split(" --engine")[0])
            arguments = shlex.split(words.format(**places))
            if not bench.options.quick:
                arguments += [word for bar in bars for word in ("--bar", bar)]
            runs.append({"heading": heading, "document": bench_document(bench.options, arguments, seconds, rounds)})
        return {"runs": runs}

    def lines(self, result):
        left_out = dict.fromkeys(f"Left out: {safe(one['engine'])}, {safe(one['reason'])}; {safe(one['remedy'])}."
                                 for run in result["runs"] for one in run["document"]["skipped"])
        return [*self.table([(run["heading"], cell) for run in result["runs"] for cell in run["document"]["cells"]]),
                *(["", *left_out] if left_out else [])]

    def bars(self, result):
        found = []
        for one in (bar for run in result["runs"] for bar in run["document"]["bars"]):
            values = sorted(cell["value"] for cell in one["reached"])
            found.append(verdict(one["text"], values, one["met"], "ns" if one["text"].endswith("s") else ""))
        return found


def command_of(page, options, part):
    words = ["--quick"] if options.quick else ["--seconds", f"{options.seconds:g}", "--repeat", str(options.repeat)]
    return shlex.join(["python3", "bench/run.py", page.name, "--part", part, *words])


def measure(page, options, whole, keep):
    """Adds parts to `whole`, and calls keep() after each. The part that was interrupted is not added."""
    names = [name for name in page.parts if name in options.part and (options.again or name not in whole["parts"])]
    with bench_of(page.name, options) as bench:
        bench.progress.plan(sum(page.parts[name].steps(options) for name in names))
        version = first_line([bench.place.tool.program("stillpoint"), "--version"])
        for name in names:
            command = command_of(page, options, name)
            facts = record(command, version, None, {"seconds": options.seconds, "repeat": options.repeat, "quick": options.quick})
            whole["parts"][name] = {"command": command, "facts": facts, "result": page.parts[name].measure(bench)}
            keep()


def conditions(all_facts):
    """When and where runs were made, and whether other work ran; `all_facts`: record.record() of each."""
    machine = all_facts[0]["machine"]
    loads = [one["machine"]["load_before"] for one in all_facts]
    busy = " Other work ran at the same time: single figures are off by 20 % and more." if max(loads) > SLOW_LOAD * machine["cpus"] else ""
    commits = ", ".join(dict.fromkeys(str(one["commit"]) for one in all_facts))
    load = " to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(loads), max(loads))))
    return (f"Measured {all_facts[0]['began'][:10]} on {machine['cpus']} CPUs ({safe(machine['processor'])}), {safe(machine['system'])}, "
            f"Linux {safe(machine['kernel'])}, commit {commits}, load average before {load}.{busy}")


def bars_of(page, whole):
    return [bar for name, part in whole["parts"].items() for bar in page.parts[name].bars(part["result"])]


def text_of(page, whole):
    parts = {name: whole["parts"][name] for name in page.parts if name in whole["parts"]}
    lines = [page.introduction, conditions([part["facts"] for part in parts.values()]), ""]
    if whole["quick"]:
        lines += ["This was a quick run: small data and two rounds. It shows that everything works and measures nothing.", ""]
    for name, part in parts.items():
        cells = [cell for cells in part["result"].values() if isinstance(cells, list) for cell in cells]
        left_out = dict.fromkeys(one for cell in cells for one in cell.get("left_out", []))
        lines += [f"## {page.parts[name].TITLE}", "", page.parts[name].SAYS, "", *page.parts[name].lines(part["result"]), "",
                  *(f"Left out: {safe(one)}." for one in left_out), *([""] if left_out else []), "Made by:", "",
                  f"    {part['command']}", ""]
    return "\n".join(lines).rstrip() + "\n"


def parse(page, arguments):
    width = max(map(len, page.parts))
    listed = "\n".join(f"  {name:{width}} {part.TITLE}" for name, part in page.parts.items())
    examples = EXAMPLES.format(name=page.name, document=page.document, part=next(iter(page.parts)), parts=listed)
    made = parser(page.name, page.description, examples, page.seconds, page.repeat)
    made.add_argument("--part", action="append", choices=page.parts, metavar="PART", help="only this one; several times")
    made.add_argument("--again", action="store_true", help="measure the parts again that the JSON file has; otherwise they are kept")
    made.add_argument("--report", metavar="FILE", help="measure nothing: the page of an earlier --json FILE")
    made.add_argument("--markdown", metavar="FILE", help="write the page; otherwise it is printed, but for --json -")
    made.add_argument("--no-bars", action="store_true", help="exit code 0 though a bar fell short")
    options = made.parse_args(arguments)
    options.part = options.part or list(page.parts)
    if options.quick:
        options.repeat, options.seconds = 2, 0.1
    return options


def result_of(page, options):
    """The measurements, now or earlier."""
    if options.report:
        return read_json(options.report, page.format, FORMAT_VERSION)
    kept = options.json if options.json not in (None, "-") else None
    whole = (read_json(kept, page.format, FORMAT_VERSION) if kept and os.path.isfile(kept) else
             {"format": page.format, "format_version": FORMAT_VERSION, "quick": options.quick, "parts": {}})
    if whole["quick"] != options.quick:
        raise BenchError(f"{kept} is of a run with{'out' if options.quick else ''} --quick: name another file with --json")
    measure(page, options, whole, lambda: kept and write_json(whole, kept))
    return whole


def main(page, _name, arguments):
    options = parse(page, arguments)
    whole = result_of(page, options)
    if options.markdown:
        write_text(Path(options.markdown), text_of(page, whole))
    if options.json == "-":
        write_json(whole, "-")
    elif not options.markdown:
        print(text_of(page, whole))
    bars = [bar for bar in bars_of(page, whole) if bar["values"]]
    rows = [[bar["text"], reached(bar), "met" if bar["met"] else "missed"] for bar in bars]
    for line in lines_of(["bar", "reached", ""], rows) if rows else []:
        print(line, file=sys.stderr)
    fell_short = any(not bar["met"] for bar in bars)
    return FELL_SHORT if fell_short and not (options.quick or options.no_bars) else 0
