"""Runs commit_model for all workloads on two machines, and shows the results next to the paper's."""

import json
import subprocess
from pathlib import Path

from driver import benchmark
from driver.build import make_sure_of
from driver.documents import read_json, write_json, write_text
from driver.errors import UNAVAILABLE, BenchError
from driver.progress import Progress
from driver.report import draw_plots, make_sure_of_matplotlib
from driver.sides import ROOT

from . import page

FORMAT = "stillpoint-commit-models"
FORMAT_VERSION = 1
MACHINES = ("optane_two_sockets", "measured_here")
WORKLOADS = ("vacation_low", "ssca2", "kmeans_vlow", "tpcc")
THREADS = (1, 2, 4, 8, 12, 16, 20, 24, 32, 33, 40, 48, 56, 64)
VALIDATION = ROOT / "bench" / "model" / "measured" / "commit_only.json"


def parse(arguments):
    made = benchmark.parser("commit_model", "What SPHT and the systems that it is compared with reach on 1 to 64 threads, by simulation.",
                            seconds=None)
    made.add_argument("--transactions", type=int, default=20_000, metavar="N", help="of each run (default %(default)d)")
    made.add_argument("--from", metavar="FILE", dest="saved", help="run nothing: show an earlier --json FILE")
    made.add_argument("--markdown", metavar="FILE", help="write the page, and its plots to the folder figures beside it")
    made.add_argument("--no-plots", action="store_true", help="with --markdown: the page alone, which needs no matplotlib")
    return made.parse_args(arguments)


def output_of(program, *words):
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def run(options):
    program = options.binaries / "commit_model"
    make_sure_of([program])
    if not program.is_file():
        raise BenchError(f"{program} was not built: make build-bench", UNAVAILABLE)
    transactions = 2000 if options.quick else options.transactions
    progress = Progress(options.quiet)
    progress.plan(len(MACHINES) * len(WORKLOADS))
    models = []
    try:
        for machine in MACHINES:
            for workload in WORKLOADS:
                progress.step(f"{workload} on {machine}")
                text = output_of(program, "--machine", machine, "--workload", workload, "--threads", ",".join(map(str, THREADS)),
                                 "--transactions", transactions, "--seed", options.seed, "--json", "-")
                models.append(json.loads(text))
    finally:
        progress.end()
    return {"format": FORMAT, "format_version": FORMAT_VERSION, "transactions": transactions, "seed": options.seed, "models": models,
            "validation": output_of(program, "--validate", VALIDATION, "--seed", options.seed)}


def main(_module, _name, arguments):
    options = parse(arguments)
    if options.markdown and not options.no_plots:
        make_sure_of_matplotlib("--markdown", ROOT / "bench" / "run.py", ["commit_model", *arguments])
    document = read_json(options.saved, FORMAT, FORMAT_VERSION) if options.saved else run(options)
    if options.json:
        write_json(document, options.json)
    if options.markdown:
        path = Path(options.markdown)
        write_text(path, page.text_of(document, path.stem))
        if not options.no_plots:
            draw_plots(path.parent / "figures", f"{path.stem}-plot", page.plots_of(document), page.KINDS)
    elif options.json != "-":
        print(page.text_of(document, "commit-model"))
    return 0
