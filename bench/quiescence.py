#!/usr/bin/env python3
"""Checkpoints while a thread sleeps for ever, computes for ever, or is blocked in a read: outside every FASE.

One thread writes durable memory throughout. A system that waits for all threads takes no checkpoint at all then; here
there should be one for each interval, as many as without the other thread.
"""

import json
import sys
import time

from paired import Configuration, Tool, ToolError, Worker, common_arguments, pool_folders, table


def measure_kind(tool, arguments, folder, kind):
    pool = folder / f"{kind}.pool"
    configuration = Configuration(kind, "quiescence_worker", pool,
                                  {"interval_ms": arguments.interval_ms, "durability": "process"})
    worker = Worker(tool, configuration, [kind])
    try:
        before, begin = tool.stats(pool), time.monotonic()
        worker.slice(arguments.seconds * 1000 / 4)
        after, end = tool.stats(pool), time.monotonic()
    finally:
        worker.destroy()
    return {"name": kind, "checkpoints": after["checkpoints"] - before["checkpoints"],
            "intervals": (end - begin) * 1000 / arguments.interval_ms, "withdrawn_attempts": after["withdrawn_attempts"],
            "stop_ns_p50": after["stop_ns_p50"], "stop_ns_max": after["stop_ns_max"]}


def main():
    arguments = common_arguments(__doc__).parse_args()
    tool = Tool(arguments.binaries)
    try:
        with pool_folders("quiescence") as (disk, shared):
            facts = [measure_kind(tool, arguments, shared or disk, kind) for kind in ("none", "sleep", "compute", "read")]
    except ToolError as failure:
        print(f"quiescence: {failure}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({"benchmark": "quiescence", "configurations": facts}))
        return 0
    print(f"quiescence: one thread writes; another is outside every FASE; interval {arguments.interval_ms} ms")
    rows = [[fact["name"], fact["checkpoints"], f"{fact['intervals']:.0f}", fact["withdrawn_attempts"],
             f"{fact['stop_ns_p50'] / 1e6:.2f} ms", f"{fact['stop_ns_max'] / 1e6:.2f} ms"] for fact in facts]
    for line in table(["other thread", "checkpoints", "intervals", "withdrawn", "stop p50", "stop max"], rows):
        print("  " + line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
