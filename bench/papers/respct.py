"""ResPCT (EuroSys 2022): Figures 8 to 14 on this machine, with the paper's numbers next to ours."""

from . import readings
from .figure import Figure, Paper, Run, Stated, System
from .systems import NOT_OURS, PMEMOBJ, RESPCT_IN_CLL, RESPCT_NO_FLUSH, RESPCT_STOP, VOLATILE, pmthreads, respct

MACHINE = ("two sockets of sixteen cores with two hardware threads each (Xeon Gold 5218, 2.3 GHz), 384 GiB of DRAM, 1.5 TiB of Optane as a "
           "NUMA node; checkpoints every 64 ms; means of ten runs (§5)")
RESPCT = respct(name="ResPCT")
PMTHREADS = pmthreads(64, name="PMThreads, 64 ms")
OTHERS = tuple(System(name, absent=NOT_OURS) for name in ("Montage", "Clobber-NVM", "Quadra/Trinity"))
COMPARED = (VOLATILE, RESPCT, PMTHREADS, PMEMOBJ, *OTHERS)
CORES = 32
HARDWARE_THREADS = ("the model counts 64 hardware threads as 64 cores, which they are not; their medium was Optane and ours is shared memory")


def of(workload, system="ResPCT", reads=None, operation_size=None):
    return {"workload": workload, "system": system, "operation_size": operation_size, **({} if reads is None else {"reads": reads})}


FIGURE_8 = Figure(
    "Figure 8", "Hash map: operations a second by threads", "10^6 buckets, 2x10^6 keys, updates to searches 1:9, 1:1 and 9:1, 1 to 64 threads "
    "(§5.1)", f"two cores; libpmemobj stands for the durably linearizable systems, which are not here; {HARDWARE_THREADS}",
    stated=(
        Stated("at most 9 % overhead", "ResPCT against the program in DRAM, every mix", "§5.1", of("hash_map", reads=50)),
        Stated("4 % overhead", "ResPCT at 64 threads, 90 % searches", "§5.1", of("hash_map", reads=90)),
        Stated("8 % overhead", "ResPCT at 64 threads, 90 % updates", "§5.2", of("hash_map", reads=10)),
        Stated("at least 3.1x", "ResPCT over the buffered durably linearizable systems (Montage, PMThreads), 90 % updates", "§5.1"),
        Stated("at least 2.7x", "ResPCT over the durably linearizable systems, 90 % updates", "§5.1")),
    runs=(Run("hash_map", (*COMPARED, System("SOFT", absent=NOT_OURS), System("Dali", absent=NOT_OURS)), mixes=(90, 50, 10)),),
    reading=readings.RATE, model_threads=(16, 64), model_cores=64)

FIGURE_9 = Figure(
    "Figure 9", "Queue under one lock: operations a second by threads", "1000 elements of 8 bytes, as many enqueues as dequeues, 1 to 64 "
    "threads (§5.1)", f"two cores, so at most two threads contend for the lock; {HARDWARE_THREADS}",
    stated=(
        Stated("at most 37 % overhead", "ResPCT against the program in DRAM; half of it is that of the program in NVMM", "§5.1, §5.2",
               of("queue")),
        Stated("faster than ResPCT", "PMThreads, as the only system", "§5.1", of("queue", "PMThreads, 64 ms"))),
    runs=(Run("queue", (*COMPARED, System("FriedmanQueue", absent=NOT_OURS))),), reading=readings.RATE, model_threads=(16, 64),
    model_cores=64)

PARTS = (RESPCT, RESPCT_STOP, RESPCT_NO_FLUSH, RESPCT_IN_CLL, PMTHREADS, System("Transient<NVMM>", absent="there is no NVMM here"))
FIGURE_10 = Figure(
    "Figure 10", "What ResPCT's overhead is made of", "64 threads; the program in NVMM, ResPCT without checkpoints (InCLL), ResPCT without "
    "flushes (noFlush) (§5.2)", "two threads instead of 64, and no NVMM to run the program in. Ours flushes beside the program; the paper's "
    "way, inside the stop, is a row of its own",
    stated=(
        Stated("4 % overhead", "ResPCT, hash map, 10 % updates", "§5.2", of("hash_map", reads=90)),
        Stated("8 % overhead", "ResPCT, hash map, 90 % updates", "§5.2", of("hash_map", reads=10)),
        Stated("700k addresses", "flushed at a checkpoint, 90 % updates; about six times those of 10 % updates", "§5.2")),
    runs=(Run("queue", PARTS), Run("hash_map", PARTS, mixes=(90, 10))), reading=readings.SLOWDOWN, model_threads=(64,), model_cores=64)

PERIODS = (1, 2, 4, 8, 16, 32, 64)
FIGURE_11 = Figure(
    "Figure 11", "Hash map: throughput by the period of checkpoints", "64 threads, 90 % updates, periods of 1 to 64 ms (§5.2)",
    f"two threads; {HARDWARE_THREADS}",
    stated=(
        Stated("almost no overhead", "checkpoints every 16 ms", "§5.2", {"system": "ResPCT, 16 ms"}),
        Stated("5 ms reached", "period asked for: 4 ms", "§5.2", {"system": "ResPCT, 4 ms"})),
    runs=(Run("hash_map", (*(respct(period) for period in PERIODS), *(pmthreads(period) for period in PERIODS)), mixes=(10,)),),
    reading=readings.PERIOD, model_threads=(64,), model_cores=64)

FIGURE_12 = Figure(
    "Figure 12", "Hash map: recovery time by its number of buckets",
    "32 threads recover; at most two elements in a bucket, to 4M buckets (§5.2)",
    "two cores recover; sizes are keys, of which half are there, two for each bucket; volatile's row is the time of building everything again",
    stated=(Stated("less than 240 ms", "recovery of 4M buckets", "§5.2", {"system": "ResPCT", "size": 8_000_000}),),
    runs=tuple(Run("hash_map", (VOLATILE, RESPCT, PMTHREADS), mixes=(10,), size=keys, threads=(1,), with_kills=True)
               for keys in (500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)), reading=readings.RECOVERY)

FIGURE_13 = Figure(
    "Figure 13", "Compute-intensive applications: execution time against the program in DRAM", "64 threads; runs of several seconds (§5.3)",
    f"two threads and inputs of some tenths of a second, in programs of our own; {HARDWARE_THREADS}",
    stated=(
        Stated("17 % to 21 % overhead", "ResPCT on these four", "§5.3"),
        Stated("around 20 %", "ResPCT on linear regression, restart points after 1000 points", "§5.3", of("linear_regression")),
        Stated("65 ms and 5 ms", "periods reached on linear regression, asked for: 64 and 4 ms", "§5.3")),
    runs=tuple(Run(workload, (RESPCT, PMTHREADS)) for workload in ("dedup", "swaptions", "matrix_multiply", "linear_regression")),
    reading=readings.SLOWDOWN, model_threads=(64,), model_cores=64)

PLACED = (VOLATILE, RESPCT)
PLACEMENT = Figure(
    "§5.3", "Restart points placed well and badly: slowdown against the program without them", "64 threads (§5.3)",
    "two threads. The operation of the program without an engine takes a lock, which of the paper's has none; so its own rows with small "
    "operations are slower too",
    stated=(
        Stated("9x slower", "linear regression, a restart point after each point", "§5.3", of("linear_regression", operation_size=1)),
        Stated("around 20 %", "after 1000 points", "§5.3", of("linear_regression", operation_size=1000)),
        Stated("4x slower", "swaptions, restart points placed naively", "§5.3", of("swaptions", operation_size=1)),
        Stated("straightforward", "a restart point after each cell of the matrix", "§5.3", of("matrix_multiply", operation_size=1))),
    runs=(Run("linear_regression", PLACED, size=4_000_000, operation_sizes=(None, 1000, 1)),
          Run("swaptions", PLACED, operation_sizes=(None, 1)), Run("matrix_multiply", PLACED, operation_sizes=(None, 1))),
    reading=readings.PLACEMENT)

FIGURE_14 = Figure(
    "Figure 14", "Memcached: throughput", "10^6 keys, values of 100 bytes, 32 YCSB clients, 4 server threads (§5.3)",
    "a hash map in the process in place of a server behind sockets, so no time goes into the network and the engine's share is larger; two "
    "threads instead of four",
    stated=(
        Stated("5 % overhead", "ResPCT, 90 % reads", "§5.3", of("hash_map", reads=90)),
        Stated("18.5 % overhead", "ResPCT, 10 % reads", "§5.3", of("hash_map", reads=10)),
        Stated("at most 10 %", "ResPCT's overhead in latency, 10 % reads", "§5.3")),
    runs=(Run("hash_map", (VOLATILE, RESPCT, PMTHREADS, PMEMOBJ), mixes=(90, 50, 10), value_sizes=(100,),
              label="hash_map in place of Memcached"),), reading=readings.RATE, model_threads=(4,), model_cores=CORES)

TABLE_3 = Figure(
    "Table 3", "Lines modified in the applications", "Dedup, Swaptions, MatMul, LR, Memcached (§5.4)", "",
    stated=(Stated("2.5 % to 7.2 %", "of the lines, in applications other than LR and Memcached", "§5.4"),
            Stated("0.47 %", "of Memcached's lines", "§5.4")),
    why_not="it counts lines of other people's programs; ours were written for the bench and have no unmodified version")

PAPER = Paper("respct", "ResPCT (EuroSys 2022)", MACHINE,
              (FIGURE_8, FIGURE_9, FIGURE_10, FIGURE_11, FIGURE_12, FIGURE_13, PLACEMENT, FIGURE_14, TABLE_3))
