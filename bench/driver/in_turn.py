"""Work in turn: each side has its own process, one works while the others wait, and ratios are taken within a round.

Machines drift, by a quarter within minutes; so a ratio is taken between two slices of the same round, some hundred milliseconds
apart, and the median of the rounds' ratios counts. In each round the order is shuffled. Before a process hands over it waits until what
it wrote is durable: no checkpoint of one runs in another's slice.
"""

import itertools
import random
import time

from .figures import cpu_per_operation, rate, spread

ROUNDS_MAX = 60


def orders(things, seed):
    """The order of each round, without end."""
    order, generator = list(things), random.Random(seed)
    while True:
        generator.shuffle(order)
        yield list(order)


def in_turn(things, turn, goes_on, seed=1):
    """[[turn(thing, number of the round) of each round] of each thing]. `goes_on`: of a round's number, or how many rounds there are."""
    found = [[] for _ in things]
    for number, order in zip(itertools.count(), orders(range(len(things)), seed)):
        if number >= goes_on if isinstance(goes_on, int) else not goes_on(number):
            return found
        for index in order:
            found[index].append(turn(things[index], number))


def for_seconds(options, count):
    """As many rounds as the options ask for, until each of `count` sides has had its seconds."""
    began = time.monotonic()
    return lambda number: number < options.repeat or number < ROUNDS_MAX and time.monotonic() - began < options.seconds * count


def latency_ns(one):
    return one["wall_ns"] / max(1, one["operations"])


def ratios(mine, base, value):
    """For each round, mine over the baseline's. A round in which the baseline was never scheduled says nothing, and is left out."""
    return spread(value(one) / value(other) for one, other in zip(mine, base) if value(other))


def row_of(name, mine, base):
    """A side's speed and CPU time, and both against the baseline of the same round."""
    return {"name": name, "rounds": len(mine), "rate": spread(map(rate, mine)), "to_volatile": ratios(mine, base, rate),
            "cpu_ns_per_operation": spread(map(cpu_per_operation, mine)), "cpu_to_volatile": ratios(mine, base, cpu_per_operation)}
