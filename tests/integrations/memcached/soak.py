#!/usr/bin/env python3
"""Kills a durable memcached again and again with SIGKILL under mixed load, and holds what comes back against a model.

Each life of the server is started with another number of threads (-t) and another memory limit (-m). What came back from the life
before is read, every key, and the model (model.py) says whether one moment explains it; then clients (owners.py) write and
read in every way while pages are moved between slab classes, the LRU crawler walks, dumps go to clients that do not read and the hash table
grows; then comes the kill, at a random moment, sometimes while the server starts or while it is read. After some kills the next
pool begins; every fourth is so small that items are evicted.

With --defect the soak is given something that must not be, and must find it: `no-pool` a server that keeps nothing, `early-ack` an
acknowledgement that was never given, `torn`, `resurrected`, `older` a value that did not come back as it is told, `reused-cas` CAS numbers.

Exit code 0: nothing was found. 1: something was; the pool is kept, and the command that repeats the run is printed. 77: could not
run, since pymemcache or the server is missing.
"""

import argparse
import itertools
import json
import random
import shutil
import sys
import time
from pathlib import Path

import pymemcache_library

pymemcache_library.find_or_exit()

from pymemcache.exceptions import MemcacheError  # noqa: E402  (the library must be found first)

from disturbance import Disturber, Watcher  # noqa: E402
from model import CasNumbers, History, Violation  # noqa: E402
from owners import Owner, connect  # noqa: E402
from server import Server, ServerFailed  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent.parent
DEFAULT_SERVER = ROOT / "build/integrations/memcached/durable/memcached-durable"
OWNERS = 4
KILLS_PER_POOL = 25
HASH_POWER = 13
LAYOUT = ["-I", "4m", "-o", f"hashpower={HASH_POWER},slab_automove=1"]  # of all lives of a pool
MEMORY_MB, SMALL_MEMORY_MB = (96, 128, 256), (8, 9, 12)
READ_AT_ONCE, LARGE_READ_AT_ONCE = 400, 4
STALE_CAS_TRIED = 20
STUCK_S = 10  # no epoch became durable for so long, while the server ran
DEFECTS = ("none", "no-pool", "early-ack", "torn", "resurrected", "older", "reused-cas")
EARLIEST_KILL_SHARE, VERIFICATION_KILL_SHARE, FLUSH_SHARE, BRIEF_SHARE = 0.12, 0.1, 0.25, 0.2
BRIEF_LIFE_S = 0.15


class Soak:
    def __init__(self, options):
        self.options = options
        self.dice = random.Random(options.seed)
        self.folder = Path(options.folder)
        self.figures = {name: 0 for name in (
            "kills", "kills_while_starting", "kills_while_reading", "restarts_judged", "pools", "keys_read", "writes_kept", "writes_lost",
            "evicted", "acknowledgements_held", "epochs", "operations", "flushes", "stale_cas_refused", "pages_moved", "stalls",
            "expansions")}
        self.lost_ms, self.gaps_ms, self.listen_ms = [], [], []
        self.numbers = itertools.count(1)
        self.killed = None
        self.begin_pool()

    def begin_pool(self):
        self.figures["pools"] += 1
        self.evictable = self.options.evict or (not self.options.no_evict and self.figures["pools"] % 4 == 0)
        self.pool = self.folder / f"pool-{self.figures['pools']}.pool"
        self.pool.unlink(missing_ok=True)
        self.history, self.cas, self.values, self.filled = History(self.evictable), CasNumbers(), {}, {}
        self.killed, self.lives, self.hash_power, self.earlier = None, 0, HASH_POWER, {}

    # -- one life --------------------------------------------------------------------------------------------

    def new_server(self):
        options = [*LAYOUT, "-t", self.dice.choice((1, 2, 4)), "-m", self.dice.choice(self.memory_mb()), "-c", 200]
        pool = None if self.options.defect == "no-pool" else self.pool
        return Server(self.options.server, options, pool, self.options.pool_options)

    def memory_mb(self):
        return SMALL_MEMORY_MB if self.evictable else MEMORY_MB

    def life(self):
        self.lives += 1
        server = self.new_server().start()
        try:
            self.live(server)
        finally:
            if server.runs():
                server.process.kill()
            server.process.wait()

    def live(self, server):
        if self.lives > 1 and self.dice.random() < EARLIEST_KILL_SHARE:
            time.sleep(self.dice.uniform(0, 0.06))
            self.kill(server, "kills_while_starting")
            return
        server.wait_until_it_listens()
        self.listen_ms.append((server.listening - server.began) * 1000)
        read_on = self.dice.uniform(0.2, 0.9) if self.dice.random() < VERIFICATION_KILL_SHARE else 1
        if not self.judge(server, read_on):
            self.kill(server, "kills_while_reading")
            return
        self.load(server)

    def kill(self, server, kind=None):
        self.killed_last = server.kill()
        self.figures["kills"] += 1
        if kind:
            self.figures[kind] += 1

    # -- what came back --------------------------------------------------------------------------------------

    def read_all(self, client, share):
        """Yields (key, value, CAS, when the read began) of all keys, in random order; ends early for a share below 1."""
        keys = list(self.history.writes)
        self.dice.shuffle(keys)
        keys = keys[:int(len(keys) * share)]
        large = [key for key in keys if key.startswith("large")]
        small = [key for key in keys if not key.startswith("large")]
        for some, at_once in ((small, READ_AT_ONCE), (large, LARGE_READ_AT_ONCE)):
            for start in range(0, len(some), at_once):
                chunk = some[start:start + at_once]
                first = time.monotonic()
                found = client.gets_many(chunk)
                for key in chunk:
                    yield (key, *found.get(key, (None, None)), first)

    def judge(self, server, share):
        """Reads every key, and asks the model. False if only a share was read."""
        client = connect(server)
        first, observed, numbers, stale = time.monotonic(), {}, {}, []
        for key, value, number, asked in self.read_all(client, share):
            value, number = self.spoiled(key, value, number)
            self.history.recovered(key, value, asked)
            if value is not None:
                observed[key] = value
                numbers[key] = (value, number)
                old = self.cas.recovered(key, value, number)
                stale += [(key, old)] if old is not None else []
        self.figures["keys_read"] += len(self.history.writes)
        if share < 1:
            return False
        verdict = self.history.settle(observed, self.killed, first)
        self.values = {key: value for key, value in observed.items() if key.startswith(("log", "counter"))}
        self.note(verdict)
        self.try_stale(client, stale)
        client.close()
        self.killed, self.earlier = None, numbers
        return True

    def note(self, verdict):
        if self.killed is None:
            return
        self.figures["restarts_judged"] += 1
        for name, count in (("writes_kept", verdict.kept_writes), ("writes_lost", verdict.lost_writes), ("evicted", verdict.missing)):
            self.figures[name] += count
        self.lost_ms.append(verdict.oldest_lost_s * 1000)

    def try_stale(self, client, stale):
        """The number of a content that was lost, or overwritten, must not let a client write."""
        for key, number in self.dice.sample(stale, min(STALE_CAS_TRIED, len(stale))):
            if client.cas(key, b"1", number):
                raise Violation(f"{key}: cas with the number {number}, whose content is no more, was stored")
            self.figures["stale_cas_refused"] += 1

    def spoiled(self, key, value, number):
        """The answer of a server that has the defect which this run must find."""
        defect, earlier = self.options.defect, self.earlier.get(key)
        if self.killed is None or not key.startswith("small") or len(self.history.writes[key]) < 3:
            return value, number
        if defect == "torn" and value is not None:
            return value[:len(value) // 2] + bytes([value[len(value) // 2] ^ 1]) + value[len(value) // 2 + 1:], number
        if earlier and (defect == "resurrected" and value is None or defect == "older" and value is not None and self.dice.random() < 0.05):
            return earlier
        if defect == "reused-cas" and value is not None:
            return value, self.dice.choice(list(self.cas.meaning))
        return value, number

    # -- load ------------------------------------------------------------------------------------------------

    def load(self, server):
        owners = [Owner(number, server, self, random.Random(self.dice.random())) for number in range(OWNERS)]
        watcher, disturber = Watcher(server), Disturber(server, random.Random(self.dice.random()), self.memory_mb())
        threads = [*owners, watcher, disturber]
        for thread in threads:
            thread.start()
        # A part of the lives end before anything of them became durable.
        longest_s = BRIEF_LIFE_S if self.dice.random() < BRIEF_SHARE else self.options.longest_ms / 1000
        moment = time.monotonic() + self.dice.uniform(0.01, longest_s)
        if self.dice.random() < FLUSH_SHARE:
            time.sleep(max(0, self.dice.uniform(0, 0.8) * (moment - time.monotonic())))
            self.flush(server, owners)
        while time.monotonic() < moment and not any(owner.failure for owner in owners):
            time.sleep(min(0.01, max(0.0, moment - time.monotonic())))
        for owner in owners:
            owner.halt.set()
        disturber.halt.set()
        self.kill(server)
        self.killed = self.killed_last
        for thread in threads:
            thread.join(60)
        self.after_load(owners, watcher, disturber)
        for owner in owners:
            if owner.failure:
                raise owner.failure
        if self.options.defect != "no-pool" and watcher.longest_gap_s > STUCK_S:
            raise Violation(f"no epoch became durable for {watcher.longest_gap_s:.1f} s while the server ran")

    def after_load(self, owners, watcher, disturber):
        self.figures["operations"] += sum(owner.done for owner in owners)
        self.figures["epochs"] += watcher.epochs
        self.figures["pages_moved"] += disturber.counts.get("pages moved", 0)
        self.figures["stalls"] += disturber.counts.get("stall", 0)
        power = int(watcher.server_stats.get("hash_power_level", 0))
        self.figures["expansions"] += max(0, power - self.hash_power)
        self.hash_power = max(power, self.hash_power)
        if watcher.longest_gap_s:
            self.gaps_ms.append(watcher.longest_gap_s * 1000)
        if watcher.server_stats and not watcher.asked:
            raise Violation("`stats` has no stillpoint_start but volatile: the server has no pool")
        moment = self.killed if self.options.defect == "early-ack" else watcher.acknowledged()
        if moment is not None:
            self.figures["acknowledgements_held"] += 1
            self.history.acknowledged(moment)

    def flush(self, server, owners):
        """All owners stand still, so that it is one write to all keys."""
        for owner in owners:
            owner.pause.set()
        for owner in owners:
            owner.paused.wait(60)
        if not any(owner.failure for owner in owners):
            client = connect(server)
            self.history.begin_flush()
            client.flush_all()
            self.history.end_flush()
            client.close()
            self.figures["flushes"] += 1
        for owner in owners:
            owner.pause.clear()

    # -- all of it ---------------------------------------------------------------------------------------------

    def run(self):
        begin = said = time.monotonic()
        while self.figures["kills"] < self.options.kills:
            now = time.monotonic()
            if self.options.limit_s and now - begin > self.options.limit_s:
                print(f"soak: stopped after {self.options.limit_s} s", flush=True)
                break
            if now - said > self.options.progress_s:
                said = now
                print(f"soak: {self.figures['kills']} of {self.options.kills} kills in {now - begin:.0f} s; nothing found", flush=True)
            if self.lives >= KILLS_PER_POOL:
                self.pool.unlink(missing_ok=True)
                self.begin_pool()
            self.life()
        self.life_to_judge_the_last()
        self.figures["seconds"] = round(time.monotonic() - begin, 1)

    def life_to_judge_the_last(self):
        with self.new_server() as server:
            self.judge(server, 1)
            code = server.close()
        if code != 0:
            raise Violation(f"a clean close ended with {code}: {server.stderr()}")
        self.pool.unlink(missing_ok=True)

    def command(self):
        words = f"soak.py --seed {self.options.seed} --kills {self.options.kills} --server {self.options.server}"
        return words + (f" --defect {self.options.defect}" if self.options.defect != "none" else "")

    def summary(self):
        def spread(values):
            values = sorted(values) or [0]
            ranks = {"p50": len(values) // 2, "p95": int(len(values) * 0.95), "max": len(values) - 1}
            return {name: round(values[rank], 1) for name, rank in ranks.items()}
        spreads = {"oldest_lost_write_ms": self.lost_ms, "longest_time_without_a_durable_epoch_ms": self.gaps_ms,
                   "exec_to_listening_ms": self.listen_ms}
        return {**self.figures, **{name: spread(values) for name, values in spreads.items()}, "seed": self.options.seed,
                "pool_options": self.options.pool_options}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="of every random choice but the kernel's")
    parser.add_argument("--limit-s", type=float, default=0, help="stop after so many seconds (default: not before the end)")
    parser.add_argument("--longest-ms", type=int, default=1800, help="of load before a kill (default: %(default)s)")
    parser.add_argument("--server", type=Path, default=DEFAULT_SERVER, help="the durable memcached (default: %(default)s)")
    parser.add_argument("--pool-options", default="interval_ms=100 durability=process", help="(default: %(default)s)")
    parser.add_argument("--folder", default=str(ROOT / "build/memcached-soak"), help="for the pools")
    parser.add_argument("--defect", choices=DEFECTS, default="none", help="what the run is to find")
    parser.add_argument("--evict", action="store_true", help="every pool is so small that items are evicted")
    parser.add_argument("--no-evict", action="store_true", help="no pool is")
    parser.add_argument("--progress-s", type=float, default=10)
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser.parse_args()


def main():
    options = parse()
    if not options.server.exists():
        print(f"soak: skipped: {options.server} is not there: python3 integrations/memcached/build.py", file=sys.stderr)
        return pymemcache_library.EX_SKIP
    shutil.rmtree(options.folder, ignore_errors=True)
    Path(options.folder).mkdir(parents=True)
    soak, finding = Soak(options), None
    try:
        soak.run()
    except (Violation, ServerFailed) as violation:
        finding = str(violation)
    except (OSError, MemcacheError) as error:
        finding = f"a client of a running server got {type(error).__name__}: {error}"
    figures = {**soak.summary(), "finding": finding}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    for name, value in figures.items():
        print(f"  {name.replace('_', ' '):42} {value}")
    if finding:
        print(f"soak: after {soak.figures['kills']} kills: {finding}\nsoak: the pool is {soak.pool}; again: {soak.command()}", file=sys.stderr)
        return 1
    shutil.rmtree(options.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
