"""Medians with their spread, percentiles of merged histograms, and a configuration's figures in a cell."""

import statistics


def spread(values):
    """Median and quartiles; None where there is nothing."""
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return None
    last = len(ordered) - 1
    return {"median": statistics.median(ordered), "low": ordered[last // 4], "high": ordered[(3 * last + 3) // 4]}


def percentiles(pairs):
    """p50, p99, p99.9 and max of [(value, count)]."""
    ordered = sorted(pairs)
    total = sum(count for _, count in ordered)
    if total == 0:
        return None
    found, seen, wanted = {}, 0, [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]
    for value, count in ordered:
        seen += count
        while wanted and seen >= wanted[0][1] * total:
            found[wanted.pop(0)[0]] = value
    found["max"] = ordered[-1][0]
    found["count"] = total
    return found


def rate(one):
    return one["operations"] / one["wall_ns"] * 1e9


def cpu_per_operation(one):
    """CPU time of the whole process, what it still had to write included."""
    return (one["cpu_ns"] + one["settle_cpu_ns"]) / max(1, one["operations"])


def memory_bytes(slices):
    """The most at the end of a slice: memory of no named file, and the blocks of the pool's files; None without a slice."""
    return max((one["anonymous_bytes"] + one["pool_bytes"] for one in slices), default=None)


def per(slices, name, divisor):
    """Growth of a counter over all slices per unit of `divisor`; None where the engine does not count it."""
    if not slices or any(name not in one for one in slices):
        return None
    below = sum(one[divisor] for one in slices)
    return sum(one[name] for one in slices) / below if below else None


PHASES = ("alone", "committed", "aborted", "commit_phase")


def transactions_of(slices):
    """Attempts and phases of transactions (bench/transactions/transaction_phases.hpp) as shares; None where none were watched."""
    watched = [one for one in slices if one.get("transactions")]
    if not watched:
        return None
    total = {name: sum(one[name] for one in watched)
             for name in ("transactions", "attempts", "transactions_alone", *(f"{phase}_ns" for phase in PHASES))}
    time_ns = sum(total[f"{phase}_ns"] for phase in PHASES)
    return {"count": total["transactions"], "attempts_aborted": 1 - total["transactions"] / total["attempts"],
            "ran_alone": total["transactions_alone"] / total["transactions"],
            "phases": {phase: total[f"{phase}_ns"] / time_ns for phase in PHASES} if time_ns else None}


def bytes_counter(configuration, slices):
    """Which counter tells what went to the medium."""
    if configuration.engine.is_run or configuration.engine.library and all("bytes_written" in one for one in slices):
        return "bytes_written"
    # tmpfs is not a disk: what is handed to write calls is what can be seen; of mapped files nothing can.
    return "bytes_to_disk" if configuration.medium == "file" else "bytes_in_write_calls"


class Measurements:
    """The slices of one configuration in a cell, in the order of the rounds."""

    def __init__(self, configuration):
        self.configuration = configuration
        self.slices = []
        self.timed = []
        self.kill = None

    def figures(self, baseline, peer, first_engine=None, best_volatile=None):
        """As they stand in the result; `baseline` and the others: the measurements that ratios are taken to, or None."""
        slices = self.slices
        every = slices + self.timed
        written = bytes_counter(self.configuration, every)
        stops = sorted(stop for one in every for stop in one["stops_ns"])
        facts = {
            **self.configuration.facts(),
            "rate": spread(map(rate, slices)),
            "rounds": len(slices),
            "to_volatile": self.ratio_to(baseline),
            "to_best_volatile": self.ratio_to(best_volatile),
            "to_first_engine": self.ratio_to(first_engine),
            "to_best_peer": self.ratio_to(peer) and {**self.ratio_to(peer), "peer": peer.configuration.name},
            "cpu_ns_per_operation": spread(map(cpu_per_operation, slices)),
            "cpu_seconds": sum(one["cpu_ns"] + one["settle_cpu_ns"] for one in slices) / 1e9,
            "latency_ns": percentiles([pair for one in self.timed for pair in one.get("latencies_ns", [])]),
            "latency_spread_ns": self.latency_spread(),
            "stop_ns": percentiles([(stop, 1) for stop in stops]),
            "bytes_written": sum(one.get(written, 0) for one in every) if all(written in one for one in every) else None,
            "bytes_written_per_byte_changed": per(every, written, "changed_bytes"),
            "lines_written_back_per_operation": per(every, "lines_written_back", "operations"),
            "fences_per_operation": per(every, "fences", "operations"),
            "dirty_pages_per_checkpoint": per(every, "dirty_pages_total", "checkpoints") if self.has("checkpoints") else None,
            "lines_written_back_per_checkpoint": per(every, "lines_written_back", "checkpoints") if self.has("checkpoints") else None,
            "fences_per_checkpoint": per(every, "fences", "checkpoints") if self.has("checkpoints") else None,
            "epoch_ms": self.epoch_ms(every),
            "transactions": transactions_of(self.timed),
            "memory_bytes": memory_bytes(every),
            "kill": self.kill,
        }
        if baseline and baseline.slices and baseline is not self and facts["memory_bytes"]:
            facts["memory_to_volatile"] = facts["memory_bytes"] / memory_bytes(baseline.slices + baseline.timed)
        return facts

    def latency_spread(self):
        """Each percentile's median and quartiles over the rounds, where latency_ns is of all rounds together."""
        each = [found for one in self.timed if (found := percentiles(one.get("latencies_ns", [])))]
        return {rank: spread([one[rank] for one in each]) for rank in ("p50", "p99", "p99.9", "max")} if each else None

    def has(self, name):
        return bool(self.slices) and name in self.slices[0]

    def epoch_ms(self, slices):
        """Mean time between two checkpoints, as reached."""
        epochs = [epoch for one in slices for epoch in one["epochs_ns"]]
        return sum(epochs) / len(epochs) / 1e6 if epochs else None

    def ratio_to(self, other):
        if other is None:
            return None
        return spread([rate(mine) / rate(theirs) for mine, theirs in zip(self.slices, other.slices) if rate(theirs)])


def fastest(measurements):
    """The one with the highest median rate, or None."""
    return max(measurements, key=lambda one: statistics.median(map(rate, one.slices)), default=None)


def best_peer(measurements):
    """The fastest peer that keeps something, or None."""
    return fastest([one for one in measurements if one.configuration.engine.kind == "peer" and one.slices and
                    one.configuration.engine.loses.get("any") != "everything"])
