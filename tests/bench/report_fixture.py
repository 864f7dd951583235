"""The document of a run that never was: every kind of plot has data, names hold markup, and some fields are missing or foreign."""

EVIL = 'pmthreads "10 ms" <script>evil()</script> & \'uffd\''


def spread(value):
    return {"median": value, "low": value * 0.93, "high": value * 1.06}


def latencies(p50):
    return {"p50": p50, "p99": p50 * 9, "p99.9": p50 * 60, "max": p50 * 3000, "count": 12345}


def configuration(name, kind, ratio, **more):
    """One row of a cell; `ratio`: to volatile."""
    return {
        "name": name, "engine": name.split(" ", maxsplit=1)[0], "kind": kind, "tracker": "uffd" if kind == "engine" else None,
        "interval_ms": 100 if kind == "engine" else None, "durability": "process", "medium": "memory",
        "loses": {"volatile": "everything", "engine": "the last interval"}.get(kind, "nothing once an operation has returned"),
        "rate": spread(3.9e6 * ratio), "rounds": 7, "to_volatile": spread(ratio),
        "to_best_peer": {**spread(ratio / 0.12), "peer": "lmdb"}, "cpu_ns_per_operation": spread(480 / ratio), "cpu_seconds": 3.4,
        "latency_ns": latencies(250 / ratio),
        "latency_spread_ns": {rank: spread(value) for rank, value in latencies(250 / ratio).items() if rank != "count"},
        "stop_ns": latencies(60000) if kind == "engine" else None,
        "bytes_written": 4.4e9, "bytes_written_per_byte_changed": 6.1, "lines_written_back_per_operation": 0.4,
        "fences_per_operation": 0.0021, "dirty_pages_per_checkpoint": 812.5, "epoch_ms": 104.2, "memory_bytes": 312e6,
        "memory_to_volatile": None if kind == "volatile" else 1.42, "disk_bytes": 64 << 20, "fill_ns": 812e6,
        "kill": {"restart_to_first_operation_ns": 31e6, "down_ns": 33e6, "operations_done": 1200345,
                 "operations_lost": 40210 if kind == "engine" else 0, "to_full_speed_ns": 12e6 if ratio > 0.1 else None},
        "a_new_figure": 4.2, "something_else": {"of": "another version"}, **more}


def four(scale=1.0):
    rows = [configuration("volatile", "volatile", 1.0), configuration("volatile-words", "volatile", 1.25),
            configuration(EVIL, "engine", 0.89 * scale), configuration("lmdb", "peer", 0.12 * scale),
            configuration("rocksdb-async", "peer", 0.04 * scale), configuration("sqlite", "peer", 0.0007 * scale)]
    return [{**row, "to_best_volatile": spread(row["to_volatile"]["median"] / 1.25)} for row in rows]


def cell(workload, family, rows, threads=2, reads=None, value_bytes=None, **more):
    parts = [workload, f"{threads} thread{'s' if threads > 1 else ''}"]
    if reads is not None:
        parts.append(f"{reads}:{100 - reads}")
    if value_bytes is not None:
        parts.append(f"{value_bytes} B")
    return {"workload": workload, "family": family, "unit": "operations", "threads": threads, "read_percent": reads,
            "value_bytes": value_bytes, "size": 0, "title": ", ".join(parts), "mix": None, "slice_ms": 300, "left_out": [],
            "configurations": rows, **more}


def by_interval():
    return [configuration("volatile", "volatile", 1.0),
            *(configuration(f"pmthreads {tracker} {interval} ms", "engine", ratio, interval_ms=interval)
              for tracker, ratios in (("uffd", (0.71, 0.89, 0.95)), ("mprotect", (0.01, 0.05, 0.2)))
              for interval, ratio in zip((10, 100, 1000), ratios))]


def continuing():
    def killed(sooner):
        return {"restart_to_first_operation_ns": 21e6, "down_ns": 22e6, "whole_job_ns": 900e6, "second_life_ns": 900e6 / sooner,
                "goes_on": sooner > 1.1, "steps_at_the_kill": 12, "sooner": sooner, "kills": 2,
                "each": [{"sooner": sooner * 0.9}, {"sooner": sooner * 1.2}, {"sooner": None}, "foreign"]}

    return [configuration("volatile", "volatile", 1.0, kill=killed(0.99)), configuration(EVIL, "engine", 0.97, kill=killed(2.8))]


def sparse():
    """The remains that an interrupted or a foreign run may leave."""
    return [{"name": "volatile", "engine": "volatile", "kind": "volatile", "rate": None},
            {"name": "pmthreads", "kind": "engine", "to_volatile": {"median": float("nan")}, "kill": None, "latency_ns": "none"},
            {}]


def document():
    mixes = [cell("btree", "key-value", four(1 - reads / 400), threads, reads, size)
             for threads, reads, size in ((1, 90, 8), (2, 90, 8), (2, 10, 8), (2, 90, 1024))]
    cells = [*mixes, cell("hash_map", "key-value", by_interval(), 2, 50, 8), cell("queue <b>one</b>", "queue", four(), left_out=["sqlite"]),
             cell("list", "structure", [configuration("volatile", "volatile", 1.0), configuration("pmthreads", "engine", 1.26)]),
             cell("pagerank", "continuing", continuing(), 1), cell("odd", "other", sparse()), {}]
    return {
        "format": "stillpoint-bench", "format_version": 1, "began": "2026-11-22T10:00:00+00:00",
        "command": "stillpoint bench --workload 'btree,<i>' --json run.json", "version": "stillpoint 1.0.0", "commit": "0123456789ab+",
        "compiler": "GNU 12.2.0", "complete": False, "future": [1, {"two": 3}],
        "machine": {"processor": "A processor <of> no make", "cpus": 2, "memory_bytes": 24 << 30, "kernel": "6.18", "system": None,
                    "load_before": 3.4},
        "options": {"workload": ["all"], "threads": [1, 2], "smoke": False, "repeat": 7},
        "skipped": [{"engine": "pmemobj", "reason": "pmemobj was not there when this Stillpoint was built",
                     "remedy": "apt-get install libpmemobj-dev, then build again (make)"}],
        "cells": cells,
        "bars": [{"text": "pmthreads/volatile>=0.5", "met": True, "reached": []},
                 {"text": "btree: lmdb/volatile>=0.85", "met": False,
                  "reached": [{"cell": "btree, 2 threads", "configuration": "lmdb", "value": 0.12, "met": False}]},
                 {"text": "missing/volatile>=1", "met": False, "reached": []}]}
