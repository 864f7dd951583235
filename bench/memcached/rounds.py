"""Slices in turn, and what follows from them.

In each round every server works once, in an order that is shuffled; the others wait, and do nothing: a server without requests has
nothing to checkpoint but its clock. They are not stopped: a stopped server could not finish its checkpoint.
Before a server hands over, what it has written is durable; its CPU time includes that.
"""

from driver import figures
from driver.in_turn import in_turn

RANKS = ("p50", "p99", "p99.9")
# The runtime's statistics that count up.
COUNTERS = ("checkpoints", "bytes_written", "dirty_pages_total", "precopied_pages_total", "withdrawn_attempts", "stretched_intervals")


class Slices:
    """The slices of one server in a cell."""

    def __init__(self, server):
        self.server = server
        self.slices = []

    def add(self, client):
        """`client`: works the server for a slice, returns the generator's result."""
        before, cpu_before = self.server.statistics(), self.server.cpu_ns()
        result = client(self.server)
        self.server.settle()
        result["server_cpu_ns"] = self.server.cpu_ns() - cpu_before
        after = self.server.statistics()
        if before:
            result["grown"] = {name: after[name] - before[name] for name in COUNTERS}
            result["grown"]["last_ns"] = after["last_durable_ns"] - before["last_durable_ns"]
        self.slices.append(result)

    def ratio(self, base, value):
        """Median and quartiles of this server's value over the base's, round by round."""
        if base is self:
            return None
        pairs = [(value(mine), value(theirs)) for mine, theirs in zip(self.slices, base.slices)]
        return figures.spread([mine / theirs for mine, theirs in pairs if mine is not None and theirs])

    def row(self, base):
        """As a cell of a result holds it; the names are those of driver/figures.py."""
        cpu = lambda one: one["server_cpu_ns"] / max(1, one["requests_in_all"])  # noqa: E731  (used twice, and only here)
        latencies = [one["latency_ns"] for one in self.slices if "latency_ns" in one]
        row = {
            **self.server.kind.facts(),
            "rate": figures.spread([one["rate_per_s"] for one in self.slices]),
            "to_volatile": self.ratio(base, lambda one: one["rate_per_s"]),
            "server_cpu_ns_per_operation": figures.spread(map(cpu, self.slices)),
            "server_cpu_to_volatile": self.ratio(base, cpu),
            "rounds": len(self.slices),
            "behind": sum(one.get("behind", False) or one.get("unanswered", 0) > 0 for one in self.slices),
            "latency_ns": figures.percentiles([pair for one in self.slices for pair in one.get("latencies_ns", [])]),
            "latency_to_volatile": {rank: self.ratio(base, lambda one, rank=rank: one["latency_ns"][rank]) for rank in RANKS}
                                   if latencies and base is not self else None,
            "latency_spread_ns": {rank: figures.spread([one[rank] for one in latencies]) for rank in RANKS} if latencies else None,
        }
        if self.slices and "grown" in self.slices[0]:
            row |= self.of_checkpoints()
        return row

    def of_checkpoints(self):
        grown = {name: sum(one["grown"][name] for one in self.slices) for name in COUNTERS}
        updates = [one["updates_in_all"] for one in self.slices]
        checkpoints = max(1, grown["checkpoints"])
        captured_ns = sum(one["grown"]["last_ns"] for one in self.slices)
        return {**grown, "epoch_ms": captured_ns / checkpoints / 1e6, "bytes_per_checkpoint": grown["bytes_written"] / checkpoints,
                "dirty_pages_per_checkpoint": grown["dirty_pages_total"] / checkpoints,
                "bytes_per_update": grown["bytes_written"] / sum(updates) if None not in updates and sum(updates) else None,
                "updates_per_checkpoint": sum(updates) / checkpoints if None not in updates else None}


def run_rounds(servers, rounds, seed, client):
    """`client(server, seed of the round)`. Returns the slices of each server, in the order of `servers`."""
    all_slices = [Slices(server) for server in servers]
    in_turn(all_slices, lambda slices, number: slices.add(lambda server: client(server, seed * 1000 + number)), rounds, seed)
    return all_slices


def cell(part, reads, unit, all_slices, title=None, **facts):
    """One line of questions: the first server is what ratios are taken to."""
    mix = f"{reads}:{100 - reads}"
    return {"part": part, "title": title or f"{part}, {mix}", "workload": f"{part}-{reads}-{100 - reads}", "reads": reads, "unit": unit,
            **facts, "configurations": [one.row(all_slices[0]) for one in all_slices]}
