"""After a kill: what was lost, how long until the first operation, and until the old speed.

The worker notes each operation that it has completed twice: durably, by an operation of its own on the engine's memory, and in a file
that survives the process. What the file has and the durable notes do not was done, told to the program, and lost.
A job that continues after a crash is killed beyond half of its steps, and its second life is compared with a whole job: both begin in a
process that has just started. A job of transactions begins again; the worker checks what the crash has left of it when it starts.
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
STEPS_LIMIT_S = 600


def told_operations(path, threads):
    """The acknowledgements that the program received, of each thread."""
    data = path.read_bytes()
    return [struct.unpack_from("<Q", data, thread * WORDS_APART)[0] for thread in range(threads + 1)]


def time_to_full_speed(worker, usual_rate, slice_ms):
    """Seconds of work since the first operation until a slice reached 0.9 of the usual rate; None: not within 5 s."""
    began = time.monotonic()
    while time.monotonic() - began < SEARCH_S:
        found = worker.slice(slice_ms)
        # The wait at the end of so short a slice is most of it, and no part of the speed that is looked for.
        if found["operations"] * 1e9 / (found["wall_ns"] - found["settle_ns"]) >= FULL_SPEED * usual_rate:
            return time.monotonic() - began
    return None


def wait_for_steps(worker, path, threads, wanted):
    """Until the job is told to have done so many steps, or has ended."""
    began = time.monotonic()
    while worker.process.poll() is None and time.monotonic() - began < STEPS_LIMIT_S:
        told = told_operations(path, threads)
        if told[0] >= wanted or told[threads]:
            return
        time.sleep(0.0005)


def kill_of_a_job(start, cell, folder, generator):
    """A whole job, one that is killed between half and four fifths of its steps, and the second life of that one."""
    path = folder / "told"
    with start() as worker:
        whole_ns = worker.slice(0)["wall_ns"]
        steps = worker.ask("noted")["noted"][0]
        worker.ask(f"mortal {int(600e9)} {path}")
        wait_for_steps(worker, path, cell.threads, steps * generator.uniform(0.5, 0.8))
        moment_ns = worker.kill()
    with start() as worker:
        told = told_operations(path, cell.threads)
        recovered = worker.ask("noted")["noted"][0]
        goes_on = worker.ready.get("goes_on", False)
        second_ns = worker.slice(0)["wall_ns"]
        has_ended = bool(told[cell.threads])
        worker.end()
        return {"restart_to_first_operation_ns": worker.first_operation_ns,
                "down_ns": worker.ready["first_operation_ns"] - moment_ns,
                "whole_job_ns": whole_ns, "second_life_ns": second_ns, "goes_on": goes_on, "ended_before_the_kill": has_ended,
                "steps_of_a_job": steps, "steps_at_the_kill": told[0], "steps_recovered": recovered if goes_on else 0,
                # A job that was faster than the kill had nothing left to do.
                "sooner": None if has_ended else whole_ns / second_ns}


def wait_before_a_kill(configuration, options, generator):
    interval_s = (configuration.interval_ms or 100) / 1000
    time.sleep(0.2 if options.smoke else generator.uniform(3, 6) * interval_s + 0.2)


def kill_of_transactions(start, configuration, folder, options, generator):
    """Jobs one after the other until the kill; end() fails where the worker has found its memory wrong after the restart."""
    with start() as worker:
        worker.ask(f"mortal {int(60e9)} {folder / 'told'}")
        wait_before_a_kill(configuration, options, generator)
        moment_ns = worker.kill()
    with start() as worker:
        worker.slice(0)
        worker.end()
        return {"restart_to_first_operation_ns": worker.first_operation_ns, "down_ns": worker.ready["first_operation_ns"] - moment_ns,
                "recovery_ns": worker.ready.get("recovery_ns")}


def kill_of_operations(start, configuration, cell, usual_rate, folder, options, generator):
    """Operations until the kill, which of them are durable, and how long until the usual rate is reached again."""
    path = folder / "told"
    with start() as worker:
        worker.ask(f"mortal {int(60e9)} {path}")
        wait_before_a_kill(configuration, options, generator)
        moment_ns = worker.kill()
    with start() as worker:
        told = told_operations(path, cell.threads)
        noted = worker.ask("noted")["noted"]
        if configuration.engine.kind != "volatile" and any(durable > done + 1 for durable, done in zip(noted, told)):
            raise WorkerFailed(f"\"{configuration.name}\" recovered operations that were never done: {noted} of {told}")
        seconds = time_to_full_speed(worker, usual_rate, 10 if options.smoke else 20)
        worker.end()
        return {"restart_to_first_operation_ns": worker.first_operation_ns,
                "down_ns": worker.ready["first_operation_ns"] - moment_ns,
                "recovery_ns": worker.ready.get("recovery_ns"),
                "operations_done": sum(told[:cell.threads]),
                "operations_lost": sum(max(0, done - durable) for durable, done in zip(noted, told)),
                "to_full_speed_ns": None if seconds is None else int(seconds * 1e9)}


def measure_kills(start, configuration, cell, slices, folder, options):
    """As many kills as the options ask for, one after the other on one pool. `start` starts a worker on it; `slices`: what was done there
    before. Each figure is the median of the kills, with all of them in "each"; None: a job without state that a crash could leave."""
    goes_on = cell.family == "continuing"
    transactional = "jobs" in slices[0] and cell.family == "transactions"
    if options.kills == 0 or ("jobs" in slices[0] and not goes_on and not transactional):
        return None
    usual_rate = statistics.median(map(rate, slices))
    each = []
    for number in range(options.kills):
        generator = random.Random(options.seed + number)
        each.append(kill_of_a_job(start, cell, folder, generator) if goes_on else
                    kill_of_transactions(start, configuration, folder, options, generator) if transactional else
                    kill_of_operations(start, configuration, cell, usual_rate, folder, options, generator))
    figures = {}
    for name in each[0]:
        values = [one[name] for one in each if one.get(name) is not None]
        # A flag holds if it held each time; a time that was not reached in some kill is told by those in which it was.
        figures[name] = None if not values else all(values) if isinstance(values[0], bool) else statistics.median(values)
    return {**figures, "kills": len(each), "each": each}
