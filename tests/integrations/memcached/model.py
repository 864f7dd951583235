"""The writes that a crash of a durable memcached may lose: everything after one moment T, the same for all keys.

A client thread owns its keys, so the order of the writes of a key is known. Each write has a begin and an end (monotonic
seconds); it takes effect somewhere between them, or never, if the kill came before its end. A key that came back with the
content of its write k says: T lies between the begin of write k, which has happened, and the end of write k + 1, which has not:

    begin[k] <= T < end[k + 1]

All keys together must leave a T. What violates that, or is not a content that the key ever had, is a Violation: torn values, writes
and deletes that come back from the dead, a key that is newer than another allows, an epoch lost that the server had called durable.

Three things happen without a write of the owner, and are modelled as what they are:
  - expiry: a key with a lifetime may be missing from one clock tick (1 s) and more before its end, and must be missing as long after
    it;
  - flush_all: one write to all keys, made while no other client writes; either all keys have it or none;
  - eviction, where it is allowed: the key turns up missing, and has been so since an unknown moment.
"""

import dataclasses
import math
import time

from values import content_of, defect

ALWAYS, NEVER = -math.inf, math.inf
VANISHING = "ballast"  # keys that begin so may be evicted in every arrangement
EXPIRY_SLACK_S = 2.5  # the server's clock ticks once a second, and rounds when it starts
ACKNOWLEDGEMENT = "what the server had said is durable"


class Violation(Exception):
    """A promise that was not kept."""


@dataclasses.dataclass(slots=True)
class Write:
    """One change of a key. `content` is None where the key is absent after it."""

    begin: float
    end: float  # NEVER: not acknowledged
    content: bytes | None
    expires: float = NEVER  # about; monotonic seconds
    expires_first: float = NEVER  # less than `expires` where the lifetime began at a moment that is not known well

    def fits(self, content, first, last):
        """Whether a read between `first` and `last` can see `content`, if this is the last write."""
        if content is None and self.content is not None:
            return min(self.expires, self.expires_first) - EXPIRY_SLACK_S <= last
        return content == self.content and (content is None or first <= self.expires + EXPIRY_SLACK_S)


def intersection(one, other):
    """The intersection of two sorted lists of intervals."""
    found = []
    for low, high in one:
        for start, stop in other:
            if max(low, start) < min(high, stop):
                found.append((max(low, start), min(high, stop)))
    return found


@dataclasses.dataclass
class Verdict:
    """The facts that are known when every key has been read."""

    keys: int
    missing: int = 0  # by eviction
    lost_writes: int = 0  # acknowledged, and not there
    kept_writes: int = 0
    oldest_lost_s: float = 0.0  # from the end of the oldest lost write to the kill
    cut: tuple = (ALWAYS, NEVER)


class History:
    """The writes of all keys since the last settled restart. An owner writes only its keys' lists: no lock is needed."""

    def __init__(self, evictable=False):
        self.evictable = evictable
        self.writes = {}
        self.allowed = [(ALWAYS, NEVER)]  # where T may lie
        self.pins = {}  # for the message: which key has narrowed it from below and from above
        self.flush = None

    # -- while the server runs --------------------------------------------------------------------------

    def begin(self, key, value, lifetime_s=None):
        content = content_of(value)
        now = time.monotonic()
        expires = NEVER if lifetime_s is None else now + lifetime_s
        write = Write(now, NEVER, content, expires, expires)
        self.writes.setdefault(key, [Write(ALWAYS, ALWAYS, None)]).append(write)
        return write

    def retract(self, key, write):
        """The server refused it."""
        last = self.writes[key].pop()
        assert last is write, "an owner makes one write of a key at a time"

    def may_vanish(self, key):
        return self.evictable or key.startswith(VANISHING)

    def last(self, key):
        writes = self.writes.get(key)
        return writes[-1] if writes else Write(ALWAYS, ALWAYS, None)

    def read(self, key, value, first):
        """The owner has read its key, between `first` and now: it sees what it wrote. True if the key was evicted."""
        last, now, content = self.last(key), time.monotonic(), content_of(value)
        if last.fits(content, first, now):
            return False
        if content is None and self.may_vanish(key):
            self.writes[key].append(Write(last.end, now, None))
            return True
        raise Violation(f"{key}: a running server answered {self.describe(key, value)} to its only writer")

    def begin_flush(self):
        """To be called while no owner writes. The writes that are made count as one."""
        now = time.monotonic()
        self.flush = []
        for key in self.writes:
            self.writes[key].append(Write(now, NEVER, None))
            self.flush.append(self.writes[key][-1])

    def end_flush(self):
        """No client wrote meanwhile, so when in between it happened makes no difference: as late as it can."""
        now = time.monotonic()
        for write in self.flush:
            write.begin = write.end = now

    # -- after a restart --------------------------------------------------------------------------------

    def acknowledged(self, moment):
        """The server has said that all that was written before `moment` is durable."""
        found = intersection(self.allowed, [(moment, NEVER)])
        if not found:
            lost = moment - self.allowed[-1][1]
            raise Violation(f"an acknowledged epoch is lost: it held what was written until {lost * 1000:.1f} ms after "
                            f"{self.pins.get('high')} lost a write")
        if found != self.allowed:
            self.pins["low"] = ACKNOWLEDGEMENT
        self.allowed = found

    def recovered(self, key, value, first):
        """The conclusion about T from a read between `first` and now, after a crash. Raises Violation. True if the key was evicted."""
        writes = self.writes.get(key) or [Write(ALWAYS, ALWAYS, None)]
        content, now = content_of(value), time.monotonic()
        fitting = [index for index, write in enumerate(writes) if write.fits(content, first, now)]
        if content is None and self.may_vanish(key):
            return any(write.content is not None for write in writes)
        if not fitting:
            raise Violation(f"{key} came back as {self.describe(key, value)}")
        mine = []
        for index in fitting:
            low, high = writes[index].begin, writes[index + 1].end if index + 1 < len(writes) else NEVER
            if mine and low <= mine[-1][1]:
                mine[-1] = (mine[-1][0], max(high, mine[-1][1]))
            else:
                mine.append((low, high))
        mine = [(low, high) for low, high in mine if low < high]
        narrower = intersection(self.allowed, mine)
        if not narrower:
            raise Violation(self.contradiction(key, value, mine))
        for name, side in (("low", 0), ("high", 1)):
            end = 0 if side == 0 else -1
            if narrower[end][side] != self.allowed[end][side]:
                self.pins[name] = key
        self.allowed = narrower
        return False

    def contradiction(self, key, value, mine):
        def text(intervals):
            zero = next((end for pair in self.allowed for end in pair if math.isfinite(end)), 0)
            return " or ".join(f"{(low - zero) * 1000:.3f} to {(high - zero) * 1000:.3f} ms" for low, high in intervals)
        if self.pins.get("low") == ACKNOWLEDGEMENT and all(high <= self.allowed[0][0] for _, high in mine):
            return (f"an acknowledged epoch is lost: {key} came back as {self.describe(key, value)}, {(self.allowed[0][0] - mine[-1][1]) * 1000:.3f} ms "
                    "before what the server had said is durable")
        return (f"no one moment explains what came back: {key} is {self.describe(key, value)}, a cut at {text(mine)}; the keys before it "
                f"({self.pins.get('low')}, {self.pins.get('high')}) say {text(self.allowed)}")

    def describe(self, key, value):
        """The value that was read, in words, against what the key has held."""
        writes = self.writes.get(key, [])
        states = f"{len(writes)} states were possible, the last of them {'a value' if self.last(key).content else 'absent'}"
        if value is None:
            return f"missing ({states})"
        wrong = None if value.strip().isdigit() else defect(key, value)
        if wrong:
            return f"a torn value of {len(value)} bytes: {wrong} ({states})"
        content = content_of(value)
        if any(write.content == content for write in writes):
            return f"a whole value of {len(value)} bytes that it held at another time ({states})"
        return f"a whole value of {len(value)} bytes that it cannot have: lost in an earlier crash, or overwritten before it ({states})"

    def settle(self, observed, killed, first):
        """Every key has been read, from `first` on: `observed` has the values and is the state from now on. Returns the Verdict."""
        now = time.monotonic()
        verdict = Verdict(len(self.writes), cut=(self.allowed[0][0], self.allowed[-1][1]))
        self.check_flush(observed, first)
        oldest = NEVER
        settled = {}
        for key, writes in self.writes.items():
            content = content_of(observed.get(key))
            possible = [index for index in range(len(writes)) if self.is_possible(writes, index)]
            if content is None and self.may_vanish(key):
                settled[key], lost_from = self.evicted(writes, possible, now), possible[-1] if possible else 0
                verdict.missing += 1
            else:
                matching = [index for index in possible if writes[index].fits(content, first, now)] or possible[-1:]
                settled[key], lost_from = self.survivor(writes, matching, content), matching[-1]
            for index, write in enumerate(writes[1:], 1):
                if write.end == NEVER:
                    continue
                verdict.kept_writes += index <= lost_from
                verdict.lost_writes += index > lost_from
                oldest = min(oldest, write.end) if index > lost_from else oldest
        verdict.oldest_lost_s = max(0.0, killed - oldest) if oldest != NEVER and killed is not None else 0.0
        self.writes, self.allowed, self.pins, self.flush = settled, [(ALWAYS, NEVER)], {}, None
        return verdict

    def is_possible(self, writes, index):
        high = writes[index + 1].end if index + 1 < len(writes) else NEVER
        return bool(intersection(self.allowed, [(writes[index].begin, high)]))

    @staticmethod
    def survivor(writes, matching, content):
        """The one state of a key; where a touch makes two of it, its end lies between theirs."""
        same = [writes[index] for index in matching if writes[index].content == content] if content is not None else []
        if not same:
            return [Write(ALWAYS, ALWAYS, None)]
        return [Write(ALWAYS, ALWAYS, content, max(one.expires for one in same), min(one.expires_first for one in same))]

    @staticmethod
    def evicted(writes, possible, now):
        """Missing now, but the next crash may undo the eviction, back to what was there before."""
        states = [writes[index] for index in possible if writes[index].content is not None]
        kept = [Write(ALWAYS, now if number else ALWAYS, one.content, one.expires, one.expires_first) for number, one in enumerate(states)]
        return [*(kept or [Write(ALWAYS, ALWAYS, None)]), Write(ALWAYS, now, None)]

    def check_flush(self, observed, first):
        """All keys have had a flush_all, or none: where one has surely had it and one has surely not, it was torn."""
        if not self.flush:
            return
        now, sides, flushes = time.monotonic(), {}, {id(write) for write in self.flush}
        for key, writes in self.writes.items():
            place = next((index for index, write in enumerate(writes) if id(write) in flushes), None)
            if place is None or (self.may_vanish(key) and observed.get(key) is None):
                continue
            content = content_of(observed.get(key))
            fitting = [index for index in range(len(writes)) if self.is_possible(writes, index) and writes[index].fits(content, first, now)]
            if fitting and len({index >= place for index in fitting}) == 1:
                sides[fitting[0] >= place] = key
        if len(sides) == 2:
            raise Violation(f"flush_all was torn: {sides[True]} has had it, {sides[False]} has not")


class CasNumbers:
    """Every CAS number stands for one content of one key, forever: a number that comes back for another would let a client overwrite
    what it has never seen."""

    def __init__(self):
        self.meaning = {}  # number: (key, content)
        self.latest = {}  # key: number

    def note(self, key, value, number):
        number, content = int(number), content_of(value)
        known = self.meaning.setdefault(number, (key, content))
        if known != (key, content):
            same = "another content" if known[0] == key else f"a content of {known[0]}"
            raise Violation(f"CAS {number} of {key} has stood for {same}")
        self.latest[key] = number

    def recovered(self, key, value, number):
        """As note(). Returns the number that the key had before, where it has another now: with that no client may write. (What
        came back unchanged may have a new number: memcached gives one to an item that it moves to another slab page.)"""
        before = self.latest.get(key)
        self.note(key, value, number)
        return None if before == int(number) else before
