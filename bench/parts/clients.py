"""Many clients on a file, each of which waits until its operation is durable on the disk: what sharing a sync is worth."""

from driver.benchmark import table
from driver.in_turn import row_of
from driver.sides import Side, answers_in_turn, started
from driver.tables import duration, ratio_cells
from pronto_costs.group_commit import CLIENTS, ONE_EACH, synced_log

DESCRIPTION = """\
Clients on a file, each of which waits until its operation is durable on the disk (durability power).

An operation inserts a key into a hash map of 100,000 buckets or removes it, or puts 100 bytes under a key (pronto). The baseline
appends 192 bytes to a log of one file and calls fdatasync for each operation, one after the other; the file has its blocks and its size
before, so a sync writes no metadata. "side by side": its threads call fdatasync without a lock, and the kernel may answer several with
one flush of the disk."""
SECONDS = 6
VALUE_BYTES = 100
MAP = (("size", 100_000), ("reads", 0))
SLICE_NS = 500_000_000


def engine(name, program, threads, arguments=(), settings=(), run=()):
    usual = (("engine", name), ("durability", "power"), ("medium", "file"), ("pool-size-mb", 64))
    return Side(f"{name}, {threads} client{'s' if threads > 1 else ''}", program, (*usual, *run), "file", arguments=arguments,
                settings=(("threads", threads), *settings))


def sides(clients):
    on_map = {"arguments": ("hash_map",), "settings": MAP}
    return (engine("spht", "bench_worker_spht", clients, **on_map), engine("spht", "bench_worker_spht", 1, **on_map),
            engine("nvthreads", "bench_worker_nvthreads_hooks", clients, run=(("acknowledge", "unlock"),), **on_map),
            engine("pronto", "pronto_group_commit", clients, settings=(("value_bytes", VALUE_BYTES),)),
            synced_log(ONE_EACH, clients, is_baseline=True), synced_log("side by side", clients, is_shared=1))


def add_options(parser):
    parser.add_argument("--clients", type=int, choices=range(2, 65), default=CLIENTS, metavar="N", help=f"2 to 64 (default {CLIENTS})")


def measure(bench):
    chosen = sides(bench.options.clients)
    with started(bench, chosen, {}) as (processes, left_out):
        answers = answers_in_turn(bench, processes, "slice", SLICE_NS // (10 if bench.options.quick else 1))
    base = next(answers[side.name] for side in chosen if side.is_baseline)
    return {"rows": [row_of(name, mine, base) for name, mine in answers.items()], "left_out": left_out}


def lines(result):
    rows = [[one["name"], f"{one['rate']['median']:,.0f}/s", *ratio_cells(one["to_volatile"]),
             duration(one["cpu_ns_per_operation"]["median"])] for one in result["rows"]]
    return [f"clients: durable operations on a file, {result['options']['clients']} clients",
            *table(["", "operations", "times one fdatasync each", "quartiles", "CPU of an operation"], rows),
            *(f"left out: {reason}" for reason in result["left_out"])]
