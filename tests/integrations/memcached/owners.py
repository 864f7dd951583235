"""The clients of the soak: threads that each own keys of every kind, write them in every way, and hold each answer against the model."""

import threading
import time

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError, MemcacheServerError

from model import Violation
from raw_connection import RawConnection, Refused
from values import record

CLIENT_TIMEOUT_S = 20
KEYS = {"small": 250, "medium": 30, "large": 2, "counter": 20, "log": 20, "brief": 30, "meta": 60, "ballast": 150}
SIZES = {"small": (40, 600), "medium": (1500, 4500), "large": (530000, 1300000), "brief": (40, 3000), "meta": (40, 1200),
         "ballast": (6000, 6400)}
LOG_BYTES_MAX = 3000
COUNTER_START = 10 ** 9  # ten digits: an incr keeps the length for long, so it is made in place
FILL_KEYS_MAX = 4500
FILL_BATCH = 400
BALLAST_RUN = 20
SAME_LENGTH_SHARE = 0.5


def connect(server, **options):
    return Client(server.address, connect_timeout=CLIENT_TIMEOUT_S, timeout=CLIENT_TIMEOUT_S, no_delay=True, default_noreply=False,
                  **options)


class Owner(threading.Thread):
    """One client. It continues until the server is gone, or `stop` is set. What it found is in `failure`."""

    def __init__(self, name, server, soak, dice):
        super().__init__(daemon=True)
        self.owner, self.server, self.dice = name, server, dice
        self.history, self.cas, self.numbers = soak.history, soak.cas, soak.numbers
        self.values, self.evictable = soak.values, soak.history.evictable  # values: of logs and counters, which are changed in place
        # halt: the kill comes at any moment from now on, errors are not findings; stop: it is to end by itself.
        self.stop, self.halt, self.pause, self.paused = threading.Event(), threading.Event(), threading.Event(), threading.Event()
        self.keys = {kind: [f"{kind}-{name}-{number}" for number in range(count)] for kind, count in KEYS.items()}
        self.filled = soak.filled.setdefault(name, [])
        self.failure, self.done = None, 0
        self.ways = [(way, weight) for way, weight in (
            (self.set_some, 12), (self.delete_some, 4), (self.read_some, 10), (self.compare_and_set, 6), (self.set_large, 1),
            (self.count, 6), (self.write_log, 5), (self.set_brief, 2), (self.touch_brief, 2), (self.meta_set, 5), (self.meta_delete, 1),
            (self.meta_count, 2), (self.set_ballast, 2), (self.fill, 0 if self.evictable else 1))]

    def run(self):
        try:
            self.client, self.raw = connect(self.server), RawConnection(self.server.address)
            ways, weights = zip(*self.ways)
            while not self.stop.is_set():
                if self.pause.is_set():
                    self.paused.set()
                    time.sleep(0.0005)
                    continue
                self.paused.clear()
                self.dice.choices(ways, weights)[0]()
                self.done += 1
        except Violation as violation:
            self.failure = violation
        except (OSError, MemcacheError, Refused) as error:
            if not self.halt.is_set():
                self.failure = Violation(f"a client of a running server got {type(error).__name__}: {error}")
        finally:
            self.paused.set()

    # -- parts of writes --------------------------------------------------------------------------------

    def key(self, kind):
        return self.dice.choice(self.keys[kind])

    def new_value(self, key, kind):
        """Often of the length that the key had before, and then it may be written over the old one."""
        size_bytes = SIZES[kind][0] + 100 if self.dice.random() < SAME_LENGTH_SHARE else self.dice.randint(*SIZES[kind])
        return record(key, next(self.numbers), size_bytes)

    def present(self, key):
        return self.history.last(key).content is not None

    @staticmethod
    def demand(truth, what):
        if not truth:
            raise Violation(what)

    def write(self, key, value, call, lifetime_s=None):
        """Notes the write, makes it, and returns what the server said. A write that had no room is examined."""
        write = self.history.begin(key, value, lifetime_s)
        try:
            answer = call()
        except (MemcacheServerError, Refused):
            if not self.evictable:
                raise
            self.look_at(key, write)
            return None
        if answer is False or answer is None:
            self.history.retract(key, write)
        else:
            write.end = time.monotonic()
        return answer

    def look_at(self, key, write):
        """There was no room for the value: the old one is gone, or still there."""
        self.history.retract(key, write)
        self.read_back(key)

    def read_back(self, key):
        first = time.monotonic()
        value, number = self.client.gets(key)
        self.history.read(key, value, first)
        if value is not None:
            self.cas.note(key, value, number)
        return value, number

    # -- ways to write and read ----------------------------------------------------------------------------

    def set_some(self):
        kind = self.dice.choice(("small", "small", "medium"))
        keys = self.dice.sample(self.keys[kind], 1 if self.evictable else self.dice.randint(1, 8))
        values = {key: self.new_value(key, kind) for key in keys}
        if len(keys) == 1:
            key, value = next(iter(values.items()))
            way = self.client.set if self.evictable else self.dice.choice((self.client.set, self.client.add, self.client.replace))
            wanted = way == self.client.set or self.present(key) == (way == self.client.replace)
            stored = self.write(key, value, lambda: way(key, value))
            self.demand(self.evictable or bool(stored) == wanted, f"{key}: {way.__name__} said {stored}")
            return
        writes = [self.history.begin(key, value) for key, value in values.items()]
        refused = self.client.set_many(values)
        self.demand(not refused, f"set_many did not store {refused}")
        self.end(writes)

    def end(self, writes):
        now = time.monotonic()
        for write in writes:
            write.end = now

    def delete_some(self):
        key = self.key("small")
        was_there = self.present(key)
        deleted = self.write(key, None, lambda: self.client.delete(key))
        self.demand(self.evictable or deleted == was_there, f"{key}: delete said {deleted}, it was {'there' if was_there else 'absent'}")
        if self.evictable and not deleted and was_there:
            self.read_back(key)

    def read_some(self):
        kinds = self.dice.choice((("small",), ("small", "medium"), ("log", "meta", "counter"), ("brief",), ("ballast",), ("large",)))
        keys = [self.key(kind) for kind in kinds for _ in range(1 if kind == "large" else 5)]
        keys += self.dice.sample(self.filled, min(5, len(self.filled)))
        first = time.monotonic()
        found = self.client.gets_many(keys)
        for key in dict.fromkeys(keys):
            value, number = found.get(key, (None, None))
            self.history.read(key, value, first)
            if value is not None:
                self.cas.note(key, value, number)

    def compare_and_set(self):
        key = self.key("small")
        old, number = self.read_back(key)
        value = self.new_value(key, "small")
        if old is None:
            self.write(key, value, lambda: self.client.add(key, value))
            return
        stored = self.write(key, value, lambda: self.client.cas(key, value, number))
        if not stored:
            # Right only if the item was moved to another slab page meanwhile, which gives it a new number, or evicted.
            there, moved_number = self.read_back(key)
            self.demand(moved_number != number and (there or self.evictable), f"{key}: cas with the number of its content said {stored}")
            return
        again = self.new_value(key, "small")
        stored_again = self.write(key, again, lambda: self.client.cas(key, again, number))
        self.demand(not stored_again, f"{key}: cas with a number that was used up said {stored_again}")
        if self.evictable:
            self.read_back(key)

    def set_large(self):
        key = self.key("large")
        value = self.new_value(key, "large")
        self.write(key, value, lambda: self.client.set(key, value))

    def set_ballast(self):
        """A class of its own for the slab mover; where a page has no room, its items are dropped, so they may be missing at any time."""
        first, away = self.dice.randrange(len(self.keys["ballast"])), self.dice.random() < 0.5
        for key in self.keys["ballast"][first:first + BALLAST_RUN]:
            if away:
                self.write(key, None, lambda gone=key: self.client.delete(gone) or True)
            else:
                value = self.new_value(key, "ballast")
                self.write(key, value, lambda held=key, new=value: self.client.set(held, new))

    def count(self):
        key = self.key("counter")
        value = self.values.get(key)
        if not self.present(key) or value is None or self.dice.random() < 0.02:
            self.values[key] = b"%d" % (COUNTER_START + self.dice.randrange(1000))
            self.write(key, self.values[key], lambda: self.client.set(key, self.values[key]))
            return
        step = self.dice.randint(1, 10 ** 6)
        way, number = (self.client.incr, int(value) + step) if self.dice.random() < 0.6 else (self.client.decr, max(0, int(value) - step))
        self.changed(key, b"%d" % number, lambda: way(key, step), number)

    def changed(self, key, value, call, wanted=True):
        """A change of what is there: where it was evicted the server says so, and the model is told."""
        answer = self.write(key, value, call)
        if answer == wanted and answer is not None and answer is not False:
            self.values[key] = value
            return
        self.demand(self.evictable and not answer, f"{key}: a change that makes it {value[:60]!r} of {len(value)} bytes said {answer}")
        self.read_back(key)

    def write_log(self):
        key = self.key("log")
        old, piece = self.values.get(key), record(key, next(self.numbers), self.dice.randint(40, 200))
        if not self.present(key) or old is None or len(old) > LOG_BYTES_MAX:
            if self.write(key, piece, lambda: self.client.set(key, piece)):
                self.values[key] = piece
        elif self.dice.random() < 0.5:
            self.changed(key, old + piece, lambda: self.client.append(key, piece))
        else:
            self.changed(key, piece + old, lambda: self.client.prepend(key, piece))

    def set_brief(self):
        key, lifetime_s = self.key("brief"), self.dice.choice((2, 3, 5, 20, 60))
        value = self.new_value(key, "brief")
        self.write(key, value, lambda: self.client.set(key, value, expire=lifetime_s), lifetime_s)

    def touch_brief(self):
        key, lifetime_s = self.key("brief"), self.dice.choice((3, 10, 100))
        last = self.history.last(key)
        if last.content is None:
            return
        write = self.history.begin(key, None, lifetime_s)
        write.content, first = last.content, write.begin
        if self.client.touch(key, lifetime_s):
            write.end = time.monotonic()
        else:
            self.history.retract(key, write)
            self.history.read(key, None, first)

    # -- the meta protocol -----------------------------------------------------------------------------------

    def meta_set(self):
        key = self.key("meta")
        value = self.new_value(key, "meta")
        flags = {}

        def call():
            code, found, _ = self.raw.meta("ms", key, "c", "T0", "F%d" % (len(value) % 1000), value=value)
            flags.update(found)
            return code == "HD"
        stored = self.write(key, value, call)
        self.demand(stored or self.evictable, f"{key}: ms said {stored}")
        if stored:
            self.cas.note(key, value, flags["c"])
            first = time.monotonic()
            code, found, there = self.raw.meta("mg", key, "v", "c", "f")
            self.history.read(key, there, first)
            same = code != "VA" or (found["c"] == flags["c"] and found["f"] == str(len(value) % 1000))
            self.demand(same, f"{key}: mg answered {code} {found}, ms had {flags} and flags {len(value) % 1000}")

    def meta_delete(self):
        key = self.key("meta")
        was_there = self.present(key)
        deleted = self.write(key, None, lambda: self.raw.meta("md", key)[0] == "HD")
        self.demand(self.evictable or deleted == was_there, f"{key}: md said {deleted}, it was {'there' if was_there else 'absent'}")
        if self.evictable and not deleted and was_there:
            self.read_back(key)

    def meta_count(self):
        key, step = self.key("counter"), self.dice.randint(1, 1000)
        value = self.values.get(key)
        if not self.present(key) or value is None:
            return
        number = int(value) + step

        def call():
            code, _, text = self.raw.meta("ma", key, "v", f"D{step}")
            return code == "VA" and int(text)
        self.changed(key, b"%d" % number, call, number)

    def fill(self):
        """Many new keys at once: the hash table grows."""
        if len(self.filled) >= FILL_KEYS_MAX:
            return
        keys = [f"fill-{self.owner}-{len(self.filled) + number}" for number in range(FILL_BATCH)]
        pairs = [(key, record(key, next(self.numbers))) for key in keys]
        writes = [self.history.begin(key, value) for key, value in pairs]
        self.filled.extend(keys)
        self.raw.meta_set_many(pairs)
        self.end(writes)
