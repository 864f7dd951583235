"""The tasks that run in parallel to the clients: one watches what becomes durable, others keep the server's own threads busy."""

import threading
import time

from raw_connection import RawConnection, Refused

WATCH_S = 0.01
STALL_S = (0.05, 0.4)
STALL_BUFFER_BYTES = 2048  # so that a dump fills it at once, and the server's thread waits for the client


class Watcher(threading.Thread):
    """Asks for the epochs again and again: what was written before a question is durable once the epoch of its answer is."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.asked = []  # (when the question was sent, the epoch that writes went into then)
        self.durable, self.durable_since, self.longest_gap_s, self.epochs = -1, None, 0.0, 0
        self.server_stats = {}

    def run(self):
        try:
            connection = RawConnection(self.server.address)
            while True:
                asked = time.monotonic()
                stats = connection.stats()
                self.note(asked, stats)
                self.server_stats = stats
                time.sleep(WATCH_S)
        except (OSError, Refused):
            pass  # the server is gone; whether it should be is for others to say

    def note(self, asked, stats):
        if stats.get("stillpoint_start", "volatile") == "volatile":
            return
        now, durable = time.monotonic(), int(stats["stillpoint_durable_epoch"])
        self.asked.append((asked, int(stats["stillpoint_epoch"])))
        if durable > self.durable:
            self.epochs += 1 if self.durable >= 0 else 0
            self.durable, self.durable_since = durable, now
        self.longest_gap_s = max(self.longest_gap_s, now - self.durable_since)

    def acknowledged(self):
        """The latest moment of which the server has said that all before it is durable, or None."""
        return max((asked for asked, epoch in self.asked if epoch <= self.durable), default=None)


class Disturber(threading.Thread):
    """Moves slab pages, walks the LRU lists, dumps to clients that do not read, at random."""

    def __init__(self, server, dice, memory_mb):
        super().__init__(daemon=True)
        self.server, self.dice, self.memory_mb = server, dice, memory_mb
        self.halt = threading.Event()
        self.counts = {}

    def run(self):
        ways = (self.move_page, self.move_page, self.automove, self.crawl, self.dump, self.stall, self.look, self.limit)
        try:
            connection = RawConnection(self.server.address)
            while not self.halt.wait(self.dice.uniform(0.005, 0.1)):
                way = self.dice.choice(ways)
                way(connection)
                self.counts[way.__name__] = self.counts.get(way.__name__, 0) + 1
        except (OSError, Refused):
            pass  # the server is gone

    def move_page(self, connection):
        """From a class that has a page's worth of free chunks: its items have room to be moved to."""
        classes = {}
        for name, value in connection.stats("slabs").items():
            number, _, field = name.partition(":")
            if field in ("free_chunks", "chunks_per_page", "total_pages"):
                classes.setdefault(number, {})[field] = int(value)
        sources = [number for number, one in classes.items()
                   if one["total_pages"] > 2 and one["free_chunks"] > 1.4 * one["chunks_per_page"]]
        if sources:
            answer = connection.admin(f"slabs reassign {self.dice.choice(sources)} {self.dice.choice(list(classes))}")[-1]
            self.counts["pages moved"] = self.counts.get("pages moved", 0) + (answer == "OK")

    def automove(self, connection):
        connection.admin(f"slabs automove {self.dice.choice((0, 1, 1, 2))}")

    def crawl(self, connection):
        connection.admin("lru_crawler crawl all")

    def limit(self, connection):
        connection.admin(f"cache_memlimit {self.dice.choice(self.memory_mb)}")

    def look(self, connection):
        for part in ("items", "slabs", "settings", "conns"):
            connection.stats(part)

    def dump(self, connection):
        connection.admin("lru_crawler metadump all")

    def stall(self, _):
        with RawConnection(self.server.address, STALL_BUFFER_BYTES) as stalled:
            stalled.send(b"lru_crawler metadump %s\r\n" % self.dice.choice((b"all", b"hash")))
            self.halt.wait(self.dice.uniform(*STALL_S))
