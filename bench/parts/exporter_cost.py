"""The cost of `stillpoint exporter` to a program whose figures it serves."""

import dataclasses
import http.client
import os
import subprocess
import threading
import time

from driver.benchmark import table
from driver.errors import WorkerFailed
from driver.sides import Side

DESCRIPTION = """\
The cost of `stillpoint exporter` to a program whose figures it serves.

The worker is that of stop_time: it writes a word in a page at random, each time under a lock, as fast as it can. Slices of a second without
requests, slices with one request, and slices with a hundred take turns, each round in another order; the speed is against the slice
of the same round without requests. The CPU time is the exporter's own, for each request."""
SECONDS = 3
SLICE_MS = 1000
REQUESTS = (0, 1, 100)  # in a slice
AS_FAST_AS_IT_CAN = 10_000_000  # pages a second: more than there is time for


def add_options(parser):
    parser.add_argument("--heap-mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=20)


def quartiles(values):
    ordered = sorted(values)
    return [ordered[len(ordered) * part // 4] for part in (1, 2, 3)]


class Exporter:
    """The server, and a client that asks in a thread while a slice runs."""

    def __init__(self, program, pool):
        self.process = subprocess.Popen([program, "exporter", "--listen", "127.0.0.1:0", str(pool)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise WorkerFailed("stillpoint exporter did not start")
        self.port = int(line.split(":")[2].split("/")[0])
        self.bytes = 0

    def ask(self, count):
        for _ in range(count):
            time.sleep(0.9 * SLICE_MS / 1000 / count)
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            connection.request("GET", "/metrics")
            self.bytes = len(connection.getresponse().read())
            connection.close()

    def cpu_s(self):
        fields = open(f"/proc/{self.process.pid}/stat", encoding="ascii").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def slice_with(process, exporter, count):
    client = threading.Thread(target=exporter.ask, args=(count,))
    client.start()
    one = process.slice(SLICE_MS)
    client.join()
    return one["operations"] / one["wall_ns"] * 1e9


def measure_side(bench, side, settings, rounds):
    process, exporter, speeds = None, None, {count: [] for count in REQUESTS}
    try:
        process = bench.place.start(side, settings, folder=bench.place.folder(side))
        exporter = Exporter(bench.place.tool.program("stillpoint"), process.pool)
        process.slice(SLICE_MS)  # not counted: the checkpoints that follow the filling
        for number in range(rounds):
            for position in range(len(REQUESTS)):
                count = REQUESTS[(position + number) % len(REQUESTS)]
                speeds[count].append(slice_with(process, exporter, count))
        before = exporter.cpu_s()
        exporter.ask(1000)
        cpu_us = (exporter.cpu_s() - before) * 1000
        size = exporter.bytes
        process.kill()
    finally:
        if exporter:
            exporter.end()
        if process:
            process.destroy()
            bench.place.remove(process)
    return {"name": side.name, "rounds": rounds, "operations_per_s": quartiles(speeds[0])[1], "bytes": size, "cpu_us_per_request": cpu_us,
            "speed": {str(count): quartiles(one / alone for one, alone in zip(speeds[count], speeds[0])) for count in REQUESTS[1:]}}


def measure(bench):
    options = bench.options
    rounds, heap_mib = (2, 16) if options.quick else (options.rounds, options.heap_mib)
    usual = Side("", "stop_time_worker", (("interval-ms", 100), ("pool-size-mb", heap_mib + 128)))
    side = dataclasses.replace(usual, name="shared memory, process", medium="memory", run=(*usual.run, ("durability", "process")))
    bench.progress.step(side.name)
    found = measure_side(bench, side, {"heap_mib": heap_mib, "pages_per_second": AS_FAST_AS_IT_CAN}, rounds)
    return {"heap_mib": heap_mib, "configurations": [found]}


def lines(result):
    rows = []
    for one in result["configurations"]:
        speeds = [f"{middle:.3f} ({low:.3f} to {high:.3f})" for low, middle, high in one["speed"].values()]
        rows.append([one["name"], one["rounds"], f"{one['operations_per_s']:.0f}/s", *speeds, f"{one['cpu_us_per_request']:.0f} us",
                     one["bytes"]])
    return [f"figures of a running program for Prometheus: heap of {result['heap_mib']} MiB",
            *table(["pool", "rounds", "operations", "speed, 1 request a second", "100 a second", "CPU a request", "bytes"], rows)]
