"""The options of bench/pronto_costs.py."""

import argparse
from pathlib import Path

from driver.errors import USAGE, BenchError
from paired import ROOT

from .parts import PARTS

EXAMPLES = """\
examples:
  python3 bench/pronto_costs.py --json build/pronto.json --markdown docs/measured/tables/pronto.md    everything, on an idle machine
  python3 bench/pronto_costs.py --part containers --json build/pronto.json --again    one part again, the others as they are in the file
  python3 bench/pronto_costs.py --part group_commit --seconds 5 --repeat 9            the page goes to standard output
  python3 bench/pronto_costs.py --quick                                               does it work; measures nothing
  python3 bench/pronto_costs.py --report build/pronto.json --markdown docs/measured/tables/pronto.md  the page of an earlier run

parts:
""" + "\n".join(f"  {name:13} {part.TITLE}" for name, part in PARTS.items()) + """

Pools of the medium memory lie in /dev/shm, those of the medium file below the build's folder.
Exit codes: 0 success; 1 a bar fell short; 64 wrong usage; 69 not available here; 70 a measured process failed;
  130 interrupted: what was measured until then is in the file that --json names.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BenchError(f"{message} (see --help)", USAGE)


def positive(kind):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is no {'whole ' if kind is int else ''}number above 0")
        return value

    return parse


def parse(arguments):
    made = Parser(prog="python3 bench/pronto_costs.py", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                  description="What durable objects of the engine pronto cost, and whether its bars are reached.")
    made.add_argument("--part", action="append", choices=PARTS, metavar="PART", help="only this one; several times")
    made.add_argument("--seconds", type=positive(float), default=2.0, metavar="S", help="time of each side in each cell (default 2)")
    made.add_argument("--repeat", type=positive(int), default=7, metavar="N", help="rounds, at least (default 7)")
    made.add_argument("--quick", action="store_true", help="small data, two rounds: shows that it works, measures nothing")
    made.add_argument("--json", metavar="FILE", help="keep what was measured; what FILE has is not measured again; - for standard output")
    made.add_argument("--again", action="store_true", help="measure the parts again that FILE has")
    made.add_argument("--report", metavar="FILE", help="measure nothing: the page of an earlier --json FILE")
    made.add_argument("--markdown", metavar="FILE", help="write the page; else it is printed, but for --json -")
    made.add_argument("--seed", type=int, default=1, help="of the order of the rounds (default 1)")
    made.add_argument("--no-bars", action="store_true", help="exit code 0 though a bar fell short")
    made.add_argument("-q", "--quiet", action="store_true", help="no progress")
    made.add_argument("--binaries", type=Path, default=ROOT / "build" / "bin", help="folder of the build's programs (default build/bin)")
    options = made.parse_args(arguments)
    options.part = options.part or list(PARTS)
    options.repeat = 2 if options.quick else options.repeat
    options.seconds = 0.1 if options.quick else options.seconds
    return options
