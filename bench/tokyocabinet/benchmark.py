"""Tokyo Cabinet's ordered database: on memory and durable in a pool, against its own file with a sync for each transaction."""

from driver.benchmark import table
from driver.in_turn import row_of
from driver.sides import Side, answers_in_turn, started
from driver.tables import duration, ratio_cells

DESCRIPTION = """\
Tokyo Cabinet, Debian's library unmodified: threads put records of 100 bytes under 20,000 keys, on the disk.

The baseline is its B+tree in a file, each record a transaction that is synchronised (tcbdb, BDBOTSYNC). The others are its ordered
database on memory (tcndb), kept in a pool on the same disk (integrations/tokyocabinet): by nvthreads with threads as processes, whose
unlocks are durable when they return (unlock) or some milliseconds later, in their order (order); and by pmthreads, which loses the
last interval. "on memory" keeps nothing: what a pool costs is seen beside it."""
SECONDS = 6
SLICE_NS = 500_000_000
WORKER = "tokyocabinet_worker"


def durable(name, *run):
    usual = (("durability", "power"), ("medium", "file"), ("pool-size-mb", 64))
    return Side(name, WORKER, (*usual, *run), "file", settings=(("kind", "durable"),))


def own(name, kind):
    return Side(name, WORKER, medium="file", settings=(("kind", kind),), is_baseline=kind == "file")


NVTHREADS = (("engine", "nvthreads"), ("threads", "processes"))
SIDES = (own("its file, a sync each", "file"), durable("nvthreads, unlock", *NVTHREADS, ("acknowledge", "unlock")),
         durable("nvthreads, order", *NVTHREADS, ("acknowledge", "order")), durable("pmthreads", ("engine", "pmthreads")),
         own("on memory", "memory"))


def add_options(parser):
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8], metavar="N", help="(default 1 8)")


def measure(bench):
    cells = []
    for threads in bench.options.threads:
        with started(bench, SIDES, {"threads": threads}) as (processes, left_out):
            answers = answers_in_turn(bench, processes, "slice", SLICE_NS // (10 if bench.options.quick else 1))
        base = answers.get(SIDES[0].name)
        cells.append({"threads": threads, "left_out": left_out,
                      "rows": [row_of(name, mine, base) for name, mine in answers.items()] if base else []})
    return {"cells": cells}


def lines(result):
    text = []
    for cell in result["cells"]:
        rows = [[one["name"], f"{one['rate']['median']:,.0f}/s", *ratio_cells(one["to_volatile"]),
                 duration(one["cpu_ns_per_operation"]["median"])] for one in cell["rows"]]
        text += [f"Tokyo Cabinet, {cell['threads']} thread{'s' if cell['threads'] > 1 else ''}",
                 *table(["", "records", "times its file", "quartiles", "CPU of a record"], rows),
                 *(f"left out: {reason}" for reason in cell["left_out"])]
    return text
