"""The systems that the papers measure, and what plays their part here."""

from .figure import System

NOT_OURS = "a system of its authors, neither part of this project nor packaged by Debian"

VOLATILE = System("volatile", "volatile")
PMEMOBJ = System("libpmemobj (PMDK)", "pmemobj")
ROCKSDB_SYNC = System("RocksDB, synchronous", "rocksdb-sync")
ROCKSDB_ASYNC = System("RocksDB, asynchronous", "rocksdb-async")
ATLAS = System("Atlas", absent=NOT_OURS)
MNEMOSYNE = System("Mnemosyne", absent=NOT_OURS)
KAMINO_TX = System("Kamino-Tx", absent=NOT_OURS)


def pmthreads(interval_ms=100, tracker="uffd", name=None):
    return System(name or f"pmthreads ({tracker}), {interval_ms} ms", "pmthreads", tracker, interval_ms)


def respct(interval_ms=64, name=None):
    return System(name or f"ResPCT, {interval_ms} ms", "respct", interval_ms=interval_ms)


RESPCT_STOP = System("ResPCT, flush in the stop", "respct-stop", interval_ms=64)
RESPCT_NO_FLUSH = System("ResPCT-noFlush", "respct-noflush", interval_ms=64)
RESPCT_IN_CLL = System("ResPCT-InCLL", "respct-tracking")
PMTHREADS_P = pmthreads(tracker="mprotect", name="PMThreads-P")
PMTHREADS_I = pmthreads(tracker="hooks", name="PMThreads-I")
PMTHREADS_UFFD = pmthreads(name="pmthreads, uffd")
NVTHREADS = System("NVthreads", "nvthreads")
NVTHREADS_UNLOCK = System("NVthreads, unlocks wait", "nvthreads-unlock")
PRONTO = System("Pronto", "pronto")
