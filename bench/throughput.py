#!/usr/bin/env python3
"""Throughput of a B+tree or a hash map, with and without Stillpoint, as ratios in one run.

The baseline, "plain", is the same source compiled and linked without Stillpoint. "linked" runs behind the intercepted
functions with no pool. The others are durable: with the pool in shared memory and durability `process`, tracked by
userfaultfd or by mprotect; and with the pool on this file system's disk and durability `power`.

Columns: ratio is operations per second against plain (median of the rounds, and their quartiles); CPU is the CPU time per
operation against plain, checkpoints included; stop times are the runtime's statistics, sampled: how long each checkpoint
could hold the program's threads; stretched counts intervals that had to wait for the medium.
"""

import json
import sys

from paired import Configuration, StopTimes, Tool, ToolError, Worker, common_arguments, pool_folders, run_rounds, table


def configurations(disk, shared, interval_ms):
    base = {"interval_ms": interval_ms, "pool_size_mb": 128}
    chosen = [Configuration("plain", "throughput_worker_plain"), Configuration("linked, no pool", "throughput_worker")]
    if shared:
        for tracker in ("uffd", "mprotect"):
            chosen.append(Configuration(f"{tracker}, shared memory, process", "throughput_worker", shared / f"{tracker}.pool",
                                        {**base, "tracker": tracker, "durability": "process"}))
    chosen.append(Configuration("uffd, disk, power", "throughput_worker", disk / "power.pool",
                                {**base, "tracker": "uffd", "durability": "power"}))
    return chosen


def print_table(facts):
    def stop(fact, name):
        return f"{fact[name] / 1e6:.2f} ms" if name in fact else "-"

    rows = [[fact["name"], f"{fact['operations_per_second'] / 1e6:.2f} M/s", f"{fact['ratio']:.2f}",
             f"{fact['ratio_quartiles'][0]:.2f} to {fact['ratio_quartiles'][1]:.2f}", f"{fact['cpu_ratio']:.2f}",
             stop(fact, "stop_ns_p50"), stop(fact, "stop_ns_p99"), stop(fact, "stop_ns_max"),
             fact.get("checkpoints", "-"), fact.get("stretched_intervals", "-")] for fact in facts]
    for line in table(["configuration", "operations", "ratio", "quartiles", "CPU", "stop p50", "p99", "max", "checkpoints",
                       "stretched"], rows):
        print("  " + line)


def measure(arguments):
    tool = Tool(arguments.binaries)
    shape = [arguments.workload, arguments.threads, arguments.keys, arguments.updates]
    with pool_folders(arguments.workload) as (disk, shared):
        workers = []
        try:
            for configuration in configurations(disk, shared, arguments.interval_ms):
                if not arguments.only or configuration.name == "plain" or any(
                        word in configuration.name for word in arguments.only):
                    workers.append(Worker(tool, configuration, shape))
            stops = [StopTimes(tool, worker.configuration.pool) if worker.configuration.pool else None
                     for worker in workers]
            outcomes = run_rounds(workers, arguments.slice_ms, arguments.seconds)
            facts = [{**outcome.facts(), **(stop.end() if stop else {})} for outcome, stop in zip(outcomes, stops)]
            for worker in workers:
                worker.end()
            return facts
        finally:
            for worker in workers:
                worker.destroy()


def main():
    parser = common_arguments(__doc__)
    parser.add_argument("--workload", choices=["btree", "hash_map"], default="btree")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=50, help="percent of the operations that are updates")
    parser.add_argument("--slice-ms", type=int, default=300)
    parser.add_argument("--only", action="append", help="configurations whose name has this word; plain always runs")
    arguments = parser.parse_args()
    if not arguments.json:
        print(f"{arguments.workload}: {arguments.threads} threads, {arguments.keys} keys, {arguments.updates} % updates, "
              f"interval {arguments.interval_ms} ms, slices of {arguments.slice_ms} ms")
    try:
        facts = measure(arguments)
    except ToolError as failure:
        print(f"throughput: {failure}", file=sys.stderr)
        return 1
    print(json.dumps({"benchmark": arguments.workload, "configurations": facts})) if arguments.json else print_table(facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
