#!/usr/bin/env python3
"""Pronto (Memaripour's thesis, chapter 5): Figures 5.6 to 5.12 on this machine, with the paper's numbers beside ours."""

import sys

import program
import readings
from figure import Figure, Paper, Run, Stated, System
from systems import (KAMINO_TX, NOT_OURS, PMEMOBJ, PMTHREADS_UFFD, PRONTO, ROCKSDB_ASYNC, ROCKSDB_SYNC, VOLATILE, pmthreads)

MACHINE = ("two sockets of twelve cores with two hardware threads each (Cascade Lake-SP, 2.2 GHz), of which one is used; 192 GB of DRAM and "
           "1.5 TB of Optane on each, ext4 with DAX (§5.3.1)")
COMPARED = (VOLATILE, PRONTO, PMTHREADS_UFFD, PMEMOBJ)
SIZES = (256, 512, 1024, 2048, 4096)
NO_LOG = "Pronto logs each operation before it returns; pmthreads, which stands here until then, may lose the last interval"


def of(workload, system="Pronto", **more):
    return {"workload": workload, "system": system, **more}


FIGURE_5_6 = Figure(
    "Figure 5.6", "Latency of operations on STL containers, by the size of the data", "one thread, 5 million inserts, keys of 32 bytes, a "
    "snapshot at least every 15 s (§5.3.2)", f"smaller containers, keys of 8 bytes; {NO_LOG}",
    stated=(
        Stated("up to 28x", "Pronto on small operations: inserting 256 bytes into a vector", "§5.3.2", of("stl_vector", value_bytes=256)),
        Stated("3.2x", "Pronto on a map with values of 4 KB, its lowest", "§5.3.2", of("stl_map", value_bytes=4096))),
    runs=tuple(Run(workload, COMPARED, value_sizes=SIZES, mixes=(0,), threads=(1,))
               for workload in ("stl_map", "stl_unordered_map", "stl_vector", "stl_priority_queue")), reading=readings.LATENCY)

FIGURE_5_7 = Figure(
    "Figure 5.7", "Concurrent hash map: inserts a second by threads", "32 unordered_maps with a lock each, 5 million inserts of 1 KB, 1 to 8 threads, a "
    "snapshot at least every 10 s (§5.3.2)", f"a map with a lock in each bucket, updates of which half insert and half remove; {NO_LOG}",
    runs=(Run("hash_map", COMPARED, mixes=(0,), value_sizes=(1024,), size=200_000),), reading=readings.RATE,
    model_threads=(4, 8), model_cores=12)

FIGURE_5_8 = Figure(
    "Figure 5.8", "PMEMKV against the containers with Pronto: latency of an insert", "YCSB traces of Figure 5.6; PMEMKV 0.3x with kvtree2 "
    "(§5.3.3)", f"PMEMKV is not packaged by Debian: libpmemobj, on which it is built, has its place, in a hash map and a B+tree; {NO_LOG}",
    stated=(Stated("up to 3.83x", "lower latency than PMEMKV's, map with Pronto", "§5.3.3", of("stl_map", value_bytes=1024)),
            Stated("up to 3.77x", "lower latency than PMEMKV's, unordered_map with Pronto", "§5.3.3",
                   of("stl_unordered_map", value_bytes=1024))),
    runs=(*(Run(workload, (VOLATILE, PRONTO, PMTHREADS_UFFD), value_sizes=(1024,), mixes=(0,), threads=(1,))
            for workload in ("stl_map", "stl_unordered_map")),
          *(Run(workload, (VOLATILE, PMEMOBJ, System("PMEMKV", absent=NOT_OURS)), value_sizes=(1024,), mixes=(0,), size=200_000,
                threads=(1,))
            for workload in ("btree", "hash_map"))), reading=readings.LATENCY)

YCSB = ("ycsb_a", "ycsb_b")
FIGURE_5_9 = Figure(
    "Figure 5.9", "RocksDB with Pronto against its own log: YCSB A and B", "RocksDB 5.17, 5 million pairs, 5 million operations (§5.3.4)",
    f"RocksDB 7.8 is measured as it is; no engine is built into it, so the engines' rows are the bench's own store; {NO_LOG}",
    stated=(Stated("equal to asynchronous writes", "RocksDB with Pronto, both workloads; no number", "§5.3.4"),),
    runs=tuple(Run(workload, (VOLATILE, PRONTO, PMTHREADS_UFFD, ROCKSDB_SYNC, ROCKSDB_ASYNC), value_sizes=(1024,), size=100_000)
               for workload in YCSB), reading=readings.RATE)

FIGURE_5_10 = Figure(
    "Figure 5.10", "B+tree: Pronto against PMDK and Kamino-Tx, YCSB A and B", "Kamino-Tx's B+tree, values of 1 KB (§5.3.5)",
    f"uniformly random keys in a B+tree of our own, 50 % and 95 % reads; {NO_LOG}",
    stated=(Stated("higher than both", "Pronto's throughput, YCSB A; no number", "§5.3.5"),
            Stated("slightly higher", "Pronto's throughput, YCSB B; no number", "§5.3.5")),
    runs=(Run("btree", (*COMPARED, KAMINO_TX), mixes=(50, 95), value_sizes=(1024,), size=200_000),), reading=readings.RATE,
    model_threads=(4, 8), model_cores=12)

FIGURE_5_11 = Figure(
    "Figure 5.11", "Asynchronous against synchronous semantic logging, by the latency of the operation", "operations of 100 ns to 100 us, "
    "entries of 1 KB (§5.3.6)", "", why_not="it measures the semantic log alone, which needs the engine pronto: engine not yet here")

SNAPSHOT_SIZES = (20_000, 200_000, 800_000)
FIGURE_5_12 = Figure(
    "Figure 5.12", "Snapshots: stall of the updates and cost, by the size of the data",
    "2 MB to 16 GB; sequential and random accesses of 64 bits, half of them writes (§5.3.7)",
    "Pronto copies everything at each snapshot, pmthreads what was written since the last one, so its stop follows the rate of writing more "
    "than the size; hash maps of up to 800,000 values of 100 bytes (uniformly random accesses) instead of 16 GB",
    stated=(Stated("22 ms to 34 ms", "stall of updates by Pronto's snapshot, from 2 MB to 16 GB", "§5.3.7"),
            Stated("about 10 %", "cost of a snapshot with random accesses", "§5.3.7"),
            Stated("0.8 %", "cost of a snapshot with sequential accesses", "§5.3.7")),
    runs=tuple(Run("hash_map", (PRONTO, pmthreads()), mixes=(50,), value_sizes=(100,), size=size) for size in SNAPSHOT_SIZES),
    reading=readings.STOPS)

PAPER = Paper("pronto", "Pronto (Memaripour's thesis, chapter 5)", MACHINE,
              (FIGURE_5_6, FIGURE_5_7, FIGURE_5_8, FIGURE_5_9, FIGURE_5_10, FIGURE_5_11, FIGURE_5_12),
              beyond=(Stated("less than 400 ms", "recovery of 1 GB, failure-atomic quick-sort, 16 threads", "§5.3.8"),
                      Stated("less than 7 s", "recovery of 32 GB", "§5.3.8")))

if __name__ == "__main__":
    sys.exit(program.main([PAPER], __doc__))
