"""The result as tables that a person can read; each is (heading, remark, column names, rows of texts)."""

from driver.tables import duration, of, ratio, short

SENTENCES = {
    "throughput": ("Throughput", "Closed loop, one request in flight on each connection; pool in shared memory, durability `process`, "
                                 "interval 100 ms. Server CPU: of all its threads, checkpoints included, for each request."),
    "pipelined": ("Throughput with eight requests in flight", "As above, with eight requests in flight on each connection: less of the "
                                                              "time goes into the kernel, so more of the server is seen."),
    "memaslap": ("Throughput as memaslap measures it", "A client that is not ours: memaslap of libmemcached-tools, keys of 16 bytes of its "
                                                       "own, of which it reads those that it has just written."),
    "latency": ("Latency", "Open loop, Poisson arrivals, the same rate for all; a latency runs from the time at which the request was "
                           "due. Ratios are the medians of the rounds' ratios."),
    "intervals": ("By interval", "Closed loop, 50:50; the pool is opened again with each interval, and every key is read before it is measured."),
    "throughput-power": ("Throughput with durability `power`", "As the first table, with the pool on this machine's disk."),
    "latency-power": ("Latency with durability `power`", "As the table of latencies, with the pool on this machine's disk."),
}
# [PMThreads, PLDI 2020, Table 2]: MB of writes saved in an interval of so many ms.
PAPER_SAVED_MB = {10: 3.7, 20: 7.7, 40: 15.2, 100: 37.8, 200: 76.1, 500: 176.5}


def with_quartiles(found, show):
    return "-" if found is None else f"{show(found['median'])} ({show(found['low'])} to {show(found['high'])})"


def size(value):
    return "-" if value is None else short(value) + ("B" if value >= 1000 else " B")


def rate_rows(cells):
    for cell in cells:
        for row in cell["configurations"]:
            yield [cell["title"].partition(", ")[2] if cell["part"] != "intervals" else f"{cell['interval_ms']} ms", row["name"],
                   short(of(row, "rate", "median")), with_quartiles(row["to_volatile"], ratio),
                   duration(of(row, "server_cpu_ns_per_operation", "median")), with_quartiles(row["server_cpu_to_volatile"], ratio),
                   size(row.get("bytes_per_checkpoint")), duration(row["epoch_ms"] * 1e6) if "epoch_ms" in row else "-"]


RATE_COLUMNS = ["mix", "server", "requests/s", "of stock", "server CPU", "of stock's", "written each checkpoint", "epoch reached"]


def latency_rows(cells):
    for cell in cells:
        for row in cell["configurations"]:
            behind = f", not keeping up in {row['behind']} of {row['rounds']} slices" if row.get("behind") else ""
            yield [cell["title"].partition(", ")[2], short(cell["offered_per_s"]), row["name"] + behind,
                   *(duration(of(row, "latency_ns", rank)) for rank in ("p50", "p99", "p99.9")),
                   *(with_quartiles(of(row, "latency_to_volatile", rank), ratio) for rank in ("p50", "p99", "p99.9"))]


LATENCY_COLUMNS = ["mix", "offered/s", "server", "p50", "p99", "p99.9", "p50 of stock", "p99 of stock", "p99.9 of stock"]


def interval_rows(intervals):
    for row in intervals:
        saved = PAPER_SAVED_MB.get(row["interval_ms"])
        if not row.get("checkpoints"):
            continue
        yield [f"{row['interval_ms']} ms", row["name"], str(row["checkpoints"]), duration(row["epoch_ms"] * 1e6),
               size(row["bytes_per_checkpoint"]), short(row["updates_per_checkpoint"]), size(row["changed_per_checkpoint"]),
               ratio(row["written_to_changed"]), duration(row["stop_ns"]["p50"]), duration(row["stop_ns"]["p99"]),
               duration(row["reopened_ns"]), "-" if saved is None else f"{saved} MB"]


INTERVAL_COLUMNS = ["interval", "server", "checkpoints", "epoch reached", "written each", "updates each", "changed each",
                    "written/changed", "stop p50", "stop p99", "start with a full pool", "paper: saved each"]


def memory_rows(memory):
    for row in memory:
        yield [row["name"], row["when"], size(row["resident_bytes"]), size(row["resident_bytes_max"]), size(row["anonymous_bytes"]),
               size(row["resident_bytes"] - row["anonymous_bytes"]),
               size(row["disk_bytes"]) if row["kind"] != "volatile" else "-", duration(row.get("start_ns")),
               short(row.get("load_rate_per_s"))]


MEMORY_COLUMNS = ["server", "when", "resident", "at most", "anonymous", "mapped", "pool on the medium", "start", "keys loaded/s"]


def tables_of(document):
    """[(heading, remark, columns, rows)] of all that was measured."""
    found = []
    for part, (heading, remark) in SENTENCES.items():
        cells = [cell for cell in document["cells"] if cell["part"] == part]
        if cells:
            is_latency = part.startswith("latency")
            columns = LATENCY_COLUMNS if is_latency else ["interval", *RATE_COLUMNS[1:]] if part == "intervals" else RATE_COLUMNS
            found.append((heading, remark, columns, list(latency_rows(cells) if is_latency else rate_rows(cells))))
    if document["intervals"]:
        found.append(("Bytes written in each interval", "One more slice for each interval, its checkpoints one by one. Changed: the "
                      "items that updates wrote, of which a page goes whole. The paper counts every store of the program instead.",
                      INTERVAL_COLUMNS, list(interval_rows(document["intervals"]))))
    if document["memory"]:
        found.append(("Memory and disk", "Resident memory that is not anonymous is what is mapped of programs and of a pool in shared memory.",
                      MEMORY_COLUMNS, list(memory_rows(document["memory"]))))
    return found
