"""Programs on durable containers, each a life of a process with a pool: python3 programs.py NAME ARGUMENT..."""

import collections
import gc
import os
import random
import signal
import sys
import threading

import stillpoint

ACCOUNTS, TOTAL = 20, 20000
VALUES = [0, -1, 1 << 62, -(1 << 63), 1 << 63, -(1 << 200), 0.5, float("inf"), "", "text",
          "ü\ud800", b"", b"\0" * 9, b"x" * 5000, True, False,
          None, (), (1, ("a", (None, 2.5)), b"z" * 100), "x" * 8, "x" * 9]


def transfers(pool, rounds):
    """Two threads move amounts between accounts, and note each in a deque, until they are killed. Prints what was found."""
    accounts = pool.dict("accounts", {f"account {i}": TOTAL // ACCOUNTS for i in range(ACCOUNTS)})
    notes, counts = pool.deque("notes"), pool.list("counts", [0, 0])
    if sum(accounts.values()) != TOTAL or len(notes) > 100 or len(notes) != min(sum(counts), 100):
        sys.exit(f"wrong: {sum(accounts.values())} {len(notes)} {list(counts)}")
    print(sum(counts), flush=True)
    lock = threading.Lock()

    def work(number):
        moments = random.Random(number + sum(counts))
        for _ in range(int(rounds)):
            one, other = (f"account {moments.randrange(ACCOUNTS)}" for _ in range(2))
            with lock, stillpoint.section():
                accounts[one] -= 1
                accounts[other] += 1
                notes.append({"from": one, "to": [other]})
                if len(notes) > 100:
                    notes.popleft()
                counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def changed(random_numbers, found, model):
    """One random change of each kind of container, and of its model."""
    key, value = random_numbers.choice(VALUES[:12] + VALUES[16:]), random_numbers.choice(VALUES)
    if random_numbers.random() < 0.6:
        found["dict"][key] = model["dict"][key] = value
    elif key in model["dict"]:
        del found["dict"][key], model["dict"][key]
    for kind in ("list", "deque"):
        durable, plain = found[kind], model[kind]
        place = random_numbers.randint(-3, len(plain) + 3)
        choice = random_numbers.random()
        if choice < 0.4 or not plain:
            durable.insert(place, value)
            plain.insert(place, value)
        elif choice < 0.7:
            place = place % len(plain)
            durable[place] = plain[place] = value
        else:
            place = place % len(plain)
            del durable[place], plain[place]
    if random_numbers.random() < 0.1:
        set_slice(random_numbers, found["list"], model["list"], value)


def set_slice(random_numbers, durable, plain, value):
    """A random slice; one with a step that takes another number of values changes nothing."""
    begin = random_numbers.randint(-len(plain) - 1, len(plain) + 1)
    end = random_numbers.choice([begin + random_numbers.randint(-3, 3), 0, len(plain)] if begin > len(plain) - 5 else [begin + 2])
    step = random_numbers.choice([None, None, 1, 2, -1, -3])
    values = [value] * random_numbers.randrange(4)
    try:
        plain[begin:end:step] = values
    except ValueError:
        try:
            durable[begin:end:step] = values
        except ValueError:
            return
        raise AssertionError("a list refuses it") from None
    durable[begin:end:step] = values


def model_of(rounds):
    model = {"dict": {}, "list": [], "deque": []}
    random_numbers = random.Random(7)
    return model, lambda found: [changed(random_numbers, found, model) for _ in range(int(rounds))]


def against_model(pool, rounds):
    """A first life changes containers; a second one finds them as the model has them."""
    found = {"dict": pool.dict("d"), "list": pool.list("l"), "deque": pool.deque("q")}
    model, change = model_of(rounds)
    if pool.start == "fresh":
        change(found)
    else:
        change({"dict": {}, "list": [], "deque": []})
    same = (list(found["dict"].items()) == list(model["dict"].items()) and found["list"] == model["list"]
            and found["deque"] == model["deque"])
    kinds = [type(value) for value in found["list"]] == [type(value) for value in model["list"]]
    print(pool.start, same, kinds, len(found["list"]) > 10)


def nested(pool, _):
    """Containers in containers; what is referred to no more is freed, also what was left over by a crash."""
    blocks = heap_blocks(pool)
    top = pool.dict("top")
    for _ in range(50):
        top["a"] = {"b": [1, collections.deque([{"c": "d" * 100}])]}
        inner = top["a"]["b"]
        assert inner is top["a"]["b"] and inner[1][0]["c"] == "d" * 100
        top["again"] = inner
        del top["a"], top["again"]
        assert inner[0] == 1
        inner.append(2)
        del inner
        gc.collect()
    print(pool.start, heap_blocks(pool) - blocks)
    if pool.start == "fresh":
        kept = stillpoint.pool().list("kept", [[i] for i in range(20)])
        handles = list(kept)
        kept.clear()
        pool.checkpoint()
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    print(len(pool.list("kept")), sorted(pool))


def heap_blocks(_):
    from stillpoint._store import lib
    return lib.sppy_live_blocks()


def arrays(pool, _):
    import numpy
    numbers = pool.array("numbers", (100, 1000), "int32")
    with stillpoint.section():
        numbers[3] += 1
        numbers[99, 999] += 5
    print(pool.start, numbers.sum(), numbers.dtype, type(numbers) is numpy.ndarray)


def refusals(pool, _):
    for call in (lambda: pool.list("it", [1]), lambda: pool.dict("it"), lambda: pool.list("it").append(set()),
                 lambda: pool.list("it").__setitem__(slice(0, 1), [2, set()]),
                 lambda: pool.dict("d")["none"],
                 lambda: pool.list("it")[5], lambda: pool.dict("d").__setitem__((1, []), 2), lambda: pool.dict("n" * 5),
                 lambda: pool.delete("none"),
                 lambda: pool.statistic("none"), lambda: pool.copy("/none/there"), lambda: pool.copy("new", since="/none/base"),
                 lambda: pool.array("a", 3, object),
                 lambda: pool.list("it").append("x" * (1 << 28))):
        try:
            call()
        except (TypeError, KeyError, IndexError, MemoryError, stillpoint.StillpointError) as error:
            print(type(error).__name__, error)
    with stillpoint.section():
        try:
            pool.checkpoint()
        except stillpoint.StillpointError as error:
            print(error.code, error)


def levels(pool, _):
    """A pool in a file without a replica is durable on this machine alone."""
    pool.list("it").append(1)
    pool.wait_durable(60, level="local")
    for level in ("remote", "both"):
        try:
            pool.wait_durable(level=level)
        except (stillpoint.StillpointError, ValueError) as error:
            print(getattr(error, "code", None), error)


def damaged(pool, _):
    from stillpoint._store import ffi
    numbers = pool.list("numbers", ["x" * 100, 1])
    for change in (lambda: setattr(numbers._place.cells[0], "word", 0x10), lambda: setattr(numbers._place.cells[0], "tag", 200)):
        change()
        try:
            print(numbers[0])
        except stillpoint.DamagedError as error:
            print(error)
    numbers._place.capacity = 1 << 29
    address = int(ffi.cast("uintptr_t", numbers._place))
    del numbers
    gc.collect()
    try:
        print(pool.list("numbers"), address)
    except stillpoint.DamagedError as error:
        print(error)


def main():
    globals()[sys.argv[1]](stillpoint.pool(), sys.argv[2] if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()
