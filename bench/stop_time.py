#!/usr/bin/env python3
"""Stop time of a large heap of which a small part is written in each interval; then its recovery after a kill.

The worker fills the heap, then writes single pages at random, paced so that the wished part of the heap is written in
each interval. Stop times are the runtime's statistics, sampled for each checkpoint; latency is what the program itself saw of its
operations (lock, write a word, unlock), stops included. Then the process is killed with SIGKILL and started
again. Recovery is given twice: by the runtime's statistics (from opening the pool to the program's first
operation) and by the clock on the wall (from starting the process, so with exec and loading, to the end of its
first operation on the recovered heap).
"""

import json
import sys
import time

from paired import Configuration, StopTimes, Tool, ToolError, Worker, common_arguments, kill, pool_folders, table

PAGES_PER_MIB = 256


def measure_kind(tool, arguments, configuration):
    pages_per_second = int(arguments.heap_mib * PAGES_PER_MIB * arguments.part / 100 * 1000 / arguments.interval_ms)
    shape = [arguments.heap_mib, pages_per_second]
    worker = Worker(tool, configuration, shape)
    try:
        worker.slice(1000)  # not counted: the checkpoints that follow the filling
        stops = StopTimes(tool, configuration.pool)
        # Long slices: the handing over would otherwise be a part of what is measured.
        for _ in range(max(1, int(arguments.seconds / 2))):
            worker.slice(2000)
        stopped = stops.end()
        if not stopped:
            raise ToolError("there was no checkpoint while the program worked")
        latencies = worker.notes["latency"][-max(1, int(arguments.seconds / 2)):]
        kill(worker.process)
        begin_ns = time.monotonic_ns()
        restarted = Worker(tool, configuration, shape)
        try:
            recovered = tool.stats(configuration.pool)
            first_ns = restarted.notes["first"][0][0] - begin_ns
            restarted.end()
        finally:
            restarted.destroy()
    finally:
        worker.destroy()
    return {"name": configuration.name, **stopped,
            "dirty_pages_per_checkpoint": stopped["dirty_pages_total"] / max(1, stopped["checkpoints"]),
            "latency_ns_p50": sorted(one[0] for one in latencies)[len(latencies) // 2],
            "latency_ns_p99": max(one[1] for one in latencies), "latency_ns_max": max(one[2] for one in latencies),
            "recovery_ns": recovered["recovery_ns"], "first_operation_ns": first_ns}


def main():
    parser = common_arguments(__doc__)
    parser.add_argument("--heap-mib", type=int, default=1024)
    parser.add_argument("--trackers", default="uffd,hooks", help="comma-separated (default uffd,hooks)")
    parser.add_argument("--part", type=float, default=1.0, help="percent of the heap's pages written in each interval")
    arguments = parser.parse_args()
    tool = Tool(arguments.binaries)
    facts = []
    try:
        with pool_folders("stop-time") as (disk, shared):
            options = {"interval_ms": arguments.interval_ms, "pool_size_mb": arguments.heap_mib + 128}
            for name, folder, durability in (("shared memory, process", shared, "process"), ("disk, power", disk, "power")):
                for tracker in arguments.trackers.split(",") if folder is not None else ():
                    facts.append(measure_kind(tool, arguments, Configuration(
                        f"{name}, {tracker}", "stop_time_worker", folder / "heap.pool",
                        {**options, "durability": durability, "tracker": tracker})))
                    (folder / "heap.pool").unlink(missing_ok=True)
    except ToolError as failure:
        print(f"stop_time: {failure}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({"benchmark": "stop_time", "configurations": facts}))
        return 0
    print(f"stop time: heap of {arguments.heap_mib} MiB, {arguments.part} % of its pages written per interval of "
          f"{arguments.interval_ms} ms")
    rows = [[fact["name"], fact["checkpoints"], f"{fact['dirty_pages_per_checkpoint']:.0f}",
             *(f"{fact[name] / 1e6:.2f} ms" for name in ("stop_ns_p50", "stop_ns_p99", "stop_ns_max")),
             *(f"{fact[name] / 1e3:.1f} us" for name in ("latency_ns_p50", "latency_ns_p99", "latency_ns_max")),
             f"{fact['recovery_ns'] / 1e6:.1f} ms", f"{fact['first_operation_ns'] / 1e6:.1f} ms"] for fact in facts]
    for line in table(["pool", "checkpoints", "pages each", "stop p50", "p99", "max", "latency p50", "p99", "max",
                       "recovery", "exec to first operation"], rows):
        print("  " + line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
