#!/usr/bin/env python3
"""Kyoto Cabinet's databases on memory, durable against stock: threads get and set records, in alternating slices of one run.

The baseline is the stock library without Stillpoint. "patched, volatile" is the durable library without a pool: what the patch costs
those who do not use it. The others keep the database in a pool: in shared memory with durability `process`, on the disk with `power`,
and compiled by `stillpoint c++` with the tracker hooks (not the tree: std::map stores in precompiled code).

Then Tokyo Cabinet's own tcumttest, unmodified, with `stillpoint run` against without: whole processes in alternating order. Its memory
stays volatile: this is what replaced locks and the start cost a foreign program.

"cache-unsorted" is the cache with its LRU rotation off: then a read writes nothing.

`integrations/kyotocabinet/build.py stock durable hooks` builds what is measured.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

from paired import Configuration, Tool, ToolError, Worker, common_arguments, pool_folders, run_rounds, table

EXIT_SKIPPED = 77
# Words of tcumttest, and its operations for each of --tokyo-operations.
TOKYO_CASES = (("combo 2", 1), ("combo -tr 2", 0.15), ("typical 2", 1.5), ("typical -tr 2", 0.15))


def worker_of(flavour):
    """Relative to the folder of the project's programs."""
    return f"../integrations/kyotocabinet/{flavour}/kyotocabinet_worker"


def configurations(kind, arguments, disk, shared):
    """(configuration, path of the database), the baseline first."""
    options = {"interval_ms": arguments.interval_ms, "pool_size_mb": 256}
    yield Configuration("stock", worker_of("stock")), "*"
    yield Configuration("patched, volatile", worker_of("durable")), "*"
    if shared is not None:
        yield Configuration("pool in shared memory, process", worker_of("durable"), shared / f"{kind}.pool",
                            {**options, "durability": "process"}), "bench"
    yield Configuration("pool on disk, power", worker_of("durable"), disk / f"{kind}.pool", {**options, "durability": "power"}), "bench"
    if shared is not None and kind != "tree" and (Tool(arguments.binaries).binaries / worker_of("hooks")).is_file():
        yield Configuration("the same in shared memory, hooks", worker_of("hooks"), shared / f"{kind}-hooks.pool",
                            {**options, "durability": "process", "tracker": "hooks"}), "bench"


def measure_kind(tool, kind, arguments, disk, shared):
    workers = []
    try:
        for configuration, path in configurations(kind, arguments, disk, shared):
            workers.append(Worker(tool, configuration, [kind, arguments.threads, arguments.records, arguments.sets, path]))
        outcomes = run_rounds(workers, arguments.slice_ms, arguments.seconds)
        for worker in workers:
            worker.end()
    finally:
        for worker in workers:
            worker.destroy()
            if worker.configuration.pool is not None:
                worker.configuration.pool.unlink(missing_ok=True)
    return [{"kind": kind, **outcome.facts()} for outcome in outcomes]


def times_of(words):
    """Wall time and CPU time of a process, in seconds."""
    begun = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # pylint: disable=consider-using-with
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ToolError(f"{' '.join(words)}: exit code {process.returncode}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime


def measure_tokyo(tool, program, arguments, folder):
    """The time of each case under `stillpoint run`, as a ratio of the time without."""
    generator = random.Random(1)
    pool = folder / "tokyo.pool"
    for words, part in TOKYO_CASES:
        case = f"{words} {int(arguments.tokyo_operations * part)}"
        plain_words = [program, *case.split()]
        run_words = [tool.program("stillpoint"), "run", "--quiet", "--durability", "process", "--pool", str(pool), "--", *plain_words]
        times_of(plain_words)
        wall_ratios, cpu_ratios = [], []
        for _ in range(arguments.pairs):
            pool.unlink(missing_ok=True)
            if generator.random() < 0.5:
                plain, run = times_of(plain_words), times_of(run_words)
            else:
                run, plain = times_of(run_words), times_of(plain_words)
            wall_ratios.append(run[0] / plain[0])
            cpu_ratios.append(run[1] / plain[1])
        quartiles = statistics.quantiles(wall_ratios, n=4)
        yield {"case": case, "ratio": quartiles[1], "ratio_quartiles": [quartiles[0], quartiles[2]],
               "cpu_ratio": statistics.median(cpu_ratios), "pairs": arguments.pairs}


def show(figures, tokyo, arguments):
    print(f"{arguments.records} records of 100 bytes, {arguments.threads} threads, {arguments.sets} % sets, interval "
          f"{arguments.interval_ms} ms; ratios of the stock library, median (quartiles) of the rounds")
    rows = [[one["kind"], one["name"], f"{one['operations_per_second'] / 1e6:.2f} M/s", f"{one['ratio']:.2f}",
             "{:.2f} to {:.2f}".format(*one["ratio_quartiles"]), f"{one['cpu_ratio']:.2f}", one["rounds"]] for one in figures]
    for line in table(["database", "configuration", "operations", "ratio", "quartiles", "CPU/op", "rounds"], rows):
        print("  " + line)
    print("tcumttest under `stillpoint run`: its time as a ratio of the time without, median (quartiles) of the pairs")
    rows = [[one["case"], f"{one['ratio']:.2f}", "{:.2f} to {:.2f}".format(*one["ratio_quartiles"]), f"{one['cpu_ratio']:.2f}",
             one["pairs"]] for one in tokyo]
    for line in table(["case", "ratio", "quartiles", "CPU", "pairs"], rows):
        print("  " + line)


def main():
    parser = common_arguments(__doc__)
    parser.add_argument("--kinds", default="cache,cache-unsorted,hash,tree", help="or none: only tcumttest (default %(default)s)")
    parser.add_argument("--records", type=int, default=200000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sets", type=int, default=50, help="percent of the operations (default 50)")
    parser.add_argument("--slice-ms", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=11, help="of each case of tcumttest; 0: none (default 11)")
    parser.add_argument("--tokyo-operations", type=int, default=200000, help="how much tcumttest does (default %(default)s)")
    arguments = parser.parse_args()
    tool = Tool(arguments.binaries)
    if not (tool.binaries / worker_of("durable")).is_file():
        print("kyotocabinet: skipped: run integrations/kyotocabinet/build.py stock durable hooks first", file=sys.stderr)
        return EXIT_SKIPPED
    tokyo_program = shutil.which("tcumttest")
    figures, tokyo = [], []
    try:
        with pool_folders("kyotocabinet") as (disk, shared):
            for kind in arguments.kinds.split(",") if arguments.kinds != "none" else ():
                figures += measure_kind(tool, kind, arguments, disk, shared)
            if tokyo_program and arguments.pairs > 1:
                tokyo = list(measure_tokyo(tool, tokyo_program, arguments, shared or disk))
    except ToolError as failure:
        print(f"kyotocabinet: {failure}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({"benchmark": "kyotocabinet", "databases": figures, "tcumttest": tokyo}))
    else:
        show(figures, tokyo, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
