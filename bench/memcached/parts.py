"""The parts of the measurement: each part starts the servers that it needs, and adds cells to the result."""

import contextlib
import statistics

from driver.figures import spread
from driver.sides import Watch

from .clients import Memaslap
from .rounds import RANKS, Slices, cell, run_rounds
from .servers import Kind, Server

INTERVAL_MS = 100
PIPELINE = 8
INTERVAL_READS = 50  # as in [PMThreads Figure 8, Table 2]
WATCH_SECONDS_MIN = 0.01  # that `stillpoint stats --watch` takes
WATCHED_INTERVALS = 6  # at least
RATE_SLICES = 3
# The bytes that an update changes besides the value: the item's header, its CAS number, its key, and the end of a line (memcached 1.6).
ITEM_BYTES = 48 + 8 + len("key-00000000") + 1 + 2


class Fleet:
    """The servers of a part; at its end they end cleanly, after a failure they are killed."""

    def __init__(self, bench):
        self.bench = bench
        self.servers = []

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        for server in list(self.servers):
            if failure is None:
                self.end(server)
            else:
                server.destroy()

    def start(self, kind, folder=None, is_loaded=False):
        """`is_loaded`: the pool has the keys."""
        server = Server(kind, folder or self.bench.folder_of(kind), self.bench.tool)
        self.servers.append(server)
        server.load = None if is_loaded else self.bench.generator.load(server)
        if is_loaded:
            self.bench.generator.check(server)  # every key is still there, and none is read from the pool while it is measured
        server.settle()
        return server

    def end(self, server):
        self.servers.remove(server)
        server.end()


class Bench:
    """The parts, and the cells that they have made so far."""

    def __init__(self, bench, generator, kinds):
        self.options, self.progress, self.tool = bench.options, bench.progress, bench.place.tool
        self.generator, self.kinds = generator, kinds
        self.disk, self.shared = bench.place.folders["file"], bench.place.folders["memory"]
        self.cells, self.memory, self.intervals, self.remarks = [], [], [], []
        self.stock_rates = {}  # by percent of reads

    def folder_of(self, kind):
        parent = self.disk if kind.durability == "power" else self.shared
        return parent / f"{kind.name}-{kind.durability or 'no-pool'}"

    def measure(self):
        parts = self.options.part
        if {"memory", "throughput", "latency"} & set(parts):
            with Fleet(self) as fleet:
                self.process_parts(fleet, parts)
        if "intervals" in parts and any(kind.has_checkpoints for kind in self.kinds):
            with Fleet(self) as fleet:
                self.interval_part(fleet)
        if "power" in parts and any(kind.name == "durable" for kind in self.kinds):
            with Fleet(self) as fleet:
                self.power_part(fleet)

    @property
    def fewer_rounds(self):
        """Rounds of parts without a bar, or with longer slices; at least five unless fewer are asked for."""
        return min(self.options.rounds, max(5, self.options.rounds - 2))

    def step(self, text):
        self.progress.step(text)

    def process_parts(self, fleet, parts):
        self.step("loading")
        servers = [fleet.start(kind) for kind in self.kinds]
        self.note_memory(servers, "loaded")
        if "throughput" in parts:
            self.throughput(servers, "throughput", self.options.rounds)
            self.throughput(servers, "pipelined", self.fewer_rounds, PIPELINE)
            self.memaslap([server for server in servers if server.kind.name != "hooks"])
        if "latency" in parts:
            self.latency(servers, "latency", self.fewer_rounds)
        if {"throughput", "latency"} & set(parts):
            self.note_memory(servers, "after the traffic")

    def note_memory(self, servers, when):
        for server in servers:
            load = {"start_ns": server.start_ns, "load_rate_per_s": server.load["rate_per_s"]} if when == "loaded" else {}
            self.memory.append({**server.kind.facts(), "when": when, **server.memory(), **load})

    def throughput(self, servers, part, rounds, pipeline=1, reads_of=None):
        for reads in reads_of or self.options.mix:
            self.step(f"{part} {reads}:{100 - reads}")
            found = run_rounds(servers, rounds, self.options.seed, lambda server, seed, reads=reads: self.generator.closed(
                server, reads, self.options.slice, seed, pipeline))
            self.cells.append(cell(part, reads, "requests", found, pipeline=pipeline))
            if part == "throughput":
                self.stock_rates[reads] = self.cells[-1]["configurations"][0]["rate"]["median"]

    def memaslap(self, servers):
        client = Memaslap(self.options, self.shared)
        if not client.is_here:
            self.remarks.append(f"memaslap is not installed: {client.REMEDY}")
            return
        for reads in self.options.mix:
            self.step(f"memaslap {reads}:{100 - reads}")
            found = run_rounds(servers, 1 if self.options.quick else self.fewer_rounds, self.options.seed,
                               lambda server, _, reads=reads: client.closed(server, reads, self.options.slice))
            self.cells.append(cell("memaslap", reads, "requests", found))

    def rate_for(self, stock, reads):
        """Options of every server in the open loop."""
        if reads not in self.stock_rates:
            slices = Slices(stock)
            for seed in range(RATE_SLICES):
                slices.add(lambda server, seed=seed: self.generator.closed(server, reads, self.options.slice, seed))
            self.stock_rates[reads] = statistics.median(one["rate_per_s"] for one in slices.slices)
        return self.stock_rates[reads] * self.options.load

    def latency(self, servers, part, rounds):
        for reads in self.options.mix:
            self.step(f"{part} {reads}:{100 - reads}")
            rate = self.rate_for(servers[0], reads)
            found = run_rounds(servers, rounds, self.options.seed, lambda server, seed, reads=reads, rate=rate: self.generator.open(
                server, reads, 2 * self.options.slice, seed, rate))
            self.cells.append(cell(part, reads, "requests", found, offered_per_s=rate))

    def interval_part(self, fleet):
        """The pool is filled once; then it is opened again with each interval."""
        self.step("loading")
        stock = fleet.start(self.kinds[0])
        loaded = set()
        for interval in self.options.interval:
            self.step(f"interval {interval} ms")
            servers = [stock]
            for kind in self.kinds:
                if kind.has_checkpoints:
                    again = Kind(kind.name, kind.program, "process", interval, kind.pool_options)
                    servers.append(fleet.start(again, self.folder_of(kind).with_name(f"{kind.name}-intervals"), kind.name in loaded))
                    loaded.add(kind.name)
            rounds = min(3, self.options.rounds)
            found = run_rounds(servers, rounds, self.options.seed, lambda server, seed: self.generator.closed(
                server, INTERVAL_READS, self.options.slice, seed))
            self.cells.append(cell("intervals", INTERVAL_READS, "requests", found, title=f"interval {interval} ms, 50:50",
                                   interval_ms=interval))
            for server in servers[1:]:
                self.intervals.append({**server.kind.facts(), "reopened_ns": None if server.load else server.start_ns,
                                       **self.watched(server, interval)})
                fleet.end(server)

    def watched(self, server, interval):
        """One more slice, which is compared with nothing: its checkpoints one by one."""
        watch = Watch(self.tool, server.pool, max(WATCH_SECONDS_MIN, min(0.025, interval / 2500)))
        seconds = max(2 * self.options.slice, WATCHED_INTERVALS * interval / 1000)
        with contextlib.closing(WatchEnd(watch)) as end:
            result = self.generator.closed(server, INTERVAL_READS, seconds, self.options.seed)
            samples = end.samples()
        by_epoch = {}
        for sample in samples:
            by_epoch[sample["checkpoints"]] = sample
        seen = list(by_epoch.values())[1:]
        if len(seen) < 2:
            return {"checkpoints": 0}
        first, last = seen[0], seen[-1]
        checkpoints = last["checkpoints"] - first["checkpoints"]
        captured_ns = last["last_durable_ns"] - first["last_durable_ns"]
        bytes_each = (last["bytes_written"] - first["bytes_written"]) / checkpoints
        updates_per_ns = result["updates_in_all"] / ((seconds + self.generator.warm_up_seconds) * 1e9)
        updates_each = updates_per_ns * captured_ns / checkpoints
        changed_each = updates_each * (ITEM_BYTES + self.options.value_bytes)
        stops = sorted(sample["stop_ns_last"] for sample in seen)
        return {"checkpoints": checkpoints, "epoch_ms": captured_ns / checkpoints / 1e6, "bytes_written_spread": self.of_each(seen),
                "bytes_per_checkpoint": bytes_each, "updates_per_checkpoint": updates_each, "changed_per_checkpoint": changed_each,
                "written_to_changed": bytes_each / changed_each if changed_each else None,
                "pages_per_checkpoint": (last["dirty_pages_total"] - first["dirty_pages_total"]) / checkpoints,
                "stop_ns": {rank: stops[min(len(stops) - 1, int(len(stops) * share))] for rank, share in
                            zip((*RANKS[:2], "max"), (0.5, 0.99, 1))}}

    @staticmethod
    def of_each(seen):
        """Bytes of single checkpoints, of neighbouring samples."""
        return spread([after["bytes_written"] - before["bytes_written"] for before, after in zip(seen, seen[1:])
                       if after["checkpoints"] == before["checkpoints"] + 1])

    def power_part(self, fleet):
        self.step("loading")
        durable = next(kind for kind in self.kinds if kind.name == "durable")
        servers = [fleet.start(self.kinds[0]),
                   fleet.start(Kind("durable", durable.program, "power", INTERVAL_MS, durable.pool_options)),
                   *(fleet.start(Kind(kind.name, kind.program, "power")) for kind in self.kinds if kind.name == "breeze")]
        self.throughput(servers, "throughput-power", self.fewer_rounds)
        self.latency(servers, "latency-power", self.fewer_rounds)
        self.note_memory(servers[1:], "loaded, power" if self.options.part == ["power"] else "after the traffic, power")


class WatchEnd:
    """Ends a watch once, with its samples or without."""

    def __init__(self, watch):
        self.watch = watch

    def samples(self):
        watch, self.watch = self.watch, None
        return watch.end()

    def close(self):
        if self.watch:
            self.watch.end()
