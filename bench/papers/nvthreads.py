"""NVthreads (EuroSys 2017, the extended abstract): Figures 2 and 3, PageRank and k-means on this machine, with the paper's numbers next to ours."""

from . import readings
from .figure import Figure, Paper, Run, Stated
from .pmthreads import OTHER_INPUTS, PARSEC, PHOENIX
from .systems import ATLAS, MNEMOSYNE, NVTHREADS, NVTHREADS_UNLOCK, PMEMOBJ, PMTHREADS_P, PMTHREADS_UFFD, VOLATILE

MACHINE = ("two Xeon X5650 (twelve cores, 2.67 GHz), 198 GB of DRAM; NVM emulated by a tmpfs that takes 1 us for each write of 4 KB (§3)")
SHARES = (8, 512, 1024, 2048, 4096)
EVERY = (VOLATILE, NVTHREADS, NVTHREADS_UNLOCK, PMTHREADS_UFFD, PMTHREADS_P, PMEMOBJ, ATLAS, MNEMOSYNE)


def slower(system, share, value):
    return Stated(value, "slower than pthreads", "§3", {"workload": "page_regions", "system": system, "value_bytes": share})


FIGURE_2 = Figure(
    "Figure 2", "Cost of crash tolerance on Parsec and Phoenix", "NVthreads, DThreads and Atlas against pthreads, 12 cores (§3)",
    OTHER_INPUTS,
    stated=(Stated("as well as Atlas, in most cases significantly better", "NVthreads", "§3"),),
    runs=tuple(Run(workload, (NVTHREADS, PMTHREADS_UFFD, ATLAS)) for workload in (*PARSEC, *PHOENIX)), reading=readings.SLOWDOWN,
    means=(("Parsec", PARSEC), ("Phoenix", PHOENIX)), model_threads=(12,), model_cores=12)

FIGURE_3 = Figure(
    "Figure 3", "1000 pages, of each of which a part is modified: time by the part",
    "4 threads modify a random region of each of 1000 pages (§3)",
    "a lock for each page, and the pages in random order; pmthreads gathers the writes of an interval where the "
    "others log each critical section, so it gains from every page that is written again",
    stated=(
        *(slower(system, share, "about 70x in most cases") for share in SHARES[1:-1] for system in ("Mnemosyne", "Atlas")),
        *(slower(system, SHARES[-1], "more than 200x") for system in ("Mnemosyne", "Atlas")),
        Stated("3x to 30x", "NVthreads faster than Mnemosyne and Atlas", "§3")),
    runs=(Run("page_regions", EVERY, value_sizes=SHARES, threads=(1, 2, 4)),), reading=readings.SLOWDOWN)

PAGERANK = Figure(
    "PageRank", "Slashdot (82K vertices, 950K edges) and LiveJournal (1.2 GB)", "12 threads (§3)",
    "two threads and a generated graph; a bench downloads nothing",
    stated=(
        Stated("more than 2x", "NVthreads faster than Atlas, Slashdot", "§3"),
        Stated("10x", "NVthreads faster than Mnemosyne, Slashdot", "§3"),
        Stated("5 s and 29 s", "an iteration on LiveJournal, NVthreads and Atlas (almost 6x)", "§3"),
        Stated("less than 1 s", "an iteration on LiveJournal, pthreads", "§3", {"system": "volatile"})),
    runs=(Run("pagerank", EVERY),), reading=readings.SLOWDOWN, model_threads=(12,), model_cores=12)

KMEANS = Figure(
    "K-means", "Converging after a crash against starting again", "k-means with durable labels, killed and started again (§3)",
    "two threads, killed at a random moment between half and four fifths of the run",
    stated=(Stated("up to 2x sooner", "NVthreads after a failure", "§3", {"system": "NVthreads"}),),
    runs=(Run("kmeans_continuing", (NVTHREADS, NVTHREADS_UNLOCK, PMTHREADS_UFFD), with_kills=True),), reading=readings.SOONER)

FIGURE_4 = Figure(
    "Figure 4", "Tokyo Cabinet's B+tree: throughput", "NVthreads on the emulated NVM against Tokyo Cabinet on an SSD and on the emulated NVM "
    "(§3)", "",
    stated=(Stated("4x to 9x", "Tokyo Cabinet with NVthreads over Tokyo Cabinet on an SSD", "§3"),
            Stated("30 % to 50 %", "Tokyo Cabinet on the emulated NVM over that with NVthreads", "§3")),
    why_not="it is a benchmark of its own, `python3 bench/run.py tokyocabinet`: Debian's library unmodified, with threads as processes")

PAPER = Paper("nvthreads", "NVthreads (EuroSys 2017, extended abstract)", MACHINE, (FIGURE_2, FIGURE_3, PAGERANK, KMEANS, FIGURE_4))
