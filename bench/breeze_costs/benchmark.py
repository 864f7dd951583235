"""Breeze: the time of an allocation; to open a pool, by threads, with and without rewriting; throughput with and without the collection of
garbage."""

import json
import os
import shutil
import subprocess

from driver.benchmark import table
from driver.build import can_be_made, make_sure_of
from driver.errors import BenchError
from driver.figures import rate, spread
from driver.in_turn import for_seconds, in_turn, ratios
from driver.tables import duration, percent, ratio_cells, short

DESCRIPTION = """\
What the engine breeze costs when a pool is opened, and while it runs. Pools lie in shared memory, with real write backs.

allocation a transaction that makes an object and links it at the front of a list, one thread, beside libpmemobj in turn. "settled" has
          what the engine's thread has left to count at the end [Breeze, Figure 3.12].
opening   a pool of objects of 1 KiB in a list. A scan of their headers finds what is free; where the pool lies at another address than
          before, pointers are rewritten too. Openings of all kinds alternate. Times are also given for a GiB of objects.
garbage   a hash map with values of 1000 bytes; half of the operations replace a record by a new object. Slices in which the engine's thread
          collects the old ones alternate with slices in which it does not run; ratios are taken between neighbours. "with" counts the
          time until nothing is left to collect, "until the last commit" does not count what is left then.

"CPUs" is how many CPUs that number of threads gets when it only computes, measured in the same rounds. Where it is below the number of
threads others use the machine: then the rows do not tell what more threads are worth."""
SECONDS = 20
MIB_OF_GIB = 1024
PARTS = ("allocation", "opening", "garbage")
ALLOCATED_BYTES = (1024, 2048, 4096)
THREADS_MAX = 8  # of an opening


def add_options(parser):
    parser.add_argument("--part", action="append", choices=PARTS, help="this part only; may be given again")
    parser.add_argument("--mib", type=int, help="objects of the pool that is opened, in MiB (default 1024)")
    parser.add_argument("--records", type=int, help="of the hash map (default 100000)")
    parser.add_argument("--operations", type=int, default=8000, help="of a thread in a slice (default %(default)d)")


def cpus():
    return len(os.sched_getaffinity(0))


def threads_of_opening():
    """Powers of two up to the number of CPUs."""
    return [count for count in (1, 2, 4, THREADS_MAX) if count == 1 or count <= cpus()]


class Costs:
    def __init__(self, bench):
        self.bench, self.options = bench, bench.options
        self.folder = bench.place.folders["memory"]
        if self.folder is None:
            raise BenchError("/dev/shm cannot be written: the pools lie there")
        make_sure_of([bench.place.tool.binaries / name for name in ("breeze_costs", "breeze_garbage")])

    def run(self, program, *words):
        """The objects that it prints, one a line."""
        done = subprocess.run([self.bench.place.tool.program(program), *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"{program} ended with exit code {done.returncode}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def cpus(self, threads):
        found, = self.run("breeze_costs", "cpus", threads)
        return found["cpus"]

    def make_sure_of_room(self, mib):
        free = shutil.disk_usage(self.folder).free >> 20
        if free < mib:
            raise BenchError(f"{mib} MiB are needed in /dev/shm, and {free} MiB are free: choose a smaller --mib or --records")

    def allocation(self):
        count = 2000 if self.options.quick else 50_000
        kinds = [name for name in ("breeze_costs", "breeze_costs_pmemobj") if can_be_made(self.bench.place.tool.binaries / name)]
        make_sure_of([self.bench.place.tool.binaries / name for name in kinds])
        rows = []
        for size_bytes in ALLOCATED_BYTES:
            def turn(program, number, size_bytes=size_bytes):
                self.bench.progress.show(f"allocation of {size_bytes} bytes: round {number + 1}")
                pool = self.folder / "allocation.pool"
                found, = self.run(program, "alloc", pool, size_bytes, count)
                pool.unlink()
                return found

            answers = dict(zip(kinds, in_turn(kinds, turn, for_seconds(self.options, 1), self.options.seed)))
            mine, peer = answers["breeze_costs"], answers.get("breeze_costs_pmemobj")
            rows.append({"bytes": size_bytes, "rounds": len(mine), "ns": spread(one["ns"] for one in mine),
                         "ns_settled": spread(one["ns_settled"] for one in mine),
                         "libpmemobj_ns": peer and spread(one["ns"] for one in peer),
                         "times_as_fast": peer and ratios(peer, mine, lambda one: one["ns"])})
        return {"count": count, "rows": rows}

    def opening(self):
        mib = self.options.mib or (16 if self.options.quick else MIB_OF_GIB)
        self.make_sure_of_room(mib + mib // 4 + 128)
        pool = self.folder / "opening.pool"
        self.bench.progress.show(f"opening: filling a pool with {mib} MiB")
        self.run("breeze_costs", "fill", pool, mib)
        kinds = [(threads, rewrites) for threads in threads_of_opening() for rewrites in (False, True)]
        place = 0
        cpus_of = {threads: [] for threads in threads_of_opening()}

        def turn(kind, number):
            nonlocal place
            threads, rewrites = kind
            self.bench.progress.show(f"opening: round {number + 1}")
            place = place % 2 + 1 if rewrites else place
            cpus_of[threads].append(self.cpus(threads))
            found, = self.run("breeze_costs", "open", pool, threads, place if rewrites else 0)
            if found["objects"] != mib * MIB_OF_GIB or (found["pointers_rewritten"] != 0) != rewrites:
                raise BenchError(f"an opening found {found['objects']} objects, and rewrote {found['pointers_rewritten']} pointers")
            return found["ms"]

        answers = in_turn(kinds, turn, for_seconds(self.options, 1), self.options.seed)
        pool.unlink()
        return {"mib": mib, "rows": [{"threads": threads, "rewrites": rewrites, "rounds": len(times), "cpus": spread(cpus_of[threads]),
                                      "ms": spread(times), "ms_per_gib": spread(ms * MIB_OF_GIB / mib for ms in times)}
                                     for (threads, rewrites), times in zip(kinds, answers)]}

    def garbage(self):
        records = self.options.records or (2000 if self.options.quick else 100_000)
        operations = self.options.operations
        self.make_sure_of_room((records + 2 * cpus() * operations) * 1600 // 2**20 + 600)
        rows = []
        for threads in dict.fromkeys((1, cpus())):
            self.bench.progress.show(f"garbage: {threads} threads")
            pool = self.folder / "garbage.pool"
            seconds = 0 if self.options.quick else self.options.seconds / 2
            cpus_of = [self.cpus(threads) for _ in range(5)]
            slices = self.run("breeze_garbage", pool, threads, records, operations, seconds)[2:]  # The first two warm the caches.
            pool.unlink()
            cpus_of += [self.cpus(threads) for _ in range(5)]
            collected = [one for one in slices if one["collects"]]
            kept = [one for one in slices if not one["collects"]]
            rows.append({"threads": threads, "rounds": len(collected), "cpus": spread(cpus_of),
                         "with": spread(map(settled_rate, collected)), "without": spread(map(rate, kept)),
                         "ratio": ratios(collected, kept, settled_rate), "until_last_commit": spread(map(rate, collected)),
                         "freed_meanwhile": sum(one["freed_meanwhile"] for one in collected) / sum(one["freed"] for one in collected)})
        return {"records": records, "operations_of_slice": operations, "rows": rows}


def measure(bench):
    costs = Costs(bench)
    return {part: getattr(costs, part)() for part in bench.options.part or PARTS}


def settled_rate(one):
    return one["operations"] / one["settled_ns"] * 1e9


def cpus_cell(row):
    return f"{row['cpus']['median']:.2f}"


def lines(result):
    shown = []
    if "allocation" in result:
        rows = [[row["bytes"], row["rounds"], *(duration(row[name]["median"]) for name in ("ns", "ns_settled")),
                 *((duration(row["libpmemobj_ns"]["median"]), *ratio_cells(row["times_as_fast"])) if row["libpmemobj_ns"] else ["-"] * 3)]
                for row in result["allocation"]["rows"]]
        shown += ["A transaction that makes an object and links it",
                  *table(["bytes", "rounds", "time", "settled", "libpmemobj", "times as fast", "quartiles"], rows)]
    if "opening" in result:
        rows = [[row["threads"], "yes" if row["rewrites"] else "no", row["rounds"], cpus_cell(row), duration(row["ms"]["median"] * 1e6),
                 *ratio_cells(row["ms_per_gib"], lambda ms: duration(ms * 1e6))] for row in result["opening"]["rows"]]
        shown += [f"Opening a pool with {result['opening']['mib']} MiB of objects of 1 KiB",
                  *table(["threads", "rewriting", "rounds", "CPUs", "time", "for a GiB", "quartiles"], rows)]
    if "garbage" in result:
        rows = [[row["threads"], row["rounds"], cpus_cell(row), short(row["with"]["median"]), short(row["without"]["median"]),
                 *ratio_cells(row["ratio"]), short(row["until_last_commit"]["median"]), percent(row["freed_meanwhile"])]
                for row in result["garbage"]["rows"]]
        shown += ["Operations a second with and without the collection of garbage",
                  *table(["threads", "rounds", "CPUs", "with", "without", "ratio", "quartiles", "until the last commit", "freed by then"],
                         rows)]
    return shown
