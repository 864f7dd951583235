"""Parts that are runs of `stillpoint bench`: the B+tree against libpmemobj, and stores against RocksDB."""

from driver.pages import BenchRuns
from driver.tables import ratio

from .shown import duration, of, safe, short, table


def rows_table(cells):
    """`cells`: [(heading: the medium, cell)]."""
    return table(["medium", "work", "threads", "", "operations", "of volatile", "CPU of an operation"],
                 [row for medium, cell in cells for row in rows_of(medium, cell)])


def rows_of(medium, cell):
    work = " ".join(filter(None, [cell["workload"], cell["mix"]]))
    for row in cell["configurations"]:
        rate = of(row, "rate", "median")
        yield [medium, safe(work), str(cell["threads"]), safe(row["name"]), f"{short(rate)}/s" if rate else "-",
               spread_of(row["to_volatile"]), duration(of(row, "cpu_ns_per_operation", "median"))]


def spread_of(found):
    return "-" if found is None else f"{ratio(found['median'])} ({ratio(found['low'])} to {ratio(found['high'])})"


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
