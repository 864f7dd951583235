"""The parts of a run, in the order of the page. A part is a module with TITLE, SAYS, measure(bench), lines(result) and bars(result)."""

from . import containers, group_commit, logging_modes, recovery, sharded, snapshots, stores

PARTS = {
    "containers": containers,
    "sharded": sharded,
    "btree": stores.BTREE,
    "rocksdb": stores.ROCKSDB,
    "logging": logging_modes,
    "snapshots": snapshots,
    "recovery": recovery,
    "group_commit": group_commit,
}
