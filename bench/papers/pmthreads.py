"""PMThreads (PLDI 2020): Figures 4 to 9 and Tables 1 to 4 on this machine, with the paper's numbers next to ours.

PMThreads-I is engine pmthreads with the tracker hooks (compiler-inserted marks), PMThreads-P with mprotect; uffd is ours."""

from . import readings
from .figure import Figure, Paper, Run, Stated
from .systems import ATLAS, MNEMOSYNE, NVTHREADS, PMEMOBJ, PMTHREADS_I, PMTHREADS_P, PMTHREADS_UFFD, VOLATILE, pmthreads

MACHINE = ("two sockets of ten cores (Xeon E5-2670 v2, 2.0 GHz), 32 GB of DRAM that emulates NVM with 100 ns for each clflush; interval "
           "100 ms; means of ten runs (§6, §6.1, §6.2)")
EVERY = (PMTHREADS_I, PMTHREADS_P, PMTHREADS_UFFD, NVTHREADS, ATLAS)
PARSEC = ("blackscholes", "canneal", "dedup", "ferret", "streamcluster", "swaptions")
PHOENIX = ("histogram", "kmeans", "linear_regression", "matrix_multiply", "pca", "reverse_index", "string_match", "word_count")
OTHER_INPUTS = ("twenty cores against two, and inputs of our own in programs written for this bench after the suites' descriptions; the "
                "pools lie in shared memory without the 100 ns")


def of(workload, system):
    return {"workload": workload, "system": system}


MEANS = [Stated(value, "geometric mean of the slowdowns", "Table 1", {"mean": suite, "system": system})
         for suite, values in (("Parsec", ("1.43x", "1.95x", "7.70x", "2.35x")), ("Phoenix", ("2.22x", "1.39x", "2.08x", "4.69x")))
         for system, value in zip(("PMThreads-I", "PMThreads-P", "NVthreads", "Atlas"), values)]

FIGURE_4A = Figure(
    "Figure 4a", "Parsec: slowdown against pthreads", "20 threads, every allocation durable (§6.3)",
    OTHER_INPUTS,
    stated=(
        Stated("less than 20 % slowdown", "PMThreads-I on most of Parsec, but ferret and swaptions", "§6.3"),
        Stated("about 2x", "PMThreads-I on ferret", "§6.3", of("ferret", "PMThreads-I")),
        Stated("about 3.4x", "PMThreads-I on swaptions", "§6.3", of("swaptions", "PMThreads-I")),
        Stated("about 71x", "NVthreads on dedup", "§6.3", of("dedup", "NVthreads")),
        Stated("about 7x", "PMThreads-P on dedup", "§6.3", of("dedup", "PMThreads-P")),
        Stated("about 1.13x", "PMThreads-I on streamcluster", "§6.3", of("streamcluster", "PMThreads-I")),
        Stated("about 1.04x", "PMThreads-P on streamcluster", "§6.3", of("streamcluster", "PMThreads-P")),
        Stated("nearly 2x", "Atlas on streamcluster", "§6.3", of("streamcluster", "Atlas")),
        Stated("almost 8x", "NVthreads on streamcluster", "§6.3", of("streamcluster", "NVthreads")),
        Stated("more than 10x", "NVthreads on canneal", "§6.3", of("canneal", "NVthreads"))),
    runs=tuple(Run(workload, EVERY) for workload in PARSEC), reading=readings.SLOWDOWN, model_threads=(20,), model_cores=20)

FIGURE_4B = Figure(
    "Figure 4b", "Phoenix: slowdown against pthreads", "20 threads, every allocation durable (§6.3)",
    OTHER_INPUTS,
    stated=(
        Stated("about 5.0x", "PMThreads-I on histogram", "§6.3", of("histogram", "PMThreads-I")),
        Stated("about 12.1x", "PMThreads-I on linear_regression", "§6.3", of("linear_regression", "PMThreads-I")),
        Stated("about 6.5x", "PMThreads-I on string_match", "§6.3", of("string_match", "PMThreads-I")),
        Stated("nearly 2x", "NVthreads on kmeans", "§6.3", of("kmeans", "NVthreads")),
        Stated("less than 20 % overhead", "PMThreads on kmeans", "§6.3", of("kmeans", "PMThreads-P")),
        Stated("below 20 %", "PMThreads-P on linear_regression", "§6.3", of("linear_regression", "PMThreads-P")),
        Stated("below 20 %", "PMThreads-P on string_match", "§6.3", of("string_match", "PMThreads-P")),
        Stated("1.8x to 2.6x", "NVthreads on kmeans, linear_regression and string_match", "§6.3")),
    runs=tuple(Run(workload, EVERY) for workload in PHOENIX), reading=readings.SLOWDOWN, model_threads=(20,), model_cores=20)

TABLE_1 = Figure(
    "Table 1", "Geometric means of the slowdowns", "20 threads, Parsec and Phoenix (§6.3)",
    "two threads instead of twenty, and the mean is over the workloads that are here, not over the paper's six and eight",
    stated=(*MEANS, Stated("more than 5.38x", "PMThreads-I over NVthreads, Parsec", "§6.3"),
            Stated("1.64x", "PMThreads-I over Atlas, Parsec", "§6.3"),
            Stated("over 50 %", "PMThreads-P slower than PMThreads-I, Parsec", "§6.3"),
            Stated("40 %", "NVthreads slower than PMThreads-P, Phoenix", "§6.3")),
    runs=FIGURE_4A.runs + FIGURE_4B.runs, reading=readings.SLOWDOWN, means=(("Parsec", PARSEC), ("Phoenix", PHOENIX)), only_means=True)

STRESS = (VOLATILE, PMTHREADS_I, PMTHREADS_P, PMTHREADS_UFFD, PMEMOBJ, NVTHREADS, ATLAS, MNEMOSYNE)
AT_LEAST = Stated("at least 4.7x", "PMThreads over NVthreads, Mnemosyne and Atlas in the stress tests", "§7")
FIGURE_5 = Figure(
    "Figure 5", "B+tree: operations a second by threads and share of PUT",
    "FAST-FAIR, 1,000,000 of 2,000,000 keys, 1 to 40 threads, 10, 50 and 90 % PUT (§6.4)",
    "our tree has a mutex in each leaf and PUT overwrites instead of inserting and removing; two cores; PMThreads-ZERO (interception only) "
    "has no engine here; libpmemobj is added",
    stated=(
        Stated("2.8x to 7.8x slower", "PMThreads-P at 32 and 40 threads on 20 cores than at a single thread", "§6.4"),
        Stated("up to 10 threads", "PMThreads-P gains from threads, 10 % PUT", "§6.4",
               {"workload": "btree", "system": "PMThreads-P", "reads": 90}),
        Stated("up to 8 threads", "the same, 50 % PUT", "§6.4", {"workload": "btree", "system": "PMThreads-P", "reads": 50}),
        Stated("up to 4 threads", "the same, 90 % PUT", "§6.4", {"workload": "btree", "system": "PMThreads-P", "reads": 10}),
        Stated("up to 20 threads", "PMThreads-I gains from threads, every workload", "§6.4", {"system": "PMThreads-I"}), AT_LEAST),
    runs=(Run("btree", STRESS, mixes=(90, 50, 10)),), reading=readings.RATE, model_threads=(10, 20), model_cores=20)

FIGURE_6 = Figure(
    "Figure 6", "Ordered linked list: operations a second by threads and share of PUT",
    "lock-coupling list of synchrobench, 40,000 elements and 40,000 operations, 1 to 40 threads (§6.4)",
    "a list of our own with two cores and its own length; libpmemobj is added",
    stated=(
        Stated("up to 10 threads", "pthreads gains from threads", "§6.4", {"system": "volatile"}),
        Stated("best at 1, 2 and 4 threads", "Mnemosyne, whose port has no locks, 10 % PUT", "§6.4",
               {"system": "Mnemosyne", "reads": 90}), AT_LEAST),
    runs=(Run("list", STRESS, mixes=(90, 50, 10)),), reading=readings.RATE, model_threads=(10, 20), model_cores=20)

# memtier_benchmark's values are 32 bytes by default; the paper does not say.
CACHE = "hash_map in place of Memcached"
FIGURE_7 = Figure(
    "Figure 7", "Memcached: throughput by interval and server threads",
    "Memcached 1.2.4 with memtier_benchmark on the other socket, PMThreads-I (§6.5)",
    "a hash map in the process in place of a server behind sockets, so no time goes into the network and the engine's share is larger; "
    "PMThreads-infinity (no checkpoints) is an interval that no slice reaches",
    stated=(Stated("within 2x", "mean slowdown of Memcached against pthreads", "§7"),),
    runs=(Run("hash_map", (VOLATILE, *(pmthreads(interval) for interval in (10, 100, 500))), mixes=(50,), value_sizes=(32,), label=CACHE),),
    reading=readings.RATE, model_threads=(10,), model_cores=20)

INTERVALS = (10, 20, 40, 100, 200, 500)
SWEEP = (Run("hash_map", tuple(pmthreads(interval) for interval in INTERVALS), mixes=(50,), value_sizes=(32,), label=CACHE),)
FIGURE_8 = Figure(
    "Figure 8", "Memcached: bytes written to NVM at each quiescent state, by interval", "ten seconds at 1:1, intervals 10 to 500 ms (§6.5)",
    "as Figure 7; keys are uniformly random, so nearly every update of a short interval dirties a page of its own",
    runs=SWEEP, reading=readings.CHECKPOINT_BYTES)

TABLE_2 = Figure(
    "Table 2", "Bytes of writes that buffering saves in an interval", "as Figure 8: writes to the shadow minus writes to NVM (§6.5)",
    "the bench counts the bytes that the program meant to change, not every store, and a dirty page goes whole: where each interval changes "
    "a few words of very many pages the difference is negative, which is write amplification instead of a saving",
    stated=tuple(Stated(f"{volume} MB", f"saved at {interval} ms", "Table 2", {"system": f"pmthreads (uffd), {interval} ms"})
                 for interval, volume in zip(INTERVALS, ("3.7", "7.7", "15.2", "37.8", "76.1", "176.5"))),
    runs=SWEEP, reading=readings.BYTES_SAVED)

FIGURE_9 = Figure(
    "Figure 9", "Memcached: time spent in the barrier of a checkpoint, by threads", "100 ms, 50 % PUT; box plots (§6.5)",
    "our threads do not walk into a barrier: they are held at their next acquire while the stop lasts, so the time of the whole stop, "
    "copying included, stands here; as Figure 7 otherwise. The model's stop grows with the pages of an epoch",
    runs=(Run("hash_map", (PMTHREADS_UFFD, PMTHREADS_P, PMTHREADS_I), mixes=(50,), value_sizes=(32,), label=CACHE),),
    reading=readings.STOPS, model_threads=(10,), model_cores=20)


def recovery_table(number, what, workload, rows, differs):
    names = [f"pmthreads (uffd), {interval} ms" for interval in (10, 100, 500)] + ["Atlas"]
    systems = (*(pmthreads(interval) for interval in (10, 100, 500)), ATLAS)
    stated = tuple(Stated(value, "PMThreads-I at this interval, or Atlas", number, {"system": name}) for name, value in zip(names, rows))
    return Figure(number, f"{what}: inserted, recovered, recovery time, volume", "10 threads insert for 2000 ms, then a crash (§6.6)",
                  differs, stated=stated, runs=(Run(workload, systems, mixes=(0,), with_kills=True),), reading=readings.KILL)


UNLIKE = ("PMThreads-I measured the recovery itself, we the whole restart of the process to its first operation; we kill after three to six "
          "intervals, and what is lost is in proportion to that; the pool's size is that of the file, which keeps room for growth")
TABLE_3 = recovery_table(
    "Table 3", "B+tree", "btree",
    ("599992 inserted, 599989 recovered, 4.39 ms, 29 MB", "1146872 inserted, 1132363 recovered (1.3 % lost), 6.55 ms, 51 MB",
     "1271418 inserted, 979564 recovered (22.3 % lost), 5.30 ms, 36 MB", "164970 inserted, 164970 recovered, 8.20 s, 860 MB"),
    f"our tree is full at the start and overwrites; {UNLIKE}")
TABLE_4 = recovery_table(
    "Table 4", "Linked list", "list",
    ("24675 inserted, 24675 recovered, 0.71 ms, 4.4 MB", "25231 inserted, 24940 recovered (1.2 % lost), 0.76 ms, 4.5 MB",
     "24233 inserted, 20505 recovered (15.4 % lost), 0.57 ms, 3.5 MB", "6379 inserted, 6379 recovered, 108.8 s, 602 MB"), UNLIKE)

PAPER = Paper(
    "pmthreads", "PMThreads (PLDI 2020)", MACHINE,
    (FIGURE_4A, FIGURE_4B, TABLE_1, FIGURE_5, FIGURE_6, FIGURE_7, FIGURE_8, TABLE_2, FIGURE_9, TABLE_3, TABLE_4),
    beyond=(Stated("3.1x and 2.6x", "PMThreads over NVthreads and Atlas on Parsec and on Phoenix, in the mean", "§7"),))
