"""The results as a page: docs/measured/tables/commit-model.md."""

import json
from pathlib import Path

from driver.report.markdown import safe, table
from driver.report.plots import Lines, key_of
from driver.tables import short

from .claims import CLAIMS, Runs

FOLDER = Path(__file__).resolve().parent
PAPER_MACHINE = "optane_two_sockets"
TITLES = {
    "vacation_low": "VACATION_LOW",
    "ssca2": "SSCA2",
    "kmeans_vlow": "KMEANS_VLOW",
    "tpcc": "TPC-C: 95 % Payment, 2 % New Order, 3 % Delivery",
}
MACHINES = {
    "optane_two_sockets": "the paper's machine",
    "measured_here": "64 cores of this kind, persistent memory as fast as DRAM, transactions in software",
}
# The one system without hardware transactions is drawn in grey, as other plots draw their baseline.
KINDS = {"PSTM": "volatile"}
PLOTTED = (1, 4, 8, 12, 16, 24, 32, 48, 64)
TABLED = (1, 2, 4, 8, 16, 32, 48, 64)

INTRODUCTION = """\
# The commit protocols on 64 threads, by simulation

This page is generated: `python3 bench/run.py commit_model --json build/commit-model.json --markdown docs/measured/tables/commit-model.md`.
Nothing on it ran on 64 threads: [a model](../../internals/commit-model.md) of the eight systems of SPHT's evaluation (FAST 2021), all with
immediate durability, gives these figures from costs of single steps. Costs of the paper's machine come from publications, costs of this
kind of machine were measured.
"""


def plot_name(model):
    return f"{TITLES[model['workload']].partition(':')[0]}, {MACHINES[model['machine']]}"


def plot_of(model):
    runs = Runs(model)
    series = [(system, [(at, runs.rate(system, threads), runs.rate(system, threads), runs.rate(system, threads))
                        for at, threads in enumerate(PLOTTED)]) for system in runs.systems]
    return Lines(key_of(model["workload"], model["machine"]), plot_name(model), "threads", "transactions/s",
                 [str(threads) for threads in PLOTTED], series, False, short)


def plots_of(document):
    return [plot_of(model) for model in document["models"]]


def claims_table(document):
    models = {model["workload"]: Runs(model) for model in document["models"] if model["machine"] == PAPER_MACHINE}
    rows = [[claim.where, TITLES[claim.workload].partition(":")[0], claim.text, claim.paper, claim.model(models[claim.workload])]
            for claim in CLAIMS]
    return table(["section", "workload", "statement", "the paper", "the model"], rows)


def markers_table(document):
    """The rate at which markers can follow each other, and the highest throughput of the system that needs one after the other."""
    rows = []
    for machine, says in MACHINES.items():
        costs = json.loads((FOLDER / "machines" / f"{machine}.json").read_text(encoding="utf-8"))
        flush_ns, transfer_ns = (costs[name]["value"] for name in ("flush_again_ns", "line_transfer_ns"))
        for model in document["models"]:
            if model["machine"] == machine:
                runs = Runs(model)
                highest = {system: max(runs.rate(system, threads) for threads in runs.threads) for system in ("NV-HTM", "SPHT-NL")}
                rows.append([safe(says.partition(",")[0]), TITLES[model["workload"]].partition(":")[0],
                             f"{flush_ns:.0f} + {transfer_ns:.0f} ns",
                             f"{1e3 / (flush_ns + transfer_ns):.2f}", f"{highest['NV-HTM'] / 1e6:.2f}", str(runs.scales_to("NV-HTM")),
                             f"{highest['SPHT-NL'] / 1e6:.2f}", str(runs.scales_to("SPHT-NL"))])
    return table(["machine", "workload", "marker and hand-over", "markers, M/s", "NV-HTM's highest, M/s", "at threads",
                  "SPHT-NL's highest, M/s", "at threads"], rows)


def rates_table(runs):
    rows = [[system, *(f"{runs.rate(system, threads) / 1e6:.2f}" for threads in TABLED), str(runs.scales_to(system))]
            for system in runs.systems]
    return table(["millions of transactions/s", *map(str, TABLED), "gains up to"], rows)


def shares_table(runs, threads):
    rows = []
    for system in runs.systems:
        shares = [f"{100 * runs.inside(system, threads, activity):.0f} %" for activity in ("committed", "aborted", "lock", "commit_phase")]
        rows.append([system, *shares, f"{100 * runs.aborts(system, threads):.1f} %"])
    return table([f"at {threads} threads", "attempts that commit", "attempts that abort", "global lock", "commit phase",
                  "attempts aborted"], rows)


def model_lines(model, stem):
    runs = Runs(model)
    lines = [f"### {plot_name(model)}", "", f"![{plot_name(model)}](figures/{stem}-plot-{plot_of(model).key}.svg)", "",
             *rates_table(runs), ""]
    for threads in (16, 64):
        lines += [*shares_table(runs, threads), ""]
    return lines


def text_of(document, stem):
    lines = [INTRODUCTION, f"Each run has {document['transactions']:,} transactions of all threads together; seed {document['seed']}.", "",
             "## The model beside measurements", "",
             "Real threads run the commit phases of four systems ([commit_phases](../../../bench/model/commit_phases.cpp)), and the model is",
             "given the same work. DudeTM and cc-HTM have a thread of their own, so on two processors one thread of the program is measured.",
             "", *(f"    {line}" for line in document["validation"].splitlines()), "",
             "## The model beside the paper", "",
             "What the paper's text states, and the model for the paper's machine. \"Gains up to\": the fewest threads whose throughput is",
             "within a twentieth of the highest.", "", *claims_table(document), "",
             "## Where sequential markers stop scaling", "",
             "NV-HTM's markers follow each other: one is flushed, then the next thread sees it and flushes its own. The rate of that chain is a",
             "bound that no number of threads lifts. SPHT moves one marker for all transactions that wait, and is not bound by it.", "",
             *markers_table(document), ""]
    for machine, says in MACHINES.items():
        lines += [f"## On {safe(says)}", "",
                  "Shares are of the time inside transactions; \"global lock\" is holding it and waiting for it.", ""]
        for model in document["models"]:
            if model["machine"] == machine:
                lines += model_lines(model, stem)
    return "\n".join(lines).rstrip() + "\n"
