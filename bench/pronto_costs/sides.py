"""The sides compared: a program without Stillpoint, durable objects of pronto, and libpmemobj; and the rows of a cell."""

from driver.figures import cpu_per_operation, spread
from driver.in_turn import latency_ns, ratios
from driver.sides import Side

POOL_MIB = 64  # to begin with: pools grow
INTERVAL_MS = 10_000  # between two snapshots, as the paper's concurrent map has it (its others: 15 s)
COLD_ROUNDS = 2  # not counted: caches are cold, and a pool has two copies of each page, which are new


def pronto(program, name="pronto", medium="memory", run=(), settings=()):
    # The medium is the folder's own, unless it is shared memory that must survive a power cut: that one is named.
    usual = (("engine", "pronto"), ("durability", "power"), ("medium", medium), ("pool-size-mb", POOL_MIB), ("interval-ms", INTERVAL_MS))
    return Side(name, program, (*usual, *run), medium, settings=tuple(settings))


def volatile(program):
    return Side("volatile", program, is_baseline=True)


# On a tmpfs libpmemobj would sync a mapped file; it is told to write lines back, as on persistent memory, and where to map the pool.
PMEMOBJ_ENVIRONMENT = (("PMEM_IS_PMEM_FORCE", "1"), ("PMEM_MMAP_HINT", "0x300000000000"))


def libpmemobj(program):
    return Side("libpmemobj", program, environment=PMEMOBJ_ENVIRONMENT, package="libpmemobj-dev")


def rows_of(processes, answers):
    """A row for each side: its mean time of an operation, its CPU time, and both against the baseline of the same round."""
    base = next((answers[process.name] for process in processes if process.side.is_baseline), None)
    rows = []
    for name, mine in answers.items():
        row = {"name": name, "rounds": len(mine), "latency_ns": spread(map(latency_ns, mine)),
               "rate": spread(1e9 / latency_ns(one) for one in mine),
               "cpu_ns_per_operation": spread(map(cpu_per_operation, mine)),
               "to_volatile": ratios(mine, base, latency_ns) if base else None,
               "cpu_to_volatile": ratios(mine, base, cpu_per_operation) if base else None,
               "latency_to": {other: ratios(mine, theirs, latency_ns) for other, theirs in answers.items() if other != name}}
        counters = mine[-1].get("counters")
        if counters:
            operations = max(1, sum(one["operations"] for one in mine))
            row["counted"] = {counter: sum(one["counters"][counter] for one in mine) / operations for counter in counters}
        rows.append(row)
    return rows
