"""A figure or table of a paper as data: what its authors measured and state, and which runs of `stillpoint bench` show the same here."""

import dataclasses
import shlex

from driver.errors import BenchError

# Nanoseconds for the first write to a page in an interval, by tracker: src/engines/pmthreads/README.md, "Trackers".
FIRST_WRITE_NS = {"uffd": 1300.0, "auto": 1300.0, "mprotect": 9000.0, "hooks": 0.0}


@dataclasses.dataclass(frozen=True)
class System:
    """A system that a paper measured, and the engine and options that play its part; `absent`: why nothing does."""

    name: str
    engine: str = None
    tracker: str = None
    interval_ms: int = None
    absent: str = None

    @property
    def first_write_ns(self):
        return FIRST_WRITE_NS.get(self.tracker, 0.0)


@dataclasses.dataclass(frozen=True)
class Stated:
    """A number that a paper states, of what, and where. `row`: the facts of the rows that it belongs to; None: of the whole figure."""

    value: str
    of: str
    where: str
    row: dict = None

    def belongs_to(self, facts):
        return self.row is not None and all(facts.get(name) == value for name, value in self.row.items())


@dataclasses.dataclass(frozen=True)
class Run:
    """One command: `stillpoint bench` on a workload, in every mix and value size, by every system."""

    workload: str
    systems: tuple
    mixes: tuple = (None,)  # percent of reads; None: the workload has a mix of its own
    value_sizes: tuple = (None,)
    size: int = None
    operation_sizes: tuple = (None,)  # points, trials or elements between two restart points; None: the workload's own number
    threads: tuple = (1, 2)
    with_kills: bool = False
    label: str = None  # the row's name; otherwise the workload's
    by_program = False  # measured by `stillpoint bench`, not by a program of its own

    def cells(self):
        return [(reads, value_bytes, operation_size) for reads in self.mixes for value_bytes in self.value_sizes
                for operation_size in self.operation_sizes]

    def facts(self, system, reads, value_bytes, operation_size):
        """The identity of a row; stated numbers are matched with it."""
        return {"workload": self.workload, "system": system.name, "reads": reads, "value_bytes": value_bytes, "size": self.size,
                "operation_size": operation_size}

    def title(self, reads, value_bytes, operation_size):
        parts = [self.label or self.workload]
        if reads is not None:
            parts.append(f"{reads}:{100 - reads}")
        if value_bytes is not None:
            parts.append(f"{value_bytes} B")
        if self.size is not None and self.label is None:
            parts.append(f"size {self.size:,}")
        if operation_size is not None:
            parts.append(f"operations of {operation_size:,}")
        return ", ".join(parts)

    def commands(self, engines_here):
        """[(systems, arguments)]: systems that can share a command share it. Code with hooks is compiled apart, so it runs apart: the
        failure of one takes nothing from the other."""
        here = [system for system in self.systems if system.engine in engines_here]
        groups = [[system for system in here if system.tracker != "hooks"], [system for system in here if system.tracker == "hooks"]]
        return [(group, self._arguments(group)) for group in groups if any(system.engine != "volatile" for system in group)] or (
            [(here, self._arguments(here))] if here else [])

    def command(self, arguments):
        """The command line that a reader types."""
        return shlex.join(["stillpoint", "bench", *arguments])

    def document(self, measurements, arguments):
        return measurements.of(arguments)

    def why_not_here(self, known):
        return None if self.workload in known.workloads else "a program that this bench does not have"

    def why_without(self, system, known):
        return known.why_without(system)

    def _operation_sizes_to_ask_for(self):
        return [] if self.operation_sizes == (None,) else [size or 0 for size in self.operation_sizes]

    def _arguments(self, systems):
        words = ["--workload", self.workload, "--threads", ",".join(map(str, self.threads)), "--engine",
                 ",".join(dict.fromkeys(["volatile", *(system.engine for system in systems)]))]
        for option, values in (("--tracker", [system.tracker for system in systems]),
                               ("--interval", [system.interval_ms for system in systems]),
                               ("--mix", [reads if reads is None else f"{reads}:{100 - reads}" for reads in self.mixes]),
                               ("--value-size", self.value_sizes), ("--size", [self.size]),
                               ("--operation-size", self._operation_sizes_to_ask_for())):
            given = dict.fromkeys(value for value in values if value is not None)
            if given:
                words += [option, ",".join(map(str, given))]
        return words if self.with_kills else [*words, "--no-kill"]


@dataclasses.dataclass(frozen=True)
class OtherRun(Run):
    """A run of a benchmark other than `stillpoint bench`, whose result is put into that one's form."""

    by_program = True

    def command(self, arguments):
        return shlex.join(["python3", "bench/run.py", *arguments])

    def why_not_here(self, known):
        return None

    def why_without(self, system, known):
        return system.absent


@dataclasses.dataclass(frozen=True)
class Figure:
    number: str  # "Figure 5", "Table 3"
    title: str
    measured: str  # machine, threads, sizes, where they are not the paper's usual ones
    differs: str
    stated: tuple = ()
    runs: tuple = ()
    reading: object = None  # of readings.py
    model_threads: tuple = ()  # the paper's thread counts beyond this machine's
    model_cores: int = None  # what its machine had
    simulated: object = None  # in place of the scaling model: (figure, measurements, row, its document) -> {threads: text}
    counted: str = "thread"  # what the numbers of columns count
    outcome: str = ""  # which of the paper's findings showed here as well, which did not, and why
    means: tuple = ()  # [(name, workloads)]: rows of geometric means
    only_means: bool = False
    why_not: str = None  # reason where nothing is reproduced

    def __post_init__(self):
        assert bool(self.runs) != bool(self.why_not), f"{self.number}: runs or a reason, one of them"
        assert not self.runs or self.reading is not None, f"{self.number}: runs need a reading"

    @property
    def modelled_threads(self):
        """Columns beyond what was measured."""
        return self.model_threads if self.simulated or (self.reading and self.reading.modelled) else ()


@dataclasses.dataclass(frozen=True)
class Paper:
    key: str
    title: str
    machine: str
    figures: tuple
    beyond: tuple = ()  # numbers stated outside of figures and tables

    def chosen(self, numbers):
        """The figures named by "5", "table 3" or "5.6"; all where none is named."""
        if not numbers:
            return list(self.figures)
        wanted = [number.lower().removeprefix("figure").strip() for number in numbers]
        chosen = [figure for figure in self.figures
                  if figure.number.lower() in wanted or figure.number.lower().removeprefix("figure").strip() in wanted]
        known = ", ".join(figure.number for figure in self.figures)
        if not chosen:
            raise BenchError(f"{self.key} has no {', '.join(numbers)}; it has {known}")
        return chosen
