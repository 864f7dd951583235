"""Parts that are runs of `stillpoint bench`: the B+tree against libpmemobj, and stores against RocksDB."""

import dataclasses
import json
import shlex
import subprocess

from driver.errors import WorkerFailed
from driver.tables import ratio

from .shown import duration, of, safe, short, table

LIMIT_S = 1800


@dataclasses.dataclass(frozen=True)
class BenchRuns:
    """`commands`: [(heading of the medium, arguments)]; {disk} is a folder on a disk."""

    TITLE: str
    SAYS: str
    commands: tuple

    def steps(self, _options):
        return len(self.commands)

    def measure(self, bench):
        return {"runs": [{"medium": medium, "document": measured(bench, words)} for medium, words in self.commands]}

    def lines(self, result):
        rows = [row for run in result["runs"] for cell in run["document"]["cells"] for row in rows_of(run["medium"], cell)]
        left_out = [f"Left out: {safe(one['engine'])}, {safe(one['reason'])}; {safe(one['remedy'])}."
                    for one in result["runs"][0]["document"]["skipped"]]
        return [*table(["medium", "work", "threads", "", "operations", "of volatile", "CPU of an operation"], rows),
                *([""] + left_out if left_out else [])]

    def bars(self, _result):
        return []


def measured(bench, words):
    """The document of one run."""
    options = bench.options
    command = [bench.place.tool.program("stillpoint"), "bench", *shlex.split(words.format(disk=bench.place.folders["file"])),
               "--no-kill", "--quiet", "--json", "-"]
    if options.quick:
        size = command.index("--size")
        del command[size:size + 2]
    command += ["--smoke"] if options.quick else ["--seconds", str(max(options.seconds, 0.1)), "--repeat", str(options.repeat)]
    bench.progress.step("stillpoint bench " + words.split(" --engine")[0])
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0 or not done.stdout:
        raise WorkerFailed(f"{shlex.join(command)} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


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
    (("memory", "--workload btree --mix 50:50,95:5 --value-size 1024 --size 200000 --threads 1,2 --engine pronto,pmemobj --durability power"),))
ROCKSDB = BenchRuns(
    "A store against RocksDB, YCSB A and B (Figure 5.9)",
    "`durable::string_map` against RocksDB (Debian's 7.8, unchanged) whose log is synced for each write, and whose log is not; 100,000 values of "
    "1 KiB, Zipf. On shared memory a sync costs nothing; on the disk it is what is measured. Volatile is the bench's own hash map without a pool.",
    tuple((medium, f"--workload ycsb_a,ycsb_b --value-size 1024 --size 100000 --threads 1,2 --engine pronto,rocksdb-sync,rocksdb-async "
           f"--durability power {where}") for medium, where in (("memory", ""), ("file", "--medium file --pool {disk}"))))
