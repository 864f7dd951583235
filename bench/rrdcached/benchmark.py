"""rrdcached: how many updates a second it answers as it is, with its journal, and with each update durable in a pool."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

from driver.benchmark import table
from driver.build import make_sure_of
from driver.errors import WorkerFailed
from driver.in_turn import in_turn, row_of
from driver.sides import Unavailable
from driver.tables import ratio_cells, short

DESCRIPTION = """\
rrdcached: how many updates a second it answers as it is (nothing is durable), with its journal (-j: buffered, a kill loses the last
4 KiB, and a power failure more), and with a pool by the engine breeze, in shared memory and on the disk: there each update is durable
when it is answered. Each slice has a new daemon, without values; no file of RRDtool is written meanwhile.

`integrations/rrdcached/build.py` builds what is measured."""
SECONDS = 15
CASES = ((1, 1), (8, 1), (8, 8))  # clients, updates in flight of each
FILES = 20  # of each client
LISTEN_S_MAX = 20


def add_options(parser):
    parser.add_argument("--slice-s", type=float, default=3, help="default %(default)s")
    parser.add_argument("--pool-mib", type=int, default=512, help="default %(default)s")


def built(options):
    return options.binaries.parent / "integrations/rrdcached"


def why_not(options):
    if (built(options) / "breeze/rrdcached").is_file():
        return None
    return "run integrations/rrdcached/build.py first"


def takes_connections(path):
    """The name is there a moment before the daemon listens."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


class Slices:
    def __init__(self, bench):
        self.bench, self.shared = bench, bench.place.folders["memory"]
        if self.shared is None:
            raise Unavailable("/dev/shm cannot be written: the files lie there", "make it writable")
        self.load = bench.options.binaries / "rrdcached_load"
        make_sure_of([self.load])
        for client in range(max(clients for clients, _ in CASES)):
            for number in range(FILES):
                subprocess.run([built(bench.options) / "stock/rrdtool", "create", self.shared / f"{client}-{number}.rrd", "--start",
                                "1000000000", "--step", "1", "DS:v:GAUGE:10:U:U", "RRA:LAST:0:1:10"], check=True)

    def sides(self):
        disk, pool_mib = self.bench.place.folders["file"], self.bench.options.pool_mib
        return {"stock": ("stock", (), None), "stock, journal": ("stock", ("-j", disk), None),
                "pool in shared memory": ("breeze", ("--pool", self.shared / "pool", "--pool-mib", pool_mib), "memory"),
                "pool on disk": ("breeze", ("--pool", disk / "pool", "--pool-mib", pool_mib), "file")}

    def start(self, variant, words, medium):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STILLPOINT_")}
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [built(self.bench.options) / variant / "rrdcached", "-g", "-l", f"unix:{self.shared}/socket", "-p", self.shared / "pid",
             "-b", self.shared, "-w", "3600", "-f", "7200", *map(str, words)],
            env=environment | ({"STILLPOINT_MEDIUM": medium} if medium else {}), stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + LISTEN_S_MAX
        while not takes_connections(self.shared / "socket"):
            if process.poll() is not None or time.monotonic() > give_up:
                process.kill()
                raise WorkerFailed(f"rrdcached does not listen: {' '.join(map(str, process.args))}")
            time.sleep(0.01)
        return process

    def clear(self):
        for folder in self.bench.place.folders.values():
            for path in [folder / "socket", folder / "pid", folder / "pool", *folder.glob("rrd.journal*")]:
                path.unlink(missing_ok=True)

    def measure(self, side, case, slice_s):
        self.clear()
        process = self.start(*side)
        try:
            words = [self.load, self.shared / "socket", *map(str, case), str(slice_s), str(FILES)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=slice_s + LISTEN_S_MAX, check=False)
            if done.returncode != 0:
                raise WorkerFailed(f"rrdcached_load: {done.stderr.strip()}")
            ticks = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
            cpu_ns = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") * 1e9
            return {**json.loads(done.stdout), "cpu_ns": cpu_ns, "settle_cpu_ns": 0}
        finally:
            process.kill()
            process.wait()


def measure(bench):
    slices, options = Slices(bench), bench.options
    slice_s = 0.2 if options.quick else options.slice_s
    sides, rows = slices.sides(), []
    for case in CASES:
        bench.progress.show(f"{case[0]} clients, {case[1]} in flight")
        rounds = 2 if options.quick else max(options.repeat, round(options.seconds / slice_s))
        found = in_turn(list(sides.values()), lambda side, _, case=case: slices.measure(side, case, slice_s), rounds, options.seed)
        rows += [{"clients": case[0], "in_flight": case[1], **row_of(name, mine, found[0])} for name, mine in zip(sides, found)]
    slices.clear()
    return {"rows": rows}


def lines(result):
    rows = [[row["clients"], row["in_flight"], row["name"], f"{short(row['rate']['median'])}/s", *ratio_cells(row["to_volatile"]),
             f"{row['cpu_ns_per_operation']['median'] / 1000:.1f} us", row["rounds"]] for row in result["rows"]]
    return ["rrdcached: updates answered, each with one value; ratios of stock without a journal, median (quartiles) of the rounds",
            *table(["clients", "in flight", "", "updates", "of stock", "quartiles", "CPU/update", "rounds"], rows)]
