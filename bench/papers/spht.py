"""SPHT (FAST 2021): Figures 4 to 8 and Table 2 on this machine, with the paper's numbers next to ours."""

from . import readings, replay_runs
from .figure import Figure, Paper, Stated, System
from .replay_runs import ProgramReplayRun, ReplayRun
from .transaction_runs import TransactionRun, simulated

MACHINE = ("two sockets of sixteen cores with two hardware threads each (Xeon Gold 5218 with TSX, 22 MB of cache), 128 GB of DRAM, 512 GB of "
           "Optane in App Direct mode; means of ten runs (§4)")
SPHT_NL, SPHT_FL, SPHT_BL = System("SPHT-NL", "spht-always"), System("SPHT-FL", "spht-forward"), System("SPHT-BL", "spht-backward")
TODAY = System("spht as it is today", "spht")
NV_HTM, DUDETM, CRAFTY = System("NV-HTM", "spht-nv-htm"), System("DudeTM", "spht-dudetm"), System("Crafty", "spht-crafty")
CC_HTM, PSTM = System("cc-HTM", "spht-cc-htm"), System("PSTM", "spht-pstm")
SYSTEMS = (SPHT_NL, SPHT_FL, SPHT_BL, TODAY, NV_HTM, DUDETM, CRAFTY, CC_HTM, PSTM)

LOW_CONTENTION = ("stamp_vacation_low", "stamp_ssca2", "stamp_kmeans_vlow")
CONTENTION_PRONE = ("stamp_intruder", "stamp_kmeans_low", "stamp_genome")
UNFRIENDLY = ("stamp_labyrinth", "stamp_yada")
STAMP = tuple(TransactionRun(name, SYSTEMS) for name in (*LOW_CONTENTION, *CONTENTION_PRONE, *UNFRIENDLY))
# Threads of the simulation: the paper's first socket, and all that it has.
THREADS = (16, 64)

HERE = ("Two cores of a virtual machine, shared memory in place of Optane, and no hardware transactions: all systems run on one software "
        "transactional memory, so PSTM's accesses cost no more than the others', and it may fence while its lines are locked, which no hardware "
        "transaction can")
SIMULATION = ("Figures for more threads are those of a discrete-event simulation (docs/internals/commit-model.md) of as many cores of this "
              "kind, with costs that were measured here and workloads that it describes itself: their ratios can be compared, their rates cannot")


def of(system, *workloads, **more):
    return [{"workload": name, "system": system.name, "large": False, **more} for name in workloads]


def stated(value, text, where, rows):
    return [Stated(value, text, where, row) for row in rows]


def rate_to_first(run, first):
    return f"{readings.short(run['transactions_per_s'])}/s ({run['transactions_per_s'] / first['transactions_per_s']:.2f})"


def aborted(run, _first):
    return f"{readings.percent(run['abort_rate'])} aborted, {readings.percent(run['fallbacks'] / max(1, run['committed']))} alone"


def shares(run, _first):
    inside = 1 - run["shares"]["outside"]
    return readings.show_phases([run["shares"][name] / inside for name in ("lock", "committed", "aborted", "commit_phase")])


FIGURE_4A = Figure(
    "Figure 4a", "STAMP: throughput by threads", "vacation, ssca2, kmeans, intruder, genome, labyrinth, yada with the ++ inputs, 1 to 64 threads "
    "(§4.1.1)",
    f"{HERE}. STAMP's usual inputs, since the ++ ones take minutes a job (Figure 4a ++). {SIMULATION}",
    stated=(
        *stated("SPHT 2.6x as fast at 64 threads", "NV-HTM, the second best, in VACATION_LOW", "§4.1.1", of(NV_HTM, "stamp_vacation_low")),
        *stated("up to around 25 % slower", "links, against SPHT-NL", "§4.1.1", of(SPHT_FL, *LOW_CONTENTION[:2])),
        *stated("up to around 25 % slower", "links, against SPHT-NL", "§4.1.1", of(SPHT_BL, *LOW_CONTENTION[:2])),
        *stated("faster than SPHT-NL", "links, in KMEANS_VLOW: they serve as back-off", "§4.1.1", of(SPHT_FL, "stamp_kmeans_vlow")),
        *stated("faster than SPHT-NL", "links, in KMEANS_VLOW", "§4.1.1", of(SPHT_BL, "stamp_kmeans_vlow")),
        *stated("SPHT about 30 % faster at 64 threads", "NV-HTM in KMEANS_VLOW", "§4.1.1", of(NV_HTM, "stamp_kmeans_vlow")),
        *(one for system in (DUDETM, CRAFTY, CC_HTM, PSTM) for one in
          stated("SPHT about 5x as fast at 64 threads", "the others in KMEANS_VLOW", "§4.1.1", of(system, "stamp_kmeans_vlow"))),
        *stated("SPHT's peak about 30 % higher, up to 24 threads", "NV-HTM", "§4.1.1", of(NV_HTM, *CONTENTION_PRONE[:2])),
        *stated("faster than all with HTM", "PSTM", "§4.1.1", of(PSTM, *UNFRIENDLY)),
        *stated("much slower than the others with HTM", "Crafty", "§4.1.1", of(CRAFTY, *UNFRIENDLY)),
        Stated("at most 5 %", "cost of links in all other benchmarks", "§4.1.1"),
        Stated("64 threads", "up to which SPHT scales in VACATION_LOW", "§4.1.1")),
    runs=STAMP,
    outcome=("the same in most rows: SPHT-NL is ahead of Crafty, DudeTM and cc-HTM, level with NV-HTM or ahead, and links cost up to "
             "28 %. Different: PSTM is ahead of SPHT-NL in short transactions too, because all run in software here; SPHT as it is "
             "today has most of that back; and links do not help KMEANS_VLOW, since two threads contend little"),
    reading=readings.TO_FIRST_ENGINE, model_threads=THREADS, simulated=simulated(rate_to_first))

LARGE_SYSTEMS = (SPHT_NL, TODAY, NV_HTM, PSTM)
FIGURE_4A_LARGE = Figure(
    "Figure 4a ++", "STAMP with the ++ inputs, scaled to this machine", "as Figure 4a",
    f"{HERE}. The inputs of `stillpoint bench --large`, by four systems and two threads, without those whose job takes more than a minute "
    "here (ssca2, kmeans, yada)",
    stated=(Stated("SPHT 2.6x as fast at 64 threads", "NV-HTM, the second best, in VACATION_LOW", "§4.1.1",
                   {"workload": "stamp_vacation_low", "system": NV_HTM.name, "large": True}),
            Stated("faster than all with HTM", "PSTM", "§4.1.1", {"workload": "stamp_labyrinth", "system": PSTM.name, "large": True})),
    runs=tuple(TransactionRun(name, LARGE_SYSTEMS, threads=(2,), large=True)
               for name in ("stamp_vacation_low", "stamp_labyrinth", "stamp_genome", "stamp_intruder")),
    reading=readings.TO_FIRST_ENGINE)

FIGURE_4B = Figure(
    "Figure 4b", "STAMP: attempts that abort, transactions under the global lock",
    "probability to commit or abort in HTM, or to enter the single global lock (§4.1.1)",
    f"{HERE}: an attempt aborts by a conflict alone, never by capacity, so nearly none does with one thread. As in the paper, the eleventh attempt "
    f"runs alone. {SIMULATION}; \"alone\" are there those that took the lock",
    stated=(
        *(Stated(f"{percent} % aborted at 64 threads", "KMEANS_VLOW", "§4.1.1", of(system, "stamp_kmeans_vlow")[0])
          for system, percent in ((SPHT_NL, 79), (SPHT_FL, 45), (SPHT_BL, 43))),
        *(Stated("much higher than SPHT's as threads grow", "aborts in VACATION_LOW", "§4.1.1", of(system, "stamp_vacation_low")[0])
          for system in (CRAFTY, DUDETM)),
        Stated("not negligible", "aborts of the systems with HTM with one thread: some transactions exceed its capacity", "§4.1.1")),
    runs=STAMP,
    outcome=("the same: Crafty aborts most, and links lower the aborts of KMEANS_VLOW. Different: DudeTM's clock costs no "
             "aborts, because the software's transactions do not hold its line while they run; and with one thread nothing "
             "aborts"),
    reading=readings.ATTEMPTS, model_threads=THREADS, simulated=simulated(aborted))

FIGURE_4C = Figure(
    "Figure 4c", "STAMP: where the time goes", "in the global lock, in commits in HTM, in aborts in HTM, in the commit phase (§4.1.1)",
    f"{HERE}: the commit phase here has the software's locking, checking and storing of what was written as well, which HTM does inside the "
    "transaction; it ends when the transaction is durable. Taken of one transaction in eight, in slices of their own, with a clock that costs "
    f"some 25 ns a reading. {SIMULATION}",
    stated=(Stated("76 % in the commit phase at 64 threads", "NV-HTM in VACATION_LOW", "§4.1.1", of(NV_HTM, "stamp_vacation_low")[0]),
            Stated("62 % in the commit phase at 64 threads", "SPHT in VACATION_LOW", "§4.1.1", of(SPHT_NL, "stamp_vacation_low")[0]),
            Stated("almost 95 % in the commit phase from 32 threads", "cc-HTM in VACATION_LOW", "§4.1.1",
                   of(CC_HTM, "stamp_vacation_low")[0])),
    runs=STAMP,
    outcome=("the same: most of the time goes into the commit phase, and nearly all of cc-HTM's and DudeTM's, which wait for "
             "a thread in the background. Different: nothing runs alone, because few attempts abort"),
    reading=readings.PHASES, model_threads=THREADS, simulated=simulated(shares))

PAYMENTS = TransactionRun("tpcc_payments", SYSTEMS, label="95 % payments")
TPCC = (PAYMENTS, TransactionRun("tpcc_standard", SYSTEMS, label="standard mix"))
FIGURE_5 = Figure(
    "Figure 5", "TPC-C: throughput by threads", "32 warehouses, 95 % Payment, 2 % New-Order, 3 % Delivery, 1 to 64 threads (§4.1.2)",
    f"{HERE}. Two warehouses; the paper's mix, and that of the standard with all five transactions. {SIMULATION}",
    stated=(
        *stated("scales to 48 threads", "SPHT and its variants, alone", "§4.1.2", of(SPHT_NL, "tpcc_payments")),
        *stated("stops at 8 threads", "NV-HTM", "§4.1.2", of(NV_HTM, "tpcc_payments")),
        *stated("stops at 12 threads", "DudeTM", "§4.1.2", of(DUDETM, "tpcc_payments")),
        *stated("stops at 8 threads", "cc-HTM", "§4.1.2", of(CC_HTM, "tpcc_payments")),
        Stated("up to 2.2x at 64 threads", "SPHT over the other systems", "§1"),
        Stated("a drop", "of all solutions when hyper-threading begins, after 16 threads", "§4.1.2")),
    runs=TPCC,
    outcome=("the same: SPHT is ahead of DudeTM, Crafty and cc-HTM. Different: NV-HTM is level with SPHT-NL, since two threads wait "
             "little for each other's commits, and PSTM with SPHT as it is today, because all run in software here"),
    reading=readings.TO_FIRST_ENGINE, model_threads=THREADS, simulated=simulated(rate_to_first))

FIGURE_5_ABORTS = Figure(
    "Figure 5 aborts", "TPC-C: attempts that abort", "probability of an abort (§4.1.2)", f"{HERE}: conflicts alone abort. {SIMULATION}",
    stated=(*(Stated("lower than SPHT-NL's", "links serve as back-off", "§4.1.2", of(system, "tpcc_payments")[0])
              for system in (SPHT_FL, SPHT_BL)),
            Stated("comparable to SPHT's, or lower", "NV-HTM", "§4.1.2", of(NV_HTM, "tpcc_payments")[0]),
            Stated("higher than NV-HTM's and SPHT's", "Crafty", "§4.1.2", of(CRAFTY, "tpcc_payments")[0])),
    runs=TPCC,
    outcome=("the same: NV-HTM aborts about as often as SPHT, and Crafty more often. Different: two threads meet in few "
             "rows, so all shares are small, and those of links are within the noise"),
    reading=readings.ATTEMPTS, model_threads=THREADS, simulated=simulated(aborted))

REPLAY_HERE = ("64 logs as in the paper, with fewer writes (2 million); one and two replayers, on two cores of a virtual machine; the heap is "
               "shared memory")
SORTING, LINKS = System("sorting", "sorting"), System("links", "links")
SORTING_FILTER, LINKS_FILTER = System("sorting, filtered", "sorting, filter"), System("backward links, filtered", "links, filter")
HEAPS_MIB = (1, 4, 64, 512)
FIGURE_6 = Figure(
    "Figure 6", "Linking against sorting, by the size of the heap",
    "64 logs, 10 million transactions of 1 or 5 writes, uniformly at random; 1 or 8 replayers; heaps of 1 MB to 512 MB (§4.2)",
    f"{REPLAY_HERE}. What links cost the transactions is in Figures 4a and 5 (SPHT-FL, SPHT-BL). Backward links and filtering are not in the "
    "paper's figure",
    stated=(Stated("up to 3.5x", "gain of linking, heaps below 4 MB", "§4.2"),
            Stated("about 50 %", "gain of linking, large heaps, 1 write a transaction, 8 replayers", "§4.2"),
            Stated("larger with fewer writes a transaction", "gain of linking", "§4.2")),
    runs=tuple(ReplayRun("replay", (SORTING, LINKS, SORTING_FILTER, LINKS_FILTER), heap_mib=heap_mib, writes_each=writes_each)
               for heap_mib in HEAPS_MIB for writes_each in (1, 5)),
    outcome=("the same: linking gains most with small heaps and one write a transaction, and still gains with large ones. "
             "Different: the gain is larger with one replayer, because sorting looks at the heads of 64 logs for each record "
             "and our replay of a write costs less"),
    reading=readings.TO_SORTING, counted="replayer")

NO_FILTER, FILTER = System("no filter", "links"), System("filter", "links, filter")
APART = ("More replayers than cores: each one's part was measured without the others, and the slowest counts, as if caches and memory were not "
         "shared; what this gives for two stands beside it as its error")
FIGURE_7 = Figure(
    "Figure 7", "Parallel replay: speed-up by replayers",
    "heaps of 1 MB and 512 MB, without a filter and with one at 20 % and 80 % of duplicates (§4.2)", f"{REPLAY_HERE}. {APART}. Along links: forward without the filter, backward with it",
    stated=(Stated("up to 2.8x", "512 MB, the most with the filter at 20 % of duplicates", "§4.2",
                   {"heap_mib": 512, "duplicates": 20, "system": FILTER.name}),
            Stated("about 20 % at 8 replayers", "1 MB, filter at 20 % of duplicates", "§4.2",
                   {"heap_mib": 1, "duplicates": 20, "system": FILTER.name}),
            *(Stated("slower with more replayers", "1 MB, all other cases", "§4.2",
                     {"heap_mib": 1, "duplicates": duplicates, "system": name})
              for duplicates, name in ((20, NO_FILTER.name), (80, NO_FILTER.name), (80, FILTER.name)))),
    runs=tuple(ReplayRun("replay", (NO_FILTER, FILTER), heap_mib=heap_mib, duplicates=duplicates)
               for heap_mib in (1, 512) for duplicates in (20, 80)),
    outcome=("the same with 512 MB: a second replayer makes replay 1.4 to 1.9 times as fast. Different with 1 MB: it gains a little, "
             "where the paper's loses, since each replayer has a core's first cache of its own"),
    reading=readings.TO_ONE, counted="replayer", model_threads=(4, 8, 16), simulated=replay_runs.if_apart)

PROGRAMS = ("stamp_vacation_low", "stamp_genome")
CAPTURED = ("the logs that eight threads of the program have left in a pool when it was killed after two seconds, with forward links, read from "
            "the pool and replayed as recovery does")
FIGURE_8 = Figure(
    "Figure 8", "Replay of the logs of vacation and genome", "VACATION_LOW and GENOME, 1 to 16 replayers, sorting and linking (§4.2)",
    f"{CAPTURED}; usual inputs, 1 and 2 replayers. {APART}",
    stated=(Stated("about 1.3x at 16 replayers", "parallel replay by sorting, VACATION_LOW", "§4.2",
                   {"workload": PROGRAMS[0], "system": SORTING.name}),
            Stated("about 2.1x at 16 replayers", "parallel replay by sorting, GENOME", "§4.2",
                   {"workload": PROGRAMS[1], "system": SORTING.name}),
            *(Stated("another 35 %", "linking over sorting", "§4.2", {"workload": name, "system": LINKS.name}) for name in PROGRAMS)),
    runs=tuple(ProgramReplayRun(name, (SORTING, LINKS)) for name in PROGRAMS),
    outcome=("the same: links replay two fifths to a half faster than sorting. Different: a second replayer gains at most 8 %, because "
             "these logs write few distinct pages many times, and both replayers read all of each log"),
    reading=readings.TO_ONE_SORTING, counted="replayer", model_threads=(4, 8, 16), simulated=replay_runs.if_apart)

MISSES_OF_PAPER = {"stamp_vacation_low": "8.64 %, 6.32 %, 5.81 %, 5.20 %, 4.75 %", "stamp_genome": "8.85 %, 5.76 %, 4.99 %, 4.26 %, 3.82 %"}
TABLE_2 = Figure(
    "Table 2", "Misses of the first cache in replay along links", "VACATION_LOW and GENOME, 1, 2, 4, 8 and 16 replayers (§4.2)",
    f"{CAPTURED}, as in Figure 8. Each replayer has a core's first cache for itself, so the first of them runs alone. Where the processor's "
    "counters are not there, as in most virtual machines, valgrind simulates a cache of 32 KB: reads and writes together, prefetches do nothing",
    stated=tuple(Stated(f"{numbers} with 1, 2, 4, 8, 16 replayers", name, "Table 2", {"workload": name}) for name, numbers in
                 MISSES_OF_PAPER.items()),
    runs=tuple(ProgramReplayRun(name, (LINKS,), misses=True) for name in PROGRAMS),
    outcome=("the same: misses fall with more replayers, since each of them reads the same logs and stores less. Different: "
             "there are fewer, because neighbouring words share one header in our logs and a log is read in the order in "
             "which it lies"),
    reading=replay_runs.MISSES, counted="replayer", model_threads=(4, 8, 16), simulated=replay_runs.more_misses)

PAPER = Paper("spht", "SPHT (FAST 2021)", MACHINE,
              (FIGURE_4A, FIGURE_4A_LARGE, FIGURE_4B, FIGURE_4C, FIGURE_5, FIGURE_5_ABORTS, FIGURE_6, FIGURE_7, FIGURE_8, TABLE_2))
