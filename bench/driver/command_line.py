"""The options of `stillpoint bench`."""

import argparse
import os
from pathlib import Path

from .bars import parse_bar
from .command import Parser
from .errors import BenchError

EXAMPLES = """\
Examples:
  stillpoint bench list                                    workloads, engines and peers, and which are here
  stillpoint bench list --json -                           the same, for programs
  stillpoint bench                                         the usual structures, two threads, half of it updates
  stillpoint bench --workload btree --engine volatile,pmthreads,lmdb --mix 90:10,50:50,10:90 --json run.json
  stillpoint bench --workload all --engine pmthreads,peers --html report --seconds 3
  stillpoint bench --engine pmthreads --tracker uffd,mprotect --interval 10,100 --bar 'pmthreads/volatile>=0.8'
  stillpoint bench --peer ./libmine.so --workload key-value,queue    a system of your own, by a library that you write
  stillpoint bench report run.json --html report           the report of an earlier run

Exit codes:
  0 success; 1 a bar fell short; 64 wrong usage; 69 not available here; 70 a wrong result; 73 no place for the output;
  130 interrupted: what was measured until then is written. All of them: docs/guide/exit-codes.md, stillpoint-bench(1).
"""


def words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(minimum, maximum):
    def parse(text):
        found = []
        for word in words(text):
            if not word.isdigit() or not minimum <= int(word) <= maximum:
                raise argparse.ArgumentTypeError(f"{word} is not a number from {minimum} to {maximum}")
            found.append(int(word))
        if not found:
            raise argparse.ArgumentTypeError("names nothing")
        return list(dict.fromkeys(found))

    return parse


def mixes(text):
    """READS:UPDATES -> percent of reads."""
    found = []
    for word in words(text):
        reads, colon, updates = word.partition(":")
        if not colon or not reads.isdigit() or not updates.isdigit() or int(reads) + int(updates) != 100:
            raise argparse.ArgumentTypeError(f"{word} is not a mix: write READS:UPDATES, which add up to 100, such as 90:10")
        found.append(int(reads))
    return list(dict.fromkeys(found))


def some_of(*known):
    def parse(text):
        for word in words(text):
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word} is not one of {', '.join(known)}")
        return list(dict.fromkeys(words(text)))

    return parse


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0.1 to 3600")
    return value


def parser():
    cpus = len(os.sched_getaffinity(0))
    made = Parser(prog="stillpoint bench", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                  description="Measures engines and peers on the same work, in one run, as ratios to the program without Stillpoint.")
    made.add_argument("action", nargs="?", choices=["run", "list", "report"], default="run",
                      help="run (the default), list what there is, or make the report of an earlier run")
    made.add_argument("file", nargs="*", help="of report: the JSON file of a run, or of several: later ones replace cells of earlier ones")
    what = made.add_argument_group("what is done")
    what.add_argument("--workload", type=words, default=["hash_map", "btree", "queue"], metavar="W,...",
                      help="workloads, families of them, or all (default hash_map,btree,queue)")
    what.add_argument("--threads", type=numbers(1, 64), default=[min(2, cpus)], metavar="N,...")
    what.add_argument("--mix", type=mixes, default=[50], metavar="R:U,...", help="percent of reads and updates (default 50:50)")
    what.add_argument("--value-size", type=numbers(8, 8192), default=[8], metavar="BYTES,...", help="default 8")
    what.add_argument("--size", type=lambda text: numbers(0, 1 << 32)(text)[0], default=0, metavar="N",
                      help="keys, points or input bytes instead of the workload's own number")
    what.add_argument("--large", action="store_true", help="the large inputs of the transactional programs: STAMP's ++, some seconds a job")
    what.add_argument("--operation-size", type=numbers(0, 1 << 32), default=[0], metavar="N,...",
                      help="points, trials or elements in an operation, between two restart points; 0, the default: the workload's own number")
    who = made.add_argument_group("engines and peers (volatile and volatile-words always run: ratios are taken to them)")
    who.add_argument("--engine", type=words, default=[], metavar="E,...",
                     help="engines and peers; peers are all that are here (default: the product's first engine, peers)")
    who.add_argument("--peer", type=words, default=[], metavar="LIBRARY,...",
                     help="systems of your own: shared libraries with the interface of stillpoint_peer.h (bench/README.md, \"Hold your "
                          "system against ours\"); without --engine beside the product's first engine")
    who.add_argument("--tracker", type=some_of("auto", "uffd", "mprotect", "hooks"), default=["auto"], metavar="T,...")
    who.add_argument("--interval", type=numbers(1, 3600000), default=[], metavar="MS,...",
                     help="milliseconds between two checkpoints (default: the engine's own)")
    who.add_argument("--durability", type=some_of("process", "power"), default=["power"], metavar="D,...",
                     help="what must be survived: power (default), process")
    where = made.add_argument_group("where")
    where.add_argument("--medium", choices=["file", "memory", "dax"], default="memory" if Path("/dev/shm").is_dir() else "file",
                       help="kind of medium (default memory)")
    where.add_argument("--pool", metavar="DIR", help="folder of the pools (default /dev/shm for memory, otherwise this folder)")
    how = made.add_argument_group("how long")
    how.add_argument("--seconds", type=seconds, default=15, metavar="S",
                     help="measured time of each configuration in each cell (default 15: slices of 3 s)")
    how.add_argument("--repeat", type=numbers(1, 1000), default=[5], metavar="N", help="rounds, with a slice of each in it (default 5)")
    how.add_argument("--seed", type=int, default=1, help="of the order of the rounds and the moments of the kills")
    how.add_argument("--kills", type=lambda text: numbers(0, 1000)(text)[0], default=1, metavar="N",
                     help="kills and restarts of each configuration in each cell (default 1; 0 leaves them out)")
    how.add_argument("--no-kill", dest="kills", action="store_const", const=0, help="the same as --kills 0")
    how.add_argument("--no-pin", action="store_true", help="leave threads where the kernel puts them")
    how.add_argument("--smoke", action="store_true", help="small inputs, two rounds: shows that it works, measures nothing")
    out = made.add_argument_group("results")
    out.add_argument("--json", metavar="FILE", help="write everything; - for standard output")
    out.add_argument("--html", metavar="DIR", help="write the report: one page, DIR/index.html")
    out.add_argument("--markdown", metavar="FILE",
                     help="write the report as a document: FILE, its plots in figures/ next to it, its data as .json next to it")
    out.add_argument("--bar", action="append", default=[], metavar="TEXT",
                     help="what must be reached: [WORKLOAD [MIX]:]ENGINE/ENGINE>=RATIO, [WORKLOAD [MIX]:]ENGINE.FIGURE<=NUMBER[ms]")
    out.add_argument("-q", "--quiet", action="store_true", help="no progress")
    made.add_argument("--binaries", help=argparse.SUPPRESS)
    made.add_argument("--command", help=argparse.SUPPRESS)
    return made


def parse(arguments):
    options = parser().parse_args(arguments)
    options.repeat = options.repeat[0]
    options.bars = [parse_bar(text) for text in options.bar]
    if options.action == "report" and not (options.file and (options.html or options.markdown)):
        raise BenchError("report needs the JSON file of a run, and --html DIR or --markdown FILE")
    if options.action != "report" and options.file:
        raise BenchError(f"\"{options.file[0]}\" is not understood: options begin with --, lists have commas")
    return options
