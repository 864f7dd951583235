#!/usr/bin/env python3
"""The demo of the durable memcached: a full cache is killed under load, and is full again when it is started.

One million real key-value pairs (the fields of Debian's packages) are loaded with pymemcache, a client of others. Then client
processes read nine times for each write, the server is killed with SIGKILL and started again. Debian's own server, without a pool,
starts empty beside it. What is printed, and how it is measured:

  keys kept             every key is read again after the restart; a value counts only if it is, byte for byte, one that it may be
  writes lost           acknowledged updates that are not there. All keys together must leave one moment that explains what came back
                        (tests/integrations/memcached/model.py), or the demo fails
  oldest lost write     from its acknowledgement to the kill
  exec to listening     until a connection is accepted; to the first hit: until a value was read
  hit rate              of clients that read keys by Zipf's law from the moment of the restart, and put back what they miss at
                        once, as from a database that takes no time; seconds since exec

Exit code 0: nothing was lost but the last writes. 1: more was. 69: pymemcache or the server is not here.
"""

import argparse
import itertools
import multiprocessing
import random
import shutil
import sys
import time
from pathlib import Path

from debian_pairs import TooFewPairs, debian_pairs
from pool_tool import ROOT, table

sys.path.insert(0, str(ROOT / "tests/integrations/memcached"))

import pymemcache_library  # noqa: E402  (its folder must be known first)

EX_UNAVAILABLE = 69
HERE = pymemcache_library.find()
if HERE:
    from pymemcache.client.base import Client
    from pymemcache.exceptions import MemcacheError

    from disturbance import Watcher
    from model import ALWAYS, History, Violation, Write
    from raw_connection import RawConnection
    from server import Server, ServerFailed
    from values import content_of

FORK = multiprocessing.get_context("fork")  # so that the clients share the pairs
BATCH = 500
READS_PER_WRITE = 9
ZIPF_EXPONENT = 0.99
DRAWN_AT_ONCE = 500
CLIENT_TIMEOUT_S = 30
BUILDS = ROOT / "build/integrations/memcached"


def connect(address):
    return Client(address, connect_timeout=CLIENT_TIMEOUT_S, timeout=CLIENT_TIMEOUT_S, no_delay=True, default_noreply=False)


def in_processes(work, parts):
    """Starts work(part, pipe) for each part; returns (process, pipe) of each. What a process sends last is its result."""
    started = []
    for part in parts:
        mine, other = FORK.Pipe(duplex=False)
        process = FORK.Process(target=work, args=(part, other), daemon=True)
        process.start()
        other.close()
        started.append((process, mine))
    return started


def results(started):
    found = []
    for process, pipe in started:
        try:
            found.append(pipe.recv())
        except EOFError:
            raise ServerFailed("a client process ended without a result; what it printed is above") from None
        process.join()
    return found


class Demo:
    def __init__(self, options):
        self.options = options
        self.pool = Path(options.folder) / "cache.pool"
        self.pairs = debian_pairs(options.pairs)
        self.keys = list(self.pairs)
        # Which keys are popular has nothing to do with the alphabet.
        random.Random(options.seed).shuffle(self.keys)
        self.weights = list(itertools.accumulate(1 / rank ** ZIPF_EXPONENT for rank in range(1, len(self.keys) + 1)))

    def server(self, durable):
        options = ["-m", self.options.memory_mb, "-t", self.options.threads]
        pool_options = f"interval_ms={self.options.interval_ms} durability={self.options.durability}"
        return Server(self.options.server, options, self.pool, pool_options) if durable else Server(self.options.stock, options)

    # -- loading ------------------------------------------------------------------------------------------

    def load(self, server):
        def client(part, pipe):
            connection = connect(server.address)
            mine = self.keys[part::self.options.clients]
            for start in range(0, len(mine), BATCH):
                refused = connection.set_many({key: self.pairs[key] for key in mine[start:start + BATCH]})
                if refused:
                    pipe.send(f"the server refused {len(refused)} pairs, the first of them {refused[0]}")
                    return
            pipe.send(None)
        begin = time.monotonic()
        for refusal in results(in_processes(client, range(self.options.clients))):
            if refusal:
                raise Violation(refusal)
        loaded = time.monotonic()
        with RawConnection(server.address) as connection:
            connection.wait_durable()
            stats = connection.stats()
        if int(stats["evictions"]):
            raise Violation(f"{stats['evictions']} items were evicted: give it more memory (--memory-mb)")
        return loaded - begin, time.monotonic() - loaded

    # -- load, until the server is killed -------------------------------------------------------------------

    def work_until_killed(self, server):
        """Nine reads for each write in each process, for some seconds; then SIGKILL. Returns (when, watcher, writes, reads)."""
        def client(part, pipe):
            connection, dice = connect(server.address), random.Random(f"{self.options.seed}/{part}")
            mine, writes, reads = self.keys[part::self.options.clients], [], 0
            try:
                while True:
                    for key in dice.choices(self.keys, cum_weights=self.weights, k=READS_PER_WRITE):
                        connection.get(key)
                    key = dice.choice(mine)
                    value = b"%s (update %d of client %d)" % (self.pairs[key], len(writes), part)
                    writes.append([key, value, time.monotonic(), None])
                    connection.set(key, value)
                    writes[-1][3] = time.monotonic()
                    reads += READS_PER_WRITE
            except (OSError, MemcacheError):
                pipe.send((writes, reads))  # the server was killed
        started = in_processes(client, range(self.options.clients))
        watcher = Watcher(server)
        watcher.start()
        dice = random.Random(self.options.seed)
        time.sleep(self.options.load_s * dice.uniform(0.8, 1.2))
        killed = server.kill()
        watcher.join()
        found = results(started)
        return killed, watcher, [write for writes, _ in found for write in writes], sum(reads for _, reads in found)

    # -- after the restart ------------------------------------------------------------------------------------

    def first_hit(self, server):
        """Seconds from exec to the first value that a client reads; None where the most popular keys are not there."""
        connection = connect(server.address)
        hit = any(connection.get(key) is not None for key in self.keys[:3])
        return time.monotonic() - server.began if hit else None

    def hit_rate(self, server):
        """Clients read by Zipf's law and put back what they miss. Returns {second since exec: (hits, reads)},
        {missed key}, and seconds from exec to the first hit."""
        def client(part, pipe):
            connection, dice = connect(server.address), random.Random(f"{self.options.seed}/after/{part}")
            seconds, missed, now, hit = {}, set(), 0, None
            while now < self.options.after_s:
                for key in dice.choices(self.keys, cum_weights=self.weights, k=DRAWN_AT_ONCE):
                    now = time.monotonic() - server.began
                    counts = seconds.setdefault(int(now), [0, 0])
                    counts[1] += 1
                    if connection.get(key) is not None:
                        counts[0] += 1
                        hit = hit or time.monotonic() - server.began
                    else:
                        connection.set(key, self.pairs[key])
                        missed.add(key)
            pipe.send((seconds, missed, hit))
        total, missed, hits_s = {}, set(), []
        for seconds, keys, hit in results(in_processes(client, range(self.options.clients))):
            missed |= keys
            hits_s += [hit] if hit else []
            for second, (hits, reads) in seconds.items():
                before = total.get(second, (0, 0))
                total[second] = (before[0] + hits, before[1] + reads)
        return total, missed, min(hits_s, default=None)

    def after_the_restart(self, server):
        hit = self.first_hit(server)
        rate, missed, later_hit = self.hit_rate(server)
        return {"listening": server.listening - server.began, "hit": hit or later_hit, "rate": rate}, missed

    def compare(self, server, missed, writes, watcher, killed):
        """Reads every key. Returns (keys kept, the model's verdict). Raises Violation where no moment explains it."""
        history = History()
        for key, value, begin, end in writes:
            baseline = [Write(ALWAYS, ALWAYS, content_of(self.pairs[key]))]
            history.writes.setdefault(key, baseline).append(Write(begin, end or float("inf"), content_of(value)))
        moment = watcher.acknowledged()
        if moment is not None:
            history.acknowledged(moment)
        connection, kept, observed, first = connect(server.address), 0, {}, time.monotonic()
        for start in range(0, len(self.keys), BATCH):
            chunk = self.keys[start:start + BATCH]
            found = connection.get_many(chunk)
            for key in chunk:
                value = None if key in missed else found.get(key)
                if key in history.writes:
                    history.recovered(key, value, first)
                    observed[key] = value
                kept += value is not None and (key in history.writes or value == self.pairs[key])
        return kept, history.settle(observed, killed, first)

    # -- all of it ----------------------------------------------------------------------------------------------

    def run(self):
        pairs = len(self.keys)
        text_bytes = sum(len(key) + len(value) for key, value in self.pairs.items())
        print(f"1. {pairs:,} pairs of {text_bytes / 1e6:.0f} MB (fields of Debian's packages), a server with {self.options.threads} threads, a durable "
              f"epoch every {self.options.interval_ms} ms, durability {self.options.durability}")
        with self.server(durable=True) as server:
            loading_s, durable_s = self.load(server)
            print(f"   loaded by {self.options.clients} clients in {loading_s:.1f} s ({pairs / loading_s:,.0f} a second); durable {durable_s * 1000:.0f} ms later")
            killed, watcher, writes, reads = self.work_until_killed(server)
        print(f"2. {reads:,} reads and {len(writes):,} writes later: SIGKILL, in epoch {watcher.asked[-1][1] if watcher.asked else '-'}; durable epochs "
              f"in these seconds: {watcher.epochs}")
        with self.server(durable=True) as server:
            durable, missed = self.after_the_restart(server)
            kept, verdict = self.compare(server, missed, writes, watcher, killed)
            code = server.close()
        print(f"3. Started again; then Debian's server without a pool, empty, under the same load (seed {self.options.seed})")
        with self.server(durable=False) as server:
            stock, _ = self.after_the_restart(server)
        self.show(durable, stock, kept, verdict)
        if code != 0:
            print(f"   The clean close at the end gave exit code {code}: {server.stderr()}")
        return 0 if kept == pairs and code == 0 else 1

    def show(self, durable, stock, kept, verdict):
        def milliseconds(seconds):
            return "never" if seconds is None else f"{seconds * 1000:.0f} ms"

        def rate(one, second):
            hits, reads = one["rate"].get(second, (0, 0))
            return f"{100 * hits / reads:.2f} %" if reads else "-"
        acknowledged = verdict.kept_writes + verdict.lost_writes
        rows = [["keys kept", f"{kept:,} of {len(self.keys):,}", f"0 of {len(self.keys):,}"],
                ["acknowledged updates lost", f"{verdict.lost_writes:,} of {acknowledged:,}", "all"],
                ["age of the oldest lost write", f"{verdict.oldest_lost_s * 1000:.0f} ms (interval {self.options.interval_ms} ms)", "-"],
                ["exec to listening", milliseconds(durable["listening"]), milliseconds(stock["listening"])],
                ["exec to the first hit", milliseconds(durable["hit"]), milliseconds(stock["hit"])]]
        seconds = sorted(second for second in durable["rate"] if second in stock["rate"])
        shown = [second for second in seconds if second in (0, 1, 2, 3, 5, 8, 12, 20) or second == seconds[-1]]
        rows += [[f"hit rate in second {second + 1}", rate(durable, second), rate(stock, second)] for second in shown]
        rows += [["reads in these seconds", *(f"{sum(reads for _, reads in one['rate'].values()):,}" for one in (durable, stock))]]
        print()
        for line in table(["", "durable memcached", "memcached"], rows):
            print("   " + line)
        print("\n   A miss is answered by a database that takes no time, which favours the empty cache.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 pairs, and shorter")
    parser.add_argument("--pairs", type=int, help="how many (default: 1000000)")
    parser.add_argument("--clients", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of the server (default: %(default)s)")
    parser.add_argument("--memory-mb", type=int, default=1024, help="of the server (default: %(default)s)")
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--durability", choices=["power", "process"], default="process")
    parser.add_argument("--load-s", type=float, help="about, before the kill (default: 10)")
    parser.add_argument("--after-s", type=float, help="of which the hit rate is shown (default: 13)")
    parser.add_argument("--seed", type=int, help="of the random choices; printed, to repeat a run")
    parser.add_argument("--server", type=Path, default=BUILDS / "durable/memcached-durable", help="(default: %(default)s)")
    parser.add_argument("--stock", type=Path, default=BUILDS / "stock/memcached", help="(default: %(default)s)")
    parser.add_argument("--folder", default=str(ROOT / "build/memcached-demo"), help="for the pool")
    options = parser.parse_args()
    options.pairs = options.pairs or (100_000 if options.quick else 1_000_000)
    options.load_s = options.load_s or (2 if options.quick else 10)
    options.after_s = options.after_s or (4 if options.quick else 13)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 32)
    return options


def main():
    options = parse()
    missing = None if HERE else pymemcache_library.MISSING
    for program in (options.server, options.stock):
        missing = missing or (None if program.exists() else f"{program} is not there: python3 integrations/memcached/build.py")
    if missing:
        print(f"memcached-demo: {missing}", file=sys.stderr)
        return EX_UNAVAILABLE
    shutil.rmtree(options.folder, ignore_errors=True)
    Path(options.folder).mkdir(parents=True)
    sys.stdout.reconfigure(line_buffering=True)
    try:
        return Demo(options).run()
    except (Violation, ServerFailed, TooFewPairs) as failure:
        print(f"memcached-demo: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
