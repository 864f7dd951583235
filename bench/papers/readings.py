"""How a figure's number is read out of a run's JSON, how it is shown, and what of it the scaling model can tell."""

import dataclasses
from typing import Callable

from driver.tables import duration, of, percent, short

PAGE_BYTES = 4096


def mebibytes(count):
    return f"{count / 2**20:.3g} MiB"


@dataclasses.dataclass(frozen=True)
class Reading:
    """`value`: of (a configuration's row, its cell), None where it has none. `modelled`: of a Prediction, in the same form."""

    heading: str
    value: Callable
    show: Callable
    modelled: Callable = None
    of_volatile: bool = True  # the baseline has a row too
    to_usual_operations: bool = False  # value() gets a cell with "usual_base": volatile's row at the workload's own operation size
    beside: Callable = None  # a second figure, of the same arguments, that stands behind the first


def cpu_to_volatile(row, cell):
    """CPU time of an operation, checkpoints included, against volatile's: what other programs on the machine distort least."""
    mine = of(row, "cpu_ns_per_operation", "median")
    base = next((of(one, "cpu_ns_per_operation", "median") for one in cell["configurations"] if one["kind"] == "volatile"), None)
    return f", CPU {mine / base:.2f}x" if mine and base and row["kind"] != "volatile" else ""


def slowdown(row, _cell):
    ratio = of(row, "to_volatile", "median")
    return 1 / ratio if ratio else None


def slowdown_to_usual(row, cell):
    """The slowdown of a placement of restart points, against the program without an engine that has operations of its own size."""
    rate, base = of(row, "rate", "median"), of(cell.get("usual_base"), "rate", "median")
    return base / rate if rate and base else None


def rate_and_ratio(row, _cell):
    rate, ratio = of(row, "rate", "median"), of(row, "to_volatile", "median")
    return None if rate is None else (rate, ratio)


def show_rate(value):
    return f"{short(value[0])}/s" + ("" if value[1] is None else f" ({value[1]:.2f})")


def latency(row, cell):
    """Mean time of an operation on its thread, and how many times volatile's."""
    rate, ratio = of(row, "rate", "median"), of(row, "to_volatile", "median")
    return None if not rate else (1e9 * cell["threads"] / rate, 1 / ratio if ratio else None)


def show_latency(value):
    return duration(value[0]) + ("" if value[1] is None else f" ({value[1]:.1f}x)")


def bytes_of_checkpoint(row, _cell):
    """Bytes that went to the medium at each checkpoint: whole dirty pages."""
    pages = of(row, "dirty_pages_per_checkpoint")
    return None if pages is None else pages * PAGE_BYTES


def bytes_saved(row, _cell):
    """The bytes that the program changed in an interval minus what went to the medium. Negative where single words of many pages change."""
    written, for_each_changed = of(row, "dirty_pages_per_checkpoint"), of(row, "bytes_written_per_byte_changed")
    if not written or not for_each_changed:
        return None
    return written * PAGE_BYTES * (1 / for_each_changed - 1)


def stops(row, _cell):
    found = of(row, "stop_ns")
    return None if found is None else (found["p50"], found["p99"], found["max"])


def show_stops(value):
    return " / ".join(duration(one) for one in value if one is not None)


def kill(row, _cell):
    """(operations done, percent lost, restart in ns, bytes of the pool's files)."""
    done, lost = of(row, "kill", "operations_done"), of(row, "kill", "operations_lost")
    if not done:
        return None
    return done, 100 * lost / done, of(row, "kill", "restart_to_first_operation_ns"), of(row, "disk_bytes")


def show_kill(value):
    done, lost, restart, size = value
    return f"{short(done)} done, {lost:.3g} % lost, restart {duration(restart)}" + (f", pool {mebibytes(size)}" if size else "")


def restart(row, _cell):
    return of(row, "kill", "restart_to_first_operation_ns")


def recovery(row, _cell):
    """(the engine's own recovery, the restart of the process to its first operation)."""
    whole = restart(row, _cell)
    return None if whole is None else (of(row, "kill", "recovery_ns"), whole)


def show_recovery(value):
    return f"{duration(value[0])}, restart {duration(value[1])}" if value[0] else f"restart {duration(value[1])}"


def period(row, _cell):
    """Share of volatile's rate, and the mean time between two checkpoints as reached."""
    ratio, epoch_ms = of(row, "to_volatile", "median"), of(row, "epoch_ms")
    return None if ratio is None or epoch_ms is None else (ratio, epoch_ms)


def sooner(row, _cell):
    return of(row, "kill", "sooner")


def added(row, _cell):
    """(what logging adds to an operation, in ns; the operation alone)."""
    found = of(row, "added_ns", "median")
    return None if found is None else (found, of(row, "bare_ns", "median"))


def show_added(value):
    sign = "-" if value[0] < 0 else ""
    return f"{sign}{duration(abs(value[0]))}, alone {duration(value[1])}"


def to_last_page(row, _cell):
    last = of(row, "last_page_ns")
    return None if last is None else (of(row, "first_operation_ns"), last)


def only_with_checkpoints(make):
    """Limits a prediction: nothing where the engine takes no checkpoints."""
    return lambda prediction: make(prediction) if prediction.epoch_ns else None


SLOWDOWN = Reading("slowdown: volatile's rate over this one's, and CPU time of an operation against volatile's", slowdown, lambda value: f"{value:.2f}x",
                   lambda prediction: 1 / prediction.ratio, of_volatile=False, beside=cpu_to_volatile)
PLACEMENT = Reading("slowdown against the volatile program with operations of its own size", slowdown_to_usual,
                    lambda value: f"{value:.2f}x", to_usual_operations=True)
RATE = Reading("operations a second (share of volatile's), and CPU time of an operation against volatile's", rate_and_ratio, show_rate,
               lambda prediction: (prediction.rate, prediction.ratio), beside=cpu_to_volatile)
LATENCY = Reading("mean time of an operation (times volatile's)", latency, show_latency)
CHECKPOINT_BYTES = Reading("bytes written to the medium at a checkpoint", bytes_of_checkpoint, mebibytes,
                           only_with_checkpoints(lambda prediction: prediction.pages * PAGE_BYTES), of_volatile=False)
BYTES_SAVED = Reading("bytes changed minus bytes written, an interval", bytes_saved, mebibytes, of_volatile=False)
STOPS = Reading("time that threads are held by a checkpoint: p50 / p99 / max (model: p50)", stops, show_stops,
                only_with_checkpoints(lambda prediction: (prediction.stop_ns,)), of_volatile=False)
KILL = Reading("operations until the kill, lost, restart to the first operation, size of the pool", kill, show_kill, of_volatile=False)
RESTART = Reading("restart of the process to its first operation", restart, duration)
RECOVERY = Reading("the engine's recovery; restart of the process to its first operation", recovery, show_recovery)
PERIOD = Reading("share of volatile's rate; time between two checkpoints", period,
                 lambda value: f"{value[0]:.2f}; {value[1]:.1f} ms",
                 only_with_checkpoints(lambda prediction: (prediction.ratio, prediction.epoch_ns / 1e6)), of_volatile=False)
SOONER = Reading("a whole run over the second life after a kill", sooner, lambda value: f"{value:.2f}x")
ADDED = Reading("time that logging adds to an operation, and the operation alone", added, show_added)
SNAPSHOT_COST = Reading("time of the program against that without snapshots", slowdown, lambda value: f"{value:.3f}x", of_volatile=False)
TO_LAST_PAGE = Reading("from the start of the process to its first operation, and to the last page read", to_last_page,
                       lambda value: f"{duration(value[0])}, last page {duration(value[1])}")


def with_quartiles(ratio):
    return f"{ratio['median']:.2f}, {ratio['low']:.2f} to {ratio['high']:.2f}"


def rate_and(field):
    """The rate with a ratio of rounds, which has quartiles."""
    def value(row, _cell):
        rate = of(row, "rate", "median")
        return None if not rate else (rate, row.get(field))

    return value


def show_rate_and(value):
    is_to_itself = not value[1] or set(value[1].values()) == {1}
    return f"{short(value[0])}/s" + ("" if is_to_itself else f" ({with_quartiles(value[1])})")


def attempts(row, _cell):
    """(share of attempts that aborted, share of transactions that ran alone)."""
    found = row.get("transactions")
    return None if not found else (found["attempts_aborted"], found["ran_alone"])


def show_attempts(value):
    return f"{percent(value[0])} aborted, {percent(value[1])} alone"


def phases(row, _cell):
    """Shares of the time inside transactions: alone, in bodies that commit, in aborted attempts, in the commit phase."""
    found = of(row, "transactions", "phases")
    return None if not found else tuple(found[name] for name in ("alone", "committed", "aborted", "commit_phase"))


def show_phases(value):
    return " / ".join(f"{100 * one:.0f}" for one in value) + " %"


TO_FIRST_ENGINE = Reading("transactions a second (as a ratio to SPHT-NL: median and quartiles over the rounds of the run)",
                          rate_and("to_first_engine"), show_rate_and)
ATTEMPTS = Reading("share of attempts that aborted; share of transactions that ran alone", attempts, show_attempts)
PHASES = Reading("shares of the time inside transactions: alone / bodies of attempts that commit / aborted attempts / commit phase", phases,
                 show_phases)
TO_SORTING = Reading("logged writes replayed a second (as a ratio to sorting with as many replayers: median and quartiles over the rounds)",
                     rate_and("to_sorting"), show_rate_and)
TO_ONE_SORTING = Reading("logged writes replayed a second (as a ratio to sorting with one replayer: median and quartiles over the rounds)",
                         rate_and("to_one_sorting"), show_rate_and)
TO_ONE = Reading("logged writes replayed a second (as a ratio to one replayer: median and quartiles over the rounds)",
                 rate_and("to_one"), show_rate_and)
