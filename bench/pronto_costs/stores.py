"""Parts that are runs of `stillpoint bench`: maps and the queue against volatile and all peers, the B+tree against libpmemobj, and stores
against RocksDB."""

from driver.pages import BenchRuns
from driver.tables import ratio

from .shown import duration, of, safe, short, table


def rows_table(cells):
    """`cells`: [(heading: the medium, cell)]."""
    return table(["medium", "work", "threads", "", "operations", "of volatile", "of the best volatile", "of the best peer",
                  "CPU of an operation"],
                 [row for medium, cell in cells for row in rows_of(medium, cell)])


def rows_of(medium, cell):
    work = " ".join(filter(None, [cell["workload"], cell["mix"]]))
    for row in cell["configurations"]:
        rate = of(row, "rate", "median")
        yield [medium, safe(work), str(cell["threads"]), safe(row["name"]), f"{short(rate)}/s" if rate else "-",
               spread_of(row["to_volatile"]), spread_of(row.get("to_best_volatile")), best_peer_of(row),
               duration(of(row, "cpu_ns_per_operation", "median"))]


def best_peer_of(row):
    found = row.get("to_best_peer")
    return "-" if found is None else f"{ratio(found['median'])} ({safe(found['peer'])})"


def spread_of(found):
    return "-" if found is None else f"{ratio(found['median'])} ({ratio(found['low'])} to {ratio(found['high'])})"


MAP_BARS = (("90:10", 0.70), ("50:50", 0.60), ("10:90", 0.55))
USUAL = "--threads 2 --durability power --no-kill --engine"
AS_FAST_AS_PEERS = "pronto.best_peer>=1"
STRUCTURES = BenchRuns(
    "Maps and the queue, two threads, against volatile and all peers",
    "The hash map of the bench inside a durable object (`pronto`), `durable::string_map` and `durable::sharded_string_map` in its place, and the "
    "queue; a mix is reads:updates, values have 8 bytes or 4 KiB, keys are uniformly random. The best volatile is the faster of the baselines, "
    "the best peer that of all that are here.",
    (("memory", f"--workload hash_map --mix 90:10,50:50,10:90 {USUAL} pronto,pronto-strings,pronto-sharded,peers",
      (*(f"hash_map {mix}: pronto.best_volatile>={limit}" for mix, limit in MAP_BARS), AS_FAST_AS_PEERS)),
     ("memory, 4 KiB", f"--workload hash_map --mix 50:50 --value-size 4096 --size 100000 {USUAL} pronto,pronto-strings,pronto-sharded,peers",
      ("hash_map 50:50: pronto.best_volatile>=0.60", AS_FAST_AS_PEERS)),
     ("memory", f"--workload queue {USUAL} pronto,peers", ("queue: pronto.best_volatile>=0.50", AS_FAST_AS_PEERS))), rows_table)
DOOR = BenchRuns(
    "Maps against systems through the door, two threads",
    "Debian's LevelDB, Tkrzw and WiredTiger, each by one file of glue ([leveldb.cpp](../../../bench/peer/leveldb.cpp) and its neighbours) for "
    "`stillpoint bench --peer`: a call through a pointer into a library. Their files lie in shared memory too, where a sync costs a system call.",
    (("memory", f"--workload hash_map --mix 90:10,50:50,10:90 {USUAL} pronto {{with_glued_peers}}", (AS_FAST_AS_PEERS,)),
     ("memory, 4 KiB", f"--workload hash_map --mix 50:50 --value-size 4096 --size 100000 {USUAL} pronto {{with_glued_peers}}",
      (AS_FAST_AS_PEERS,))), rows_table)
BTREE = BenchRuns(
    "B+tree against libpmemobj, YCSB's mixes A and B (Figure 5.10)",
    "The B+tree of the bench ([btree.hpp](../../../bench/structures/btree.hpp)) inside a durable object, and the same tree with libpmemobj's "
    "transactions; 200,000 keys, values of 1 KiB, keys uniformly random; a mix is reads:updates.",
    (("memory", "--workload btree --mix 50:50,95:5 --value-size 1024 --size 200000 --threads 1,2 --engine pronto,pmemobj --durability power "
      "--no-kill", ()),), rows_table)
ROCKSDB = BenchRuns(
    "A store against RocksDB, YCSB A and B (Figure 5.9)",
    "`durable::string_map` against RocksDB (Debian's 7.8, unchanged) whose log is synced for each write, and whose log is not; 100,000 values of "
    "1 KiB, Zipf. On shared memory a sync costs nothing; on the disk it is what is measured. Volatile is the bench's own hash map without a pool.",
    tuple((medium, f"--workload ycsb_a,ycsb_b --value-size 1024 --size 100000 --threads 1,2 --engine pronto,rocksdb-sync,rocksdb-async "
           f"--durability power --no-kill {where}", ())
          for medium, where in (("memory", ""), ("file", "--medium file --pool {disk}"))), rows_table)
