"""The memory of a program with 64 MiB of durable memory, part by part, while it works and when it rests."""

import ctypes
import mmap
import time

from driver.benchmark import table
from driver.errors import Unavailable, WorkerFailed
from driver.sides import Side, bytes_on_medium, started

DESCRIPTION = """\
What a program with 64 MiB of durable memory takes in memory, part by part, while it works and when it rests.

The worker writes all of its memory once. Then two threads add to words at random, as fast as they can: words of all pages, or of 2 % of
them. Memory is read at the end of that, and once more after the program has rested. `durable` is the memory that the program works on,
`copies` all other anonymous memory of the process: copies that wait to be written, tables, and the program itself. `pool` is what the
pool's file has in memory: all of it in shared memory, its page cache on a disk. The sum is also given as a multiple of what the same
program takes that keeps its data with malloc."""
SECONDS = 15
HEAP_MIB = 64
PAGES_PER_MIB = 256
LITTLE_PERCENT = 2
REST_S = 15  # staging memory goes back in 10 seconds
MIB = 1 << 20
PLACES = (("shared memory, process", "memory", "process"), ("disk, power", "file", "power"))


def add_options(parser):
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--heap-mib", type=int, default=HEAP_MIB)
    parser.add_argument("--trackers", default="hooks,uffd", help="comma-separated (default %(default)s)")


def anonymous_by_mapping(process_id):
    """[(begin, end, bytes in memory)]: memory of no file, or of a file without a name."""
    found = []
    with open(f"/proc/{process_id}/smaps", encoding="utf-8", errors="replace") as lines_of_kernel:
        for line in lines_of_kernel:
            word, *rest = line.split()
            if "-" in word and not word.endswith(":"):
                begin, end = (int(one, 16) for one in word.split("-"))
                counted = "Pss:" if " /memfd:" in line else "Anonymous:"
            elif word == counted:
                found.append((begin, end, int(rest[0]) * 1024))
    return found


def cached_bytes(path):
    """The part of a file on a disk that the page cache has."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // mmap.PAGESIZE))()
        first_byte = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first_byte)), ctypes.c_size_t(len(mapped)), pages)
        del first_byte  # or the mapping cannot end
    if failed:
        raise WorkerFailed(f"mincore failed for {path}")
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


def pool_bytes(process):
    """In shared memory space that is reserved is memory, which mincore does not count before it is written."""
    if process.side.medium == "memory":
        return bytes_on_medium(process.folder)
    return sum(cached_bytes(path) for path in process.folder.rglob("*") if path.is_file() and path.stat().st_size)


def taken_by(process):
    data_at = process.ready["data_at"]
    mappings = anonymous_by_mapping(process.process.pid)
    durable = sum(size for begin, end, size in mappings if begin <= data_at < end)
    return {"durable": durable, "copies": sum(size for _, _, size in mappings) - durable, "pool": pool_bytes(process)}


def measure_side(bench, side, settings, seconds, rest_s):
    with started(bench, [side], settings) as (processes, left_out):
        if left_out:
            raise Unavailable(*left_out[0].rsplit(": ", 1))
        rate = processes[0].slice(seconds * 1000)
        moments = {"works": taken_by(processes[0])}
        time.sleep(rest_s)
        moments["rests"] = taken_by(processes[0])
    return {"name": side.name, "changed_pages": settings["changed_pages"], "moments": moments,
            "rate": rate["operations"] * 1e9 / rate["wall_ns"]}


def measure(bench):
    options = bench.options
    heap_mib, seconds, rest_s = (16, 1, 0) if options.quick else (options.heap_mib, options.seconds, REST_S)
    trackers = options.trackers.split(",")
    run = (("interval-ms", options.interval_ms), ("pool-size-mb", heap_mib))
    places = [place for place in PLACES if bench.place.folders[place[1]]]
    bench.progress.plan(2 * (1 + len(places) * len(trackers)))
    found = []
    for changed_pages in (0, heap_mib * PAGES_PER_MIB * LITTLE_PERCENT // 100):
        settings = {"heap_mib": heap_mib, "changed_pages": changed_pages}
        sides = [(Side("malloc", "memory_worker"), 0)]
        sides += [(Side(f"{where}, {tracker}", "memory_worker", (*run, ("durability", durability), ("tracker", tracker)), medium), 1)
                  for where, medium, durability in places for tracker in trackers]
        for side, is_durable in sides:
            bench.progress.step(f"{pages_named(changed_pages)}: {side.name}")
            found.append(measure_side(bench, side, settings | {"durable": is_durable}, seconds, rest_s if is_durable else 0))
    return {"heap_mib": heap_mib, "configurations": found}


def pages_named(changed_pages):
    return f"words of {changed_pages} pages" if changed_pages else "words all over"


def lines(result):
    rows = []
    for one in result["configurations"]:
        volatile = next(row for row in result["configurations"] if row["name"] == "malloc" and row["changed_pages"] == one["changed_pages"])
        base = sum(volatile["moments"]["works"].values())
        for moment, parts in one["moments"].items() if one is not volatile else ():
            rows.append([pages_named(one["changed_pages"]), one["name"], moment, *(f"{size / MIB:.0f}" for size in parts.values()),
                         f"{sum(parts.values()) / base:.2f}", f"{one['rate'] / volatile['rate']:.2f}"])
    return [f"memory of a program with {result['heap_mib']} MiB of durable memory, in MiB; last: its speed while it works",
            *table(["changed", "pool", "the program", "durable", "copies", "pool", "of malloc's", "of malloc's speed"], rows)]
