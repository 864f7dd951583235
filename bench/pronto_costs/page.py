"""The cost of pronto, and whether it reaches its bars: makes docs/measured/tables/pronto.md."""

from driver.pages import Page

from . import containers, group_commit, logging_modes, memory, reads, recovery, sharded, snapshots, stores

PARTS = {
    "structures": stores.STRUCTURES,
    "door": stores.DOOR,
    "containers": containers,
    "sharded": sharded,
    "reads": reads,
    "btree": stores.BTREE,
    "rocksdb": stores.ROCKSDB,
    "logging": logging_modes,
    "snapshots": snapshots,
    "memory": memory,
    "recovery": recovery,
    "group_commit": group_commit,
}

INTRODUCTION = """\
# What pronto costs

This page is generated: `python3 bench/run.py pronto_costs --json build/pronto.json --markdown docs/measured/tables/pronto.md`. Sides
that are compared are processes that work in turn, in an order that is shuffled in each round; a ratio is taken within a round, and the
median of the rounds is given with its quartiles. Slices of structures, of the door and of stores have 3 s. The volatile side is
compiled and linked without Stillpoint. Pools of the medium `memory` lie in shared memory and must survive power (`--durability power`),
so that each log entry is written around the caches and fenced; those of the medium `file` lie on the disk of the build's folder.
[bench](../../../bench/README.md) says how it is measured, [papers.md](papers.md) has the same figures next to the paper's.
"""

PAGE = Page("pronto_costs", "docs/measured/tables/pronto.md",
            "What durable objects of the engine pronto cost, and whether its bars are reached.",
            INTRODUCTION, PARTS, seconds=2.0, repeat=7)
