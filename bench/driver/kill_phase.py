"""After a kill: what was lost, how long until the first operation, and until the old speed.

The worker notes each operation that it has completed twice: durably, by an operation of its own on the engine's memory, and in a file
that survives the process. What the file has and the durable notes do not was done, told to the program, and lost.
A job that goes on after a crash is killed half-way, and its second life is compared with a whole one.
"""

import random
import statistics
import struct
import time

from .errors import WorkerFailed
from .figures import rate

WORDS_APART = 64
FULL_SPEED = 0.9
SEARCH_S = 5.0


def told_operations(path, threads):
    """What the program was told, of each thread."""
    data = path.read_bytes()
    return [struct.unpack_from("<Q", data, thread * WORDS_APART)[0] for thread in range(threads + 1)]


def time_to_full_speed(worker, usual_rate, slice_ms):
    """Seconds of work since the first operation until a slice reached 0.9 of the usual rate; None: not within 5 s."""
    began = time.monotonic()
    while time.monotonic() - began < SEARCH_S:
        if rate(worker.slice(slice_ms)) >= FULL_SPEED * usual_rate:
            return time.monotonic() - began
    return None


def measure_kills(start, configuration, cell, usual_rate, folder, options):
    """As many kills as the options ask for, one after the other on one pool. `start` starts a worker on it. Each figure is the median
    of the kills, with all of them in "each"; None: a job that starts anew."""
    if cell.family == "application" or options.kills == 0:
        return None
    each = [measure_kill(start, configuration, cell, usual_rate, folder, options, options.seed + number)
            for number in range(options.kills)]
    figures = {}
    for name in each[0]:
        values = [one[name] for one in each if one.get(name) is not None]
        # A flag holds if it held each time; a time that was not reached in some kill is told by those in which it was.
        figures[name] = None if not values else all(values) if isinstance(values[0], bool) else statistics.median(values)
    return {**figures, "kills": len(each), "each": each}


def measure_kill(start, configuration, cell, usual_rate, folder, options, seed):
    generator = random.Random(seed)
    worker = start()
    goes_on = cell.family == "continuing"
    path = folder / "told"
    interval_s = (configuration.interval_ms or 100) / 1000
    try:
        if goes_on:
            whole_ns = worker.slice(0)["wall_ns"]
            worker.ask(f"mortal {int(600e9)} {path}")
            time.sleep(max(0.02, whole_ns / 1e9 * generator.uniform(0.5, 0.8)))
        else:
            worker.ask(f"mortal {int(60e9)} {path}")
            time.sleep(0.2 if options.smoke else generator.uniform(3, 6) * interval_s + 0.2)
        moment_ns = worker.kill()
    except BaseException:
        worker.destroy()
        raise
    worker = start()
    try:
        told = told_operations(path, cell.threads)
        noted = worker.ask("noted")["noted"]
        figures = {"restart_to_first_operation_ns": worker.first_operation_ns,
                   "down_ns": worker.ready["first_operation_ns"] - moment_ns}
        if goes_on:
            if told[cell.threads]:
                figures["ended_before_the_kill"] = True
            second_ns = worker.slice(0)["wall_ns"]
            figures.update(whole_job_ns=whole_ns, second_life_ns=second_ns, goes_on=worker.ready.get("goes_on", False),
                           steps_at_the_kill=told[0], sooner=whole_ns / second_ns)
        else:
            if configuration.engine.kind != "volatile" and any(
                    durable > done + 1 for durable, done in zip(noted, told)):
                raise WorkerFailed(f"\"{configuration.name}\" recovered operations that were never done: {noted} of {told}")
            seconds = time_to_full_speed(worker, usual_rate, 10 if options.smoke else 20)
            figures.update(operations_done=sum(told[:cell.threads]),
                           operations_lost=sum(max(0, done - durable) for durable, done in zip(noted, told)),
                           to_full_speed_ns=None if seconds is None else int(seconds * 1e9))
        worker.end()
        return figures
    except BaseException:
        worker.destroy()
        raise
