"""A figure and the documents of its runs, made into rows: the paper's number, ours at one and two threads, the model's."""

import dataclasses
import math

from . import model

NO_NUMBER = "no number"


@dataclasses.dataclass
class Row:
    what: str
    system: str
    paper: str
    ours: dict  # threads -> text
    modelled: dict = dataclasses.field(default_factory=dict)  # threads -> text
    note: str = ""
    facts: dict = dataclasses.field(default_factory=dict)
    values: dict = dataclasses.field(default_factory=dict)  # threads -> number or tuple
    error_at_two: float = None


def is_of(row, system):
    """Whether a configuration's row of the JSON is this system's."""
    if row["engine"] != system.engine:
        return False
    return all(wanted is None or row.get(name) == wanted
               for name, wanted in (("tracker", system.tracker), ("interval_ms", system.interval_ms)))


def find(document, run, reads, value_bytes, operation_size, threads, system):
    """(the cell, the system's row, volatile's row), or Nones."""
    for cell in document.get("cells", []):
        if (cell["workload"], cell["threads"]) != (run.workload, threads):
            continue
        # A workload with a mix or size of its own has none in its cell, whatever was asked for; one that was not asked has the usual.
        if any(None not in (cell.get(name), wanted) and cell[name] != wanted
               for name, wanted in (("read_percent", reads), ("value_bytes", value_bytes))):
            continue
        if cell.get("operation_size") != operation_size:
            continue
        mine = next((row for row in cell["configurations"] if is_of(row, system)), None)
        base = next((row for row in cell["configurations"] if row["kind"] == "volatile"), None)
        return cell, mine, base
    return None, None, None


def machine_here(measurements):
    bandwidths = measurements.document.get("bandwidths") or {}
    return model.Machine(measurements.document["cpus"], bandwidths.get("copy_bytes_per_s", math.inf),
                         bandwidths.get("medium_bytes_per_s", math.inf))


def median(row, name):
    return row[name]["median"] if row.get(name) else None


def cost_from(row, base, system):
    """The engine's costs as its row at one thread shows them."""
    return model.cost_of(
        median(base, "rate"), median(row, "rate"), system.first_write_ns, (row.get("epoch_ms") or 0.0) * 1e6,
        row.get("dirty_pages_per_checkpoint") or 0.0, (row.get("stop_ns") or {}).get("p50", 0.0),
        median(row, "cpu_ns_per_operation") or 0.0,
        (row.get("interval_ms") or 0) * 1e6, (base.get("memory_bytes") or 0) / model.PAGE_BYTES)


def add_model(figure, row, system, found, machine):
    """Predictions for the paper's threads, each with what the same model says of two threads here."""
    (_, one, base_one), (_, two, base_two) = found[1], found[2]
    if not all((one, two, base_one, base_two)) or not median(one, "rate") or not median(two, "rate"):
        return
    program = model.Program(median(base_one, "rate"), median(base_two, "rate"))
    cost = cost_from(one, base_one, system)
    is_baseline = one["kind"] == "volatile"
    if not is_baseline:
        row.error_at_two = model.error_at_two(machine, program, cost, median(two, "rate"))
    share = model.share_of_a_core(median(base_one, "rate"), median(base_one, "cpu_ns_per_operation"))
    remark = f"serial part {program.serial_fraction:.0%}" if is_baseline else f"{row.error_at_two:+.0%} at 2"
    if share < model.TRUSTED_SHARE:
        remark += f"; machine busy, {share:.0%} of a core"
    trusted = model.is_trusted(0.0 if is_baseline else row.error_at_two, share)
    theirs = dataclasses.replace(machine, cores=figure.model_cores or max(figure.model_threads))
    for threads in figure.model_threads:
        value = figure.reading.modelled(model.predict(theirs, program, cost, threads))
        if value is None:
            continue
        row.modelled[threads] = f"model{'' if trusted else ', not trustworthy'}: {figure.reading.show(value)} ({remark})"


def paper_says(figure, facts):
    return "; ".join(f"{one.value} ({one.where})" for one in figure.stated if one.belongs_to(facts))


def row_of(figure, run, system, place, documents, machine):
    """`documents`: of each system's command; the row of one system in one cell. `place`: of run.cells()."""
    facts = run.facts(system, *place)
    row = Row(run.title(*place), system.name, paper_says(figure, facts) or NO_NUMBER, {}, facts=facts)
    document = documents[system.name]
    found = {threads: find(document, run, *place, threads, system) for threads in run.threads}
    for threads, (cell, mine, _) in found.items():
        if mine is not None and figure.reading.to_usual_operations:
            usual = find(document, run, *place[:2], None, threads, system)
            cell = {**cell, "usual_base": usual[2]}
        value = None if mine is None else figure.reading.value(mine, cell)
        if value is not None:
            row.values[threads] = value
            row.ours[threads] = figure.reading.show(value) + (figure.reading.beside(mine, cell) if figure.reading.beside else "")
    if not row.ours:
        row.note = "the run was too short for a figure" if any(mine for _, mine, _ in found.values()) else "not able to do this workload"
    if figure.model_threads and figure.reading.modelled and {1, 2} <= set(found):
        add_model(figure, row, system, found, machine)
    return row


def absent_row(figure, run, system, place, reason):
    """A system or workload that is not here: a row if the paper states a number for it, otherwise None."""
    facts = run.facts(system, *place)
    said = paper_says(figure, facts)
    return Row(run.title(*place), system.name, said, {}, note=reason, facts=facts) if said else None


def geometric_mean(numbers):
    return math.exp(sum(math.log(number) for number in numbers) / len(numbers))


def mean_rows(figure, rows):
    """For each group of workloads and each system: the mean over the workloads that have a figure."""
    made = []
    for name, workloads in figure.means:
        systems = dict.fromkeys([*(row.system for row in rows),
                                 *(one.row["system"] for one in figure.stated if one.row and one.row.get("mean") == name)])
        for system in systems:
            facts = {"mean": name, "system": system}
            mean = Row(f"geometric mean, {name}", system, paper_says(figure, facts) or NO_NUMBER, {}, facts=facts)
            members = [row for row in rows if row.system == system and row.facts.get("workload") in workloads]
            for threads in (1, 2):
                values = [row.values[threads] for row in members if threads in row.values]
                if values:
                    mean.values[threads] = geometric_mean(values)
                    mean.ours[threads] = f"{figure.reading.show(mean.values[threads])} of {len(values)}"
            if mean.ours:
                mean.note = f"{len(workloads) - max(len([r for r in members if r.values]), 0)} of {len(workloads)} workloads without a figure"
            elif mean.paper == NO_NUMBER:
                continue
            else:
                mean.note = "not here"
            made.append(mean)
    return made


def rows_of(figure, measurements, known):
    """(rows, remarks): remarks name the systems and workloads that are left out, once each."""
    rows, remarks = [], {}
    machine = machine_here(measurements)
    for run in figure.runs:
        missing = run.why_not_here(known)
        documents = {}
        if missing is None:
            for systems, arguments in run.commands(known.engines_here):
                document = run.document(measurements, arguments)
                documents.update((system.name, document) for system in systems)
        else:
            remarks.setdefault(missing, []).append(run.label or run.workload)
        for place in run.cells():
            for system in run.systems:
                if system.engine == "volatile" and not figure.reading.of_volatile:
                    continue
                reason = run.why_without(system, known)
                if reason is not None and missing is None:
                    remarks.setdefault(reason, []).append(system.name)
                if reason is None and missing is None and "failed" in documents[system.name]:
                    remarks.setdefault(f"not measured ({documents[system.name]['failed']})", []).append(system.name)
                    reason = "not measured"
                if reason is None and missing is None:
                    rows.append(row_of(figure, run, system, place, documents, machine))
                    if figure.simulated and rows[-1].ours:
                        rows[-1].modelled.update(figure.simulated(figure, measurements, rows[-1], documents[system.name]))
                    if rows[-1].note and rows[-1].paper == NO_NUMBER:
                        remarks.setdefault(rows[-1].note, []).append(f"{rows[-1].what} by {system.name}")
                        rows.pop()
                else:
                    rows.append(absent_row(figure, run, system, place, missing or reason))
    rows = [row for row in rows if row is not None]
    means = mean_rows(figure, rows)
    shown = means if figure.only_means else rows + means
    return shown, [f"{reason}: {', '.join(dict.fromkeys(names))}" for reason, names in remarks.items()]
