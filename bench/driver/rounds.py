"""One cell of `stillpoint bench`: every configuration has its own process, and they work in turn (in_turn.py)."""

import shutil
import tempfile
from pathlib import Path

from .engines import BASELINES, NOTHING_ON_RETURN, is_too_slow
from .errors import WorkerFailed
from .figures import Measurements, best_peer, fastest
from .in_turn import orders
from .kill_phase import measure_kills
from .plan import left_out_of
from .process import Process
from .sides import bytes_on_medium


def slice_ms(options):
    """The measured time in as many slices as there are rounds, long enough for some checkpoints of the interval that is asked for."""
    if options.smoke:
        return 30
    return max(100, options.seconds * 1000 / options.repeat, *(3 * interval for interval in options.interval or [0]))


def rounds_of(options):
    return 2 if options.smoke else options.repeat


class CellRun:
    """Measures a cell. After an interruption result() has what there was until then. A peer that is loaded may fail: it leaves the cell,
    which says why (`failures`), and the others are measured."""

    def __init__(self, cell, configurations, options, installation, progress):
        self.cell, self.options, self.installation, self.progress = cell, options, installation, progress
        reasons = {one.name: self._why_not(one) for one in configurations}
        self.measurements = [Measurements(one) for one in configurations if reasons[one.name] is None]
        self.left_out = [f"{name}: {reason}" for name, reason in reasons.items() if reason is not None]
        self.failures = []
        self.workers = {}  # of each of the measurements
        self.folder = None

    def run(self):
        parent = self.measurements[0].configuration.folder
        self.folder = Path(tempfile.mkdtemp(prefix="stillpoint-bench-", dir=parent))
        try:
            self._start()
            self._rounds()
            self._each(lambda one: self.workers[one].end())
            self._disk_use()
            self._kills()
        finally:
            for worker in self.workers.values():
                worker.destroy()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _why_not(self, configuration):
        """None: the configuration can do this cell's workload."""
        if is_too_slow(configuration, self.cell.family):
            return "a job takes hours where each range is synced to an ordinary file"
        return left_out_of(self.installation, configuration).get(self.cell.workload)

    def pool(self, configuration):
        """The path of an engine's pool, or the folder of a worker that opens its own."""
        place = self.folder / configuration.name.replace(" ", "-")
        place.mkdir(exist_ok=True)
        return place / "pool" if configuration.engine.is_run else place

    def start_worker(self, configuration):
        return Process(configuration.name, *self.installation.words(configuration, self.cell.workload, self.cell.settings(self.options),
                                                                    self.pool(configuration)))

    def _each(self, work, order=None):
        """{one: work(one)} of the measurements, in an order of its own or theirs; without those that have failed."""
        found = {}
        for one in order or list(self.measurements):
            if one not in self.measurements:
                continue
            try:
                found[one] = work(one)
            except WorkerFailed as failure:
                if one.configuration.engine.library is None:
                    raise
                self.failures.append(f"{one.configuration.name}: failed: {' '.join(str(failure).split())}")
                self.measurements.remove(one)
                if one in self.workers:
                    self.workers.pop(one).destroy()
        return found

    def _start(self):
        def start(one):
            self.progress.show(f"{self.cell.title}: {one.configuration.name} fills its memory")
            self.workers[one] = self.start_worker(one.configuration)
            one.fill_ns = self.workers[one].first_operation_ns

        self._each(start)

    def _rounds(self):
        length_ms = slice_ms(self.options)
        self._each(lambda one: self.workers[one].slice(length_ms))  # not counted: caches and predictors of a new process are cold
        rounds = rounds_of(self.options)
        for number, order in zip(range(rounds), orders(list(self.measurements), self.options.seed)):
            self.progress.show(f"{self.cell.title}: round {number + 1} of {rounds}")
            slices = self._each(lambda one: self._slice(one, length_ms), order)
            timed = self._each(lambda one: self._slice(one, length_ms / 2, timed=True), order)
            # Kept whole rounds only: an interruption leaves no round in which a configuration is missing.
            for one in self.measurements:
                one.slices.append(slices[one])
                one.timed.append(timed[one])

    def _slice(self, one, length_ms, **how):
        """An answer of its worker, with what its pool holds at the end of the slice."""
        return {**self.workers[one].slice(length_ms, **how), "pool_bytes": self._pool_bytes(one.configuration)}

    def _pool_bytes(self, configuration):
        return bytes_on_medium(self.folder / configuration.name.replace(" ", "-"))

    def _disk_use(self):
        for one in self.measurements:
            one.disk_bytes = self._pool_bytes(one.configuration)

    def _kills(self):
        def kill(one):
            configuration = one.configuration
            if not configuration.engine.survives:
                return
            self.progress.show(f"{self.cell.title}: {configuration.name} is killed and started again")
            one.kill = measure_kills(lambda: self.start_worker(configuration), configuration, self.cell, one.slices, self.folder,
                                     self.options)
            if configuration.engine.library and configuration.engine.loses_at(configuration.durability) == NOTHING_ON_RETURN:
                for found in one.kill["each"]:
                    if found["operations_lost"]:
                        raise WorkerFailed(f"a kill lost {found['operations_lost']} operations that had returned, and the peer says "
                                           "that none may be lost")

        if self.options.kills:
            self._each(kill)

    def result(self):
        """The cell as it stands in the result; None before the first round has ended."""
        measured = [one for one in self.measurements if one.slices]
        if not measured:
            return None
        baselines = [one for one in measured if one.configuration.engine.name in BASELINES]
        baseline = baselines[0]
        best = fastest(baselines) if len(baselines) > 1 else None
        peer = best_peer(measured)
        engines = [one for one in measured if one.configuration.engine.kind == "engine"]
        first_engine = engines[0] if len(engines) > 1 else None
        rows = []
        for one in measured:
            row = one.figures(baseline, peer, first_engine, best)
            row["disk_bytes"] = getattr(one, "disk_bytes", None)
            row["fill_ns"] = getattr(one, "fill_ns", None)
            rows.append(row)
        return {**self.cell.facts(), "slice_ms": slice_ms(self.options), "slices_end_durable": True,
                "left_out": self.left_out + self.failures, "configurations": rows}
