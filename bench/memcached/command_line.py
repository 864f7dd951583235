"""The options of the benchmark memcached."""

from pathlib import Path

from driver import bars, benchmark
from driver.command_line import numbers, some_of
from driver.sides import ROOT
from driver.tables import of

INTEGRATION = ROOT / "build/integrations/memcached"
BUILD_REMEDY = "python3 integrations/memcached/build.py makes it"
PARTS = ("memory", "throughput", "latency", "intervals", "power")
MIXES = (90, 50, 10)

# The options of the durable server, with either tracker.
BARS = [
    *(f"throughput-{mix}-{100 - mix}: durable/stock>=0.93" for mix in MIXES),
    *(f"throughput-{mix}-{100 - mix}: hooks/stock>={least}" for mix, least in zip(MIXES, (0.97, 0.95, 0.95))),
    *(f"pipelined-{mix}-{100 - mix}: hooks/stock>=0.92" for mix in MIXES),
    *(f"latency-{mix}-{100 - mix}: {name}.p99_ratio<={most}" for name, most in (("durable", 2), ("hooks", 1.3)) for mix in MIXES),
]
# Ratios within the slices of one round, where the bench's own figures are of all together.
bars.FIGURES.update({f"{rank}_ratio": lambda row, rank=rank: of(row, "latency_to_volatile", rank, "median")
                     for rank in ("p50", "p99", "p99.9")})

DESCRIPTION = """\
Measures memcached as it is (stock) and memcached with its items in a pool of Stillpoint (durable: tracker uffd; hooks: compiled by
`stillpoint cc`; breeze: by the engine breeze, each reply durable), with the same flags, on this machine's CPUs, which the client shares.
Each server is a process of its own; they work in turn, in slices of some seconds, and ratios are taken between slices of the same round.

parts:
  memory      resident memory, and what lies on the medium, with all keys loaded
  throughput  closed loop of our own client, one request in flight on each connection and eight; memaslap (libmemcached-tools)
  latency     open loop at a part of stock's throughput: the same rate for all
  intervals   throughput, bytes written and stops by the interval between checkpoints
  power       throughput and latency with the pool on the disk and durability `power`
"""


def parser():
    made = benchmark.parser("memcached", DESCRIPTION, seconds=None)
    made.add_argument("--part", type=some_of(*PARTS), default=list(PARTS), help="comma-separated (default: all)")
    made.add_argument("--mix", type=numbers(0, 100), default=list(MIXES), help="percents of reads (default 90,50,10)")
    made.add_argument("--interval", type=numbers(1, 10_000), default=[10, 20, 40, 100, 200, 500],
                      help="ms, of the part intervals (default 10,20,40,100,200,500); elsewhere it is 100")
    made.add_argument("--rounds", type=int, default=7, help="of the slices of throughput (default 7)")
    made.add_argument("--slice", type=float, default=3.0, help="seconds of a slice (default 3)")
    made.add_argument("--load", type=float, default=0.5, help="open loop: share of stock's throughput (default 0.5)")
    made.add_argument("--keys", type=int, default=1_000_000)
    made.add_argument("--value-bytes", type=int, default=100)
    made.add_argument("--connections", type=int, default=32)
    made.add_argument("--protocol", choices=("text", "meta"), default="text")
    made.add_argument("--zipf", action="store_true", help="keys by Zipf's law, not uniformly")
    made.add_argument("--stock", type=Path, default=INTEGRATION / "stock/memcached", help="default: %(default)s or memcached in PATH")
    made.add_argument("--durable", type=Path, default=INTEGRATION / "durable/memcached-durable", help="default: %(default)s")
    made.add_argument("--hooks", type=Path, default=INTEGRATION / "hooks/memcached-durable", help="default: %(default)s")
    made.add_argument("--breeze", type=Path, metavar="PROGRAM", nargs="?", const=INTEGRATION / "breeze/memcached-durable",
                      help="the variant breeze takes part too, by default %(const)s")
    made.add_argument("--pool-options", default="", help="further options of the pool: 'tracker=mprotect staging_max_mb=64'")
    made.add_argument("--control", action="store_true", help="a second stock server takes part: what ratio nothing at all gives")
    made.add_argument("--bar", action="append", metavar="BAR",
                      help="what must be reached, otherwise exit code 1: 'throughput-90-10: durable/stock>=0.95', "
                           "'latency-10-90: durable.p99_ratio<=1.5'; `all`: those that are shown without this option")
    made.add_argument("--markdown", metavar="FILE", help="makes a document, with FILE's ending as .json and figures/ next to it")
    made.add_argument("--report", metavar="JSON", help="measures nothing: shows, or makes --markdown of, an earlier result")
    return made


def parse(arguments):
    made = parser()
    options = made.parse_args(arguments)
    if min(options.rounds, options.slice, options.load) <= 0 or options.keys < 1000 or options.value_bytes < 16:
        made.error("--rounds, --slice and --load are above 0, --keys at least 1000, --value-bytes at least 16")
    options.must_reach = bool(options.bar)
    options.bars = [bars.parse_bar(text) for one in options.bar or ["all"] for text in (BARS if one == "all" else [one])]
    if options.quick:
        options.keys = min(options.keys, 20_000)
        options.rounds = min(options.rounds, 2)
        options.slice = min(options.slice, 0.2)
        options.interval = sorted({options.interval[0], options.interval[-1]})
    return options
