#!/usr/bin/env python3
"""What respct costs, part by part: makes docs/measured/tables/respct.md.

Every part is runs of `stillpoint bench`; a run that was made is kept.

  python3 bench/respct_costs.py --json run.json --markdown docs/measured/tables/respct.md      everything, half an hour on an idle machine
  python3 bench/respct_costs.py --part structures --json run.json --again                  one part again, the others as in run.json
  python3 bench/respct_costs.py --quick                                                    does it work; measures nothing

Exit code 1: a bar fell short.
"""

import argparse
import dataclasses
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Callable

from driver.report.markdown import safe, table
from driver.tables import duration, lines_of, of, ratio, short

ROOT = Path(__file__).resolve().parent.parent
FORMAT, FORMAT_VERSION = "stillpoint-respct-bench", 1
SLOW_LOAD = 0.5  # an average that says that other work ran

INTRODUCTION = """\
# What respct costs

This page is generated: `python3 bench/respct_costs.py --json run.json --markdown docs/measured/tables/respct.md`. Every ratio is to
the same source compiled and linked without Stillpoint (volatile), between slices of one round of one run, some hundred milliseconds
apart; the median of the rounds is given with its quartiles. Pools lie in shared memory and must survive power
(`--durability power`), so every line is written back by the processor's own instruction; an interval is 64 ms where nothing
else is said. [bench](../../../bench/README.md) says how it is measured,
[papers.md](papers.md) has the same figures beside the paper's.
"""


def rate_of(row):
    return f"{short(row['rate']['median'])}/s" if row.get("rate") else "-"


def ratio_of(row):
    found = row["to_volatile"]
    return "-" if found is None else f"{ratio(found['median'])} ({ratio(found['low'])} to {ratio(found['high'])})"


def cpu_of(row, cell):
    base = next(one for one in cell["configurations"] if one["kind"] == "volatile")
    mine, theirs = of(row, "cpu_ns_per_operation", "median"), of(base, "cpu_ns_per_operation", "median")
    return f"{mine / theirs:.2f}" if mine and theirs else "-"


def number(value):
    return "-" if value is None else short(value)


def ratios(cells):
    """A row for each configuration of each cell."""
    headings = ["work", "threads", "", "operations", "of volatile", "CPU of volatile's", "stop p50", "p99", "max", "lines a checkpoint",
                "fences a checkpoint"]
    rows = []
    for cell in cells:
        name = " ".join(filter(None, [cell["workload"], cell["mix"]]))
        for row in cell["configurations"]:
            rows.append([safe(name), str(cell["threads"]), safe(row["name"]), rate_of(row), ratio_of(row), cpu_of(row, cell),
                         *(duration(of(row, "stop_ns", rank)) for rank in ("p50", "p99", "max")),
                         number(row.get("lines_written_back_per_checkpoint")), number(row.get("fences_per_checkpoint"))])
    return table(headings, rows)


def slowdowns(cells):
    """The time of each job against volatile's."""
    rows = [[safe(cell["workload"]), str(cell["threads"]), safe(row["name"]), f"{1 / row['to_volatile']['median']:.3f}", cpu_of(row, cell),
             number(row.get("lines_written_back_per_checkpoint"))]
            for cell in cells for row in cell["configurations"] if row["kind"] != "volatile"]
    return table(["program", "threads", "", "time, of volatile's", "CPU of volatile's", "lines a checkpoint"], rows)


def periods(cells):
    rows = [[f"{row['interval_ms']} ms", "-" if row["epoch_ms"] is None else f"{row['epoch_ms']:.1f} ms", ratio_of(row), cpu_of(row, cell),
             *(duration(of(row, "stop_ns", rank)) for rank in ("p50", "p99", "max")), number(row.get("lines_written_back_per_checkpoint"))]
            for cell in cells for row in cell["configurations"] if row["kind"] != "volatile"]
    return table(["asked for", "reached", "of volatile", "CPU of volatile's", "stop p50", "p99", "max", "lines a checkpoint"], rows)


def recoveries(cells):
    rows = []
    for cell in cells:
        for row in cell["configurations"]:
            if row["kill"]:
                rows.append([short(cell["size"] / 2), safe(row["name"]), duration(row["kill"].get("recovery_ns")),
                             duration(row["kill"]["restart_to_first_operation_ns"]), duration(row.get("fill_ns"))])
    return table(["buckets, keys", "", "recovery", "restart to the first operation", "filling it at first"], rows)


def placements(cells):
    usual = {(cell["workload"], cell["threads"]): row["rate"]["median"] for cell in cells if cell["operation_size"] is None
             for row in cell["configurations"] if row["kind"] == "volatile"}
    rows = [[safe(cell["workload"]), str(cell["threads"]), "its own" if cell["operation_size"] is None else f"{cell['operation_size']:,}",
             safe(row["name"]), f"{usual[cell['workload'], cell['threads']] / row['rate']['median']:.2f}"]
            for cell in cells for row in cell["configurations"]]
    return table(["program", "threads", "in an operation", "", "time, of volatile's with its own"], rows)


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    title: str
    says: str
    commands: tuple  # arguments of `stillpoint bench`
    table: Callable  # cells -> lines


MIXES = "--mix 90:10,50:50,10:90"
PROGRAMS = ("dedup", "swaptions", "matrix_multiply", "linear_regression")
PARTS = (
    Part("structures", "Hash map and queue", "The hash map has 1M buckets with a mutex each and 2M keys, of which half are there; a mix is "
         "reads:updates. The queue has one lock. volatile-words is the volatile program with locks of one word, as respct has them, in place of "
         "pthread's: what of a ratio is due to the locks.",
         (f"--workload hash_map {MIXES} --threads 1,2 --engine respct,pmthreads,pmemobj,volatile-words --interval 64 --no-kill",
          "--workload queue --threads 1,2 --engine respct,pmthreads,pmemobj,volatile-words --interval 64 --no-kill"), ratios),
    Part("programs", "The four programs", "Time of a job, restart points after blocks of work. Of dedup's pipeline, whose stages wait for "
         "each other through condition variables, at two threads.",
         (f"--workload {','.join(PROGRAMS)} --threads 1,2 --engine respct,pmthreads --interval 64",), slowdowns),
    Part("ablation", "What it is made of", "respct-tracking logs and tracks, and takes no checkpoint; respct-noflush takes checkpoints and "
         "writes no line back; respct-stop writes lines back while the threads are held, as the paper does; respct does so beside "
         "the program.",
         ("--workload hash_map,queue --mix 90:10,10:90 --threads 2 --engine respct-tracking,respct-noflush,respct-stop,respct "
          "--interval 64 --no-kill",), ratios),
    Part("periods", "By the period of checkpoints", "Hash map, 90 % updates, 2 threads.",
         ("--workload hash_map --mix 10:90 --threads 2 --engine respct --interval 1,2,4,8,16,32,64 --no-kill",), periods),
    Part("recovery", "Recovery by the number of buckets", "Hash map, 90 % updates, killed; as many keys as buckets are there. The recovery "
         "is the library's, from opening the pool to main.",
         tuple(f"--workload hash_map --mix 10:90 --threads 2 --engine respct --interval 64 --size {keys} --kills 3"
               for keys in (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)), recoveries),
    Part("placement", "Restart points placed well and badly", "Points, trials or elements of an operation, which ends at a restart point. "
         "The volatile program takes a lock for each operation, so it is slower with small ones too.",
         ("--workload linear_regression --threads 2 --engine respct --interval 64 --size 4000000 --operation-size 0,1000,1",
          "--workload swaptions,matrix_multiply --threads 2 --engine respct --interval 64 --operation-size 0,1"), placements),
)
# What a part's command must reach, by its number.
BARS = {
    ("structures", 0): ["hash_map 90:10: respct/volatile>=0.95", "hash_map 50:50: respct/volatile>=0.93",
                        "hash_map 10:90: respct/volatile>=0.91", "hash_map: respct/pmemobj>=10"],
    ("structures", 1): ["queue: respct/volatile>=0.75"],
    ("programs", 0): [f"{name}: respct/volatile>={1 / 1.15:.4f}" for name in PROGRAMS],  # at most 1.15 times the time
    ("recovery", 4): ["hash_map: respct.recovery_alone<=240ms"],
}


def measured(words, options):
    """The document of one run."""
    command = [str(Path(options.binaries) / "stillpoint"), "bench", *words, "--quiet", "--json", "-"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"bench/respct_costs.py: {shlex.join(command)} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def commands_of(part, options):
    """The words of each command of a part, with the bars that belong to it."""
    found = []
    for at, command in enumerate(part.commands):
        words = [*shlex.split(command), "--durability", "power"]
        if options.quick:
            if "--size" in words:
                del words[words.index("--size"):words.index("--size") + 2]
            found.append([*words, "--smoke"])
            continue
        for bar in BARS.get((part.name, at), []):
            words += ["--bar", bar]
        found.append([*words, "--seconds", str(options.seconds), "--repeat", str(options.repeat)])
    return found


def run(options):
    """{part: [documents]}."""
    path = Path(options.json) if options.json else None
    whole = {"format": FORMAT, "format_version": FORMAT_VERSION, "quick": options.quick, "parts": {}}
    if path and path.is_file():
        whole = json.loads(path.read_text())
        if whole.get("format") != FORMAT or whole.get("format_version") != FORMAT_VERSION:
            sys.exit(f"bench/respct_costs.py: {path} has no results of this version; name another file with --json")
    for part in PARTS:
        if part.name not in options.part or (part.name in whole["parts"] and not options.again):
            continue
        documents = []
        for words in commands_of(part, options):
            print(f"stillpoint bench {shlex.join(words)}", file=sys.stderr, flush=True)
            documents.append(measured(words, options))
        whole["parts"][part.name] = documents
        if path:
            path.write_text(json.dumps(whole, indent=1) + "\n")
    return whole


def conditions(documents):
    machine = documents[0]["machine"]
    loads = [one["machine"]["load_before"] for one in documents]
    busy = " Other work ran beside it: single figures are off by 20 % and more." if max(loads) > SLOW_LOAD * machine["cpus"] else ""
    return (f"Measured {documents[0]['began'][:10]} on {machine['cpus']} CPUs ({safe(machine['processor'])}), {safe(machine['system'])}, "
            f"Linux {safe(machine['kernel'])}, commit {documents[0]['commit']}, load average before {min(loads):.1f} to {max(loads):.1f}.{busy}")


def tell_bars(documents):
    """What was asked of the run goes to standard error: a reader of the page wants figures."""
    rows = []
    for verdict in (one for document in documents for one in document["bars"]):
        values = [one["value"] for one in verdict["reached"]]
        scale, unit = (1e6, " ms") if "ms" in verdict["text"] else (1, "")
        reached = f"{min(values) / scale:.3g}{unit} to {max(values) / scale:.3g}{unit}" if values else "no cell has it"
        rows.append([verdict["text"], reached, "met" if verdict["met"] else "missed"])
    for line in lines_of(["bar", "reached", ""], rows) if rows else []:
        print(line, file=sys.stderr)


def page(whole):
    documents = [one for part in whole["parts"].values() for one in part]
    lines = [INTRODUCTION, conditions(documents), ""]
    if whole["quick"]:
        lines += ["This was a quick run: small inputs, slices of 30 ms. It shows that everything works and measures nothing.", ""]
    for part in PARTS:
        if part.name in whole["parts"]:
            cells = [cell for one in whole["parts"][part.name] for cell in one["cells"]]
            lines += [f"## {part.title}", "", part.says, "", *part.table(cells), "", "Made by:", "",
                      *(f"    {one['command']}" for one in whole["parts"][part.name]), ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=[part.name for part in PARTS], help="only this one; several times")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="time of each configuration in each cell (default 3)")
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="rounds, at least (default 9)")
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that it works, measures nothing")
    parser.add_argument("--json", metavar="FILE", help="keep what was measured; what FILE has is not measured again")
    parser.add_argument("--again", action="store_true", help="measure the parts again that FILE has")
    parser.add_argument("--markdown", metavar="FILE", help="write the page; else it is printed")
    parser.add_argument("--binaries", default=str(ROOT / "build" / "bin"), help="folder of the build's programs (default build/bin)")
    options = parser.parse_args()
    options.part = options.part or [part.name for part in PARTS]
    whole = run(options)
    text = page(whole)
    tell_bars([one for part in whole["parts"].values() for one in part])
    if options.markdown:
        Path(options.markdown).write_text(text)
    else:
        print(text)
    return 0 if all(bar["met"] for part in whole["parts"].values() for one in part for bar in one["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
