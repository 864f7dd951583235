"""The throughput to expect at more threads than this machine has cores: docs/internals/scaling-model.md has the reasoning.

Everything in it is measured at one thread, but the volatile program's serial fraction, which needs its second thread. What an engine
reaches at two threads is predicted and then compared with what it did reach: the model's error.
"""

import dataclasses

PAGE_BYTES = 4096
TRUSTED_ERROR = 0.20
# The share of a core that one thread of the volatile program must have had: what is missing went to other programs.
TRUSTED_SHARE = 0.90


@dataclasses.dataclass(frozen=True)
class Machine:
    cores: int
    copy_bytes_per_s: float
    medium_bytes_per_s: float


@dataclasses.dataclass(frozen=True)
class Program:
    """The program without an engine: operations a second at one and two threads."""

    rate_1: float
    rate_2: float

    @property
    def gain(self):
        return self.rate_2 / self.rate_1

    @property
    def serial_fraction(self):
        """Amdahl's serial fraction, from the speed-up of the second thread: 2 / (1 + serial) is the gain."""
        return min(1.0, max(0.0, 2 / self.gain - 1))

    def speed_up(self, threads):
        """The speed-up of `threads` threads' worth of processors, a number that need not be whole. Where two are slower than one, the
        work is serial and what the second costs is the handing over of lock and lines: further threads wait and cost nothing more."""
        if self.gain < 1:
            return 1 + (self.gain - 1) * min(1.0, max(0.0, threads - 1))
        if threads <= 1:
            return threads
        return threads / (1 + self.serial_fraction * (threads - 1))


@dataclasses.dataclass(frozen=True)
class EngineCost:
    """An engine on the program, at one thread. Engines without checkpoints have operation_ns only."""

    operation_ns: float  # of a running thread, its first writes to pages taken out
    first_write_ns: float = 0.0
    pages_1: float = 0.0  # dirty pages of an epoch
    operations_1: float = 1.0  # operations of an epoch
    pages_max: float = 0.0  # pages that can get dirty
    stop_ns_1: float = 0.0
    background_ns_per_page: float = 0.0  # CPU time of the checkpoint
    interval_ns: float = 0.0

    @property
    def has_checkpoints(self):
        return self.interval_ns > 0 and self.pages_1 > 0

    def pages(self, operations):
        """Dirty pages after `operations`, if each hits pages independently of the others: the share of pages that one epoch's worth
        leaves clean is left clean again by the next epoch's worth."""
        if self.pages_1 >= self.pages_max:
            return self.pages_max
        clean = 1 - self.pages_1 / self.pages_max
        return self.pages_max * (1 - clean ** (operations / self.operations_1))


@dataclasses.dataclass(frozen=True)
class Prediction:
    threads: int
    volatile_rate: float
    rate: float
    pages: float = 0.0
    epoch_ns: float = 0.0
    stop_ns: float = 0.0
    limit: str = "the program"

    @property
    def ratio(self):
        return self.rate / self.volatile_rate


def cost_of(volatile_rate, rate, first_write_ns=0.0, epoch_ns=0.0, pages=0.0, stop_ns=0.0, cpu_ns_per_operation=0.0,
            interval_ns=0.0, resident_pages=0.0):
    """The costs behind figures measured at one thread."""
    wall_ns = 1e9 / rate
    if not (epoch_ns and pages and interval_ns):
        return EngineCost(operation_ns=wall_ns)
    operations = rate * epoch_ns / 1e9
    running_ns = wall_ns * (1 - min(0.99, stop_ns / epoch_ns))
    # First writes cannot explain more than what the engine costs: an operation is not cheaper than without the engine.
    excess_ns = max(0.0, running_ns - 1e9 / volatile_rate)
    first_write_ns = min(first_write_ns, excess_ns * operations / pages)
    return EngineCost(
        operation_ns=running_ns - first_write_ns * pages / operations, first_write_ns=first_write_ns, pages_1=pages,
        operations_1=operations, pages_max=max(pages, resident_pages), stop_ns_1=stop_ns,
        background_ns_per_page=max(0.0, cpu_ns_per_operation - running_ns) * operations / pages,
        interval_ns=interval_ns)


def predict(machine, program, cost, threads):
    """The throughput of `threads` threads on `machine`, by a fixed point: operations dirty pages, pages cost time, time is operations."""
    workers = min(threads, machine.cores)
    volatile_rate = program.rate_1 * program.speed_up(workers)
    if not cost.has_checkpoints:
        return Prediction(threads, volatile_rate, 1e9 / cost.operation_ns * program.speed_up(workers))
    rate, epoch_ns, limit = volatile_rate, cost.interval_ns, "the interval"
    for _ in range(200):
        operations = max(1.0, rate * epoch_ns / 1e9)
        pages = cost.pages(operations)
        # A copy reads and writes; no checkpoint works faster than memory copies.
        background_ns = max(cost.background_ns_per_page * pages, pages * PAGE_BYTES / machine.copy_bytes_per_s * 1e9)
        medium_ns = pages * PAGE_BYTES / machine.medium_bytes_per_s * 1e9
        stop_ns = cost.stop_ns_1 * pages / cost.pages_1
        # At most one epoch is in flight: the next begins when the one before is durable.
        epoch_ns, limit = max((cost.interval_ns, "the interval"), (background_ns, "the checkpoint thread"), (medium_ns, "the medium"))
        epoch_ns += stop_ns
        spare = max(0.0, machine.cores - workers)
        taken = max(0.0, min(1.0, background_ns / epoch_ns) - spare)
        running = program.speed_up(max(0.5, workers - taken)) * (1 - stop_ns / epoch_ns)
        wanted = running * 1e9 / (cost.operation_ns + cost.first_write_ns * pages / operations)
        if abs(wanted - rate) <= 1e-6 * rate:
            break
        rate = (rate + wanted) / 2
    return Prediction(threads, volatile_rate, rate, pages, epoch_ns, stop_ns, limit)


def error_at_two(machine, program, cost, measured_rate):
    """(predicted - measured) / measured, for two threads of this machine."""
    return predict(machine, program, cost, 2).rate / measured_rate - 1


def share_of_a_core(rate, cpu_ns_per_operation):
    """The share of a core that one never-waiting thread has had. The second thread shares with the same other programs, so the speed-up
    says nothing about the program where this is small."""
    return min(1.0, rate * cpu_ns_per_operation / 1e9) if cpu_ns_per_operation else 1.0


def is_trusted(error, share=1.0):
    return error is not None and abs(error) <= TRUSTED_ERROR and share >= TRUSTED_SHARE
