"""The command of a benchmark: its options, how it fails, where its result goes.

A benchmark is a module or an object with
    DESCRIPTION          what it asks, for --help
    SECONDS              how long it measures, unless told otherwise
    add_options(parser)  options of its own, if it has some
    measure(bench)       its result, as JSON can hold it
    lines(result)        the result as lines that a person can read
and, where a wrong environment is not a failure, why_not(options): what is missing.
"""

import argparse
import contextlib
import dataclasses
import sys
from pathlib import Path

from .command import SKIPPED, Parser, positive
from .documents import write_json
from .errors import WRONG_RESULT, BenchError
from .progress import Progress
from .sides import ROOT, Place, Tool, ToolError, pool_folders
from .tables import lines_of

def parser(name, description, epilog=None, seconds=2.0, repeat=5):
    """With the options that every benchmark has. `seconds` None: how long it takes is said by options of its own."""
    made = Parser(prog=f"bench/run.py {name}", description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    if seconds:
        made.add_argument("--seconds", type=positive(float), default=seconds, metavar="S", help="measured time (default %(default)g)")
        made.add_argument("--repeat", type=positive(int), default=repeat, metavar="N", help="rounds, at least (default %(default)d)")
    made.add_argument("--quick", action="store_true", help="small data, short slices: shows that it works, measures nothing")
    made.add_argument("--json", metavar="FILE", help="write everything that was measured; - for standard output")
    made.add_argument("--seed", type=int, default=1, help="of the order of the rounds (default 1)")
    made.add_argument("-q", "--quiet", action="store_true", help="no progress")
    made.add_argument("--binaries", type=Path, default=ROOT / "build" / "bin", help="folder of the build's programs (default build/bin)")
    return made


@dataclasses.dataclass
class Bench:
    """The measuring side: its options, where processes lie and how they are started, and where its messages go."""

    options: object
    place: Place
    progress: Progress


@contextlib.contextmanager
def bench_of(name, options):
    progress = Progress(options.quiet)
    try:
        with pool_folders(name) as (disk, shared):
            yield Bench(options, Place(Tool(options.binaries), disk, shared), progress)
    except ToolError as failure:
        raise BenchError(str(failure), WRONG_RESULT) from None
    finally:
        progress.end()


def measured(benchmark, name, arguments):
    """The result of a benchmark with those arguments, for another benchmark that shows it too."""
    return measure(benchmark, name, parse(benchmark, name, arguments))


def parse(benchmark, name, arguments):
    made = parser(name, benchmark.DESCRIPTION, seconds=benchmark.SECONDS)
    if hasattr(benchmark, "add_options"):
        benchmark.add_options(made)
    return made.parse_args(arguments)


def measure(benchmark, name, options):
    with bench_of(name, options) as bench:
        shown = {option: str(value) if isinstance(value, Path) else value for option, value in vars(options).items()}
        return {"benchmark": name, "options": shown, **benchmark.measure(bench)}


def main(benchmark, name, arguments):
    options = parse(benchmark, name, arguments)
    reason = benchmark.why_not(options) if hasattr(benchmark, "why_not") else None
    if reason:
        print(f"{name}: skipped: {reason}", file=sys.stderr)
        return SKIPPED
    result = measure(benchmark, name, options)
    if options.json:
        write_json(result, options.json)
    for line in benchmark.lines(result) if options.json != "-" else ():
        print(line)
    return 0


def table(headings, rows):
    """Lines of a table under a heading, and an empty one after it; nothing where it has no rows."""
    return [*("  " + line for line in lines_of(headings, [[str(cell) for cell in row] for row in rows])), ""] if rows else []
