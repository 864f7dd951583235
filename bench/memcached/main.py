"""The command: measures, shows, writes."""

import shlex
import sys

from driver import bars, tables
from driver.benchmark import bench_of
from driver.documents import read_json, write_json
from driver.errors import FELL_SHORT, INTERRUPTED, UNAVAILABLE, WRONG_RESULT, BenchError
from driver.record import first_line, record
from driver.sides import ToolError

from . import command_line, document
from .clients import Generator
from .parts import INTERVAL_MS, Bench
from .servers import Kind, shown_path, stock_program
from .shown import tables_of

ENDED_EARLY = "the run ended early: "


def kinds_of(options, remarks):
    """The servers that are here: stock first, it is what ratios are taken to."""
    stock = stock_program(options.stock)
    if stock != options.stock:
        remarks.append(f"stock is {stock}, the system's own build: {shown_path(options.stock)} is missing")
    kinds = [Kind("stock", stock)]
    if options.control:
        kinds.append(Kind("stock again", stock))
    for name, program in (("durable", options.durable), ("hooks", options.hooks)):
        if program.is_file():
            kinds.append(Kind(name, program, "process", INTERVAL_MS,
                              " ".join(filter(None, [options.pool_options, "tracker=hooks" if name == "hooks" else ""]))))
        else:
            remarks.append(f"left out: {name}: {shown_path(program)} is missing; {command_line.BUILD_REMEDY}")
    if options.breeze:
        if not options.breeze.is_file():
            raise BenchError(f"{shown_path(options.breeze)} is missing; {command_line.BUILD_REMEDY}, with --variants breeze", UNAVAILABLE)
        kinds.append(Kind("breeze", options.breeze, "process"))
    return kinds


def steps_of(options, kinds):
    """The step that Bench.measure() says that it begins."""
    mixes, has_pool = len(options.mix), any(kind.has_checkpoints for kind in kinds)
    steps = {"throughput": 3 * mixes, "latency": mixes}
    if has_pool:
        steps |= {"intervals": 1 + len(options.interval), "power": 1 + 2 * mixes}
    return sum(steps.get(part, 0) for part in options.part) + 1


def verdicts(options, kinds, cells):
    """Without those on what is not here, or was not asked for."""
    here = {kind.name for kind in kinds}
    found = bars.judge([one for one in options.bars if one.name in here], cells)
    return [one for one in found if one["reached"] or (options.must_reach and options.part == list(command_line.PARTS))]


def measure(options, arguments):
    """The result as a document; "complete" is false where it was interrupted."""
    remarks = []
    kinds = kinds_of(options, remarks)
    facts = record(shlex.join(["python3", "bench/run.py", "memcached", *arguments]),
                   first_line([options.binaries / "stillpoint", "--version"]), None,
                   {name: value for name, value in vars(options).items() if isinstance(value, (int, float, str, list, bool))
                    and name != "bars"})
    complete = True
    with bench_of("memcached", options) as whole:
        whole.progress.plan(steps_of(options, kinds))
        if whole.place.folders["memory"] is None:
            raise BenchError("/dev/shm cannot be written: the pools of durability `process` lie there", UNAVAILABLE)
        bench = Bench(whole, Generator(options), kinds)
        try:
            bench.measure()
        except KeyboardInterrupt:
            complete = False
        except (BenchError, ToolError) as failure:
            if not bench.cells:
                raise
            complete = False
            bench.remarks.append(f"{ENDED_EARLY}{failure}")
    return {"format": document.FORMAT, "format_version": document.FORMAT_VERSION, **facts, "complete": complete,
            "servers": [kind.facts() for kind in kinds], "remarks": remarks + bench.remarks, "cells": bench.cells,
            "intervals": bench.intervals, "memory": bench.memory, "bars": verdicts(options, kinds, bench.cells)}


def show(result):
    for heading, remark, columns, rows in tables_of(result):
        print(f"\n{heading}\n  {remark}\n")
        for line in tables.lines_of(columns, rows):
            print("  " + line)
    print()
    for remark in result["remarks"]:
        print(remark)
    for line in tables.bar_lines(result["bars"]):
        print(line)


def write(result, options):
    if options.json:
        write_json(result, options.json)
    if options.markdown:
        print(f"report: {document.write(result, options.markdown)}", file=sys.stderr)
    if options.json != "-":
        show(result)


def main(_module, _name, arguments):
    options = command_line.parse(arguments)
    if options.markdown:
        document.make_sure_of_plots(arguments)
    if options.report:
        write(read_json(options.report, document.FORMAT, document.FORMAT_VERSION), options)
        return 0
    result = measure(options, arguments)
    write(result, options)
    if not result["complete"]:
        failures = [remark for remark in result["remarks"] if remark.startswith(ENDED_EARLY)]
        print(f"memcached.py: {''.join(failures) or 'interrupted'}; the result is what was measured until then", file=sys.stderr)
        return WRONG_RESULT if failures else INTERRUPTED
    return FELL_SHORT if options.must_reach and not all(bar["met"] for bar in result["bars"]) else 0
