"""Programs that alternate slices of two sides in one process, and print their own tables."""

import dataclasses
import re
import subprocess
from typing import Callable

HEAP_CELLS, HEAP_CONTENDERS, HEAP_ROUNDS = 44, 3, 5  # rows of heap_bench's table; glibc, the heap, the heap with a FASE


@dataclasses.dataclass(frozen=True)
class OwnTables:
    DESCRIPTION: str
    SECONDS: float
    commands: Callable  # options -> [program and its arguments]
    add_options: Callable = lambda parser: None

    def measure(self, bench):
        tables = []
        for program, *words in self.commands(bench.options):
            bench.progress.show(program)
            command = [bench.place.tool.program(program), *map(str, words)]
            tables += subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip("\n").split("\n\n")
        return {"tables": [[re.split(r"\s{2,}", line.strip()) for line in text.splitlines()] for text in tables], "text": tables}

    def lines(self, result):
        return "\n\n".join(result["text"]).splitlines()


def heap_words(options):
    slice_ms = max(20, round(options.seconds * 1000 / (HEAP_CELLS * HEAP_CONTENDERS * HEAP_ROUNDS)))
    return [("heap_bench", *((1, 1) if options.quick else (HEAP_ROUNDS, slice_ms))), ("heap_pages",)]


def lock_words(options):
    return [("bench_locks", *["no_pool=1"] * options.no_pool, *["slices=2", "bursts=20"] * options.quick)]


ALLOCATOR = OwnTables(
    "The durable heap against glibc malloc, on the patterns of glibc's own benchmarks; then the pages that frees dirty.\n"
    "\"heap\" is the allocator alone, \"+FASE\" adds the FASE that sp_malloc and sp_free begin and end. Ratios are of the time of one\n"
    "allocate-free pair, each taken between neighbouring slices; the median of the rounds is printed.", 66, heap_words)
LOCKS = OwnTables(
    "Cost of intercepted locks, with a pool open or with --no-pool, against libc's own functions in the same process.\n"
    "Slices of both alternate, and a ratio is the median over the pairs of slices. \"ratio of bests\" compares the fastest slice of\n"
    "each. Columns are nanoseconds for one lock and one unlock. The number of slices is fixed: --seconds changes nothing.", 15, lock_words,
    lambda parser: parser.add_argument("--no-pool", action="store_true", help="open no pool: the cost of being linked with libstillpoint"))
MARKS = OwnTables(
    "What the mark after a store costs, and a look over the marks, for cards of 64 bytes, 512 bytes and 4 KiB.\n"
    "The upper table: nanoseconds of a store without a mark, and the ratio with one. \"set\": the card is marked already; \"clear\": nothing\n"
    "is marked yet. The middle table: the nanoseconds that a mark adds to a store, and a barrier before it that would keep the old line for a\n"
    "checkpoint that has not taken it yet (\"pending\"). The lower: microseconds of one look over 1 GiB, with one page in a hundred written, and with none.", 15,
    lambda options: [("bench_marks", f"rounds={1 if options.quick else max(3, round(options.seconds))}",
                      f"stores={10_000 if options.quick else 1_000_000}")])
REPLAY = OwnTables(
    "Replay of the redo logs of 8 threads: records in the order of their timestamps (merge) against records along links, one replayer\n"
    "against two. Nanoseconds for each logged write; ratios are of whole replays, each taken within a round.", 60,
    lambda options: [("bench_replay", f"rounds={1 if options.quick else max(5, round(options.seconds / 8))}",
                      f"writes={20_000 if options.quick else 2_000_000}")])
EXECUTORS = OwnTables(
    "The executors of spht's transactions, on an ordered map with look-ups and changes in three mixes, and on reservations as vacation's.\n"
    "Two threads, medium memory, durability process. Ratios are to TL2 (software), each taken within a round.", 30,
    lambda options: [("bench_executors", "executors=software,tinystm,norec",
                      *(("rounds=1", "slice_ms=20") if options.quick else (f"rounds={max(5, round(options.seconds / 3))}",)))])
