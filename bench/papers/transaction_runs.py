"""Runs of transactional programs by the protocols of one framework, and what the simulation of these protocols gives for more threads."""

import dataclasses
import json
import subprocess

from driver.build import make_sure_of
from driver.errors import UNAVAILABLE, BenchError

from . import model
from .figure import Run

SIMULATED = {"stamp_vacation_low": "vacation_low", "stamp_ssca2": "ssca2", "stamp_kmeans_vlow": "kmeans_vlow", "tpcc_payments": "tpcc"}
SIMULATED_SYSTEMS = {"spht-always": "SPHT-NL", "spht-forward": "SPHT-FL", "spht-backward": "SPHT-BL", "spht-nv-htm": "NV-HTM",
                     "spht-dudetm": "DudeTM", "spht-crafty": "Crafty", "spht-cc-htm": "cc-HTM", "spht-pstm": "PSTM"}
MACHINE = "measured_here"
TRANSACTIONS = 20_000


@dataclasses.dataclass(frozen=True)
class TransactionRun(Run):
    """Durable against power failures; the first engine is the one that ratios are taken to. `large`: STAMP's ++ inputs, scaled."""

    large: bool = False

    def facts(self, system, reads, value_bytes, operation_size):
        return {**super().facts(system, reads, value_bytes, operation_size), "large": self.large, "engine": system.engine}

    def title(self, reads, value_bytes, operation_size):
        return super().title(reads, value_bytes, operation_size) + (", ++" if self.large else "")

    def _arguments(self, systems):
        return [*super()._arguments(systems), "--durability", "power", *(["--large"] if self.large else [])]


def simulated_runs(measurements, workload, threads):
    """{(system, threads): run} of the discrete-event simulation (docs/internals/commit-model.md), or {}."""
    words = ["commit_model", "--machine", MACHINE, "--workload", workload, "--threads", ",".join(map(str, threads)), "--transactions",
             str(TRANSACTIONS), "--seed", "1"]

    def run(options):
        program = options.binaries / words[0]
        make_sure_of([program])
        if not program.is_file():
            raise BenchError(f"{program} was not built: make build-bench", UNAVAILABLE)
        done = subprocess.run([program, *words[1:], "--json", "-"], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)

    return {(one["system"], one["threads"]): one for one in measurements.of(words, run).get("runs", [])}


def error_of_ratio(row, found, system):
    """How far the simulated ratio to SPHT-NL is off at two threads, where this row has the measured one; None: it has none."""
    measured = row.values.get(2)
    if system == "SPHT-NL" or not isinstance(measured, tuple) or not isinstance(measured[1], dict) or (system, 2) not in found:
        return None
    return found[system, 2]["transactions_per_s"] / found["SPHT-NL", 2]["transactions_per_s"] / measured[1]["median"] - 1


def simulated(show):
    """For Figure.simulated: `show`: (the system's simulated run, SPHT-NL's) -> text. A rate's ratio stands with its error at two threads."""
    def texts(figure, measurements, row, _document):
        workload, system = SIMULATED.get(row.facts.get("workload")), SIMULATED_SYSTEMS.get(row.facts.get("engine"))
        if workload is None or system is None or row.facts.get("large"):
            return {}
        found = simulated_runs(measurements, workload, (2, *figure.model_threads))
        error = error_of_ratio(row, found, system)
        kind = "model" if error is None or model.is_trusted(error) else "model, not trustworthy"
        beside = "" if error is None else f" ({error:+.0%} at 2)"
        return {threads: f"{kind}: {show(found[system, threads], found['SPHT-NL', threads])}{beside}"
                for threads in figure.model_threads if (system, threads) in found}

    return texts
