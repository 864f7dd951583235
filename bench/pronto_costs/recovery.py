"""Recovery: a process is killed and started again, by the size of its data and of the log that is to be run again."""

from driver.figures import spread

from .shown import at_most, duration, mebibytes, quartiles, short, table
from .sides import pronto

TITLE = "Recovery by the size of the data (§5.3.8)"
SAYS = """\
An object of the given size is filled, a snapshot is taken, and the process is killed: at once, or after operations of 1 KiB each that
amount to an eighth of the data and are in the log only. Then it is started again, with `--recovery lazy` (pages come when they are first
touched, the rest in the background; it is the default) or `eager` (all before `main`, into huge pages). Times run from the start of
the process, so with exec and loading; `last page`: the program has read every page of the object. What was read is compared with what
was written. `recovery_ns` is the runtime's figure, from opening the pool to the program's first operation."""

SIZES_MIB = (64, 256, 1024)
LOGGED_PART, ENTRY_BYTES = 8, 1024
WAYS = ("lazy", "eager")


def side(way):
    return pronto("pronto_image", run=(("interval-ms", 3_600_000), ("recovery", way)))


def sizes(options):
    return (16,) if options.quick else SIZES_MIB


def steps(options):
    return 2 * len(WAYS) * len(sizes(options))


def measure(bench):
    cells = []
    for mib in sizes(bench.options):
        for logged in (0, mib * (1 << 20) // LOGGED_PART // ENTRY_BYTES):
            for way in WAYS:
                bench.progress.step(f"recovery, {mebibytes(mib)}, {logged:,} operations in the log, {way}")
                cells.append({"mib": mib, "logged": logged, "way": way, **recovered(bench, mib, logged, side(way))})
    return {"cells": cells}


def recovered(bench, mib, logged, of_way):
    reason = bench.place.why_not(of_way)
    if reason:
        return {"left_out": [f"{of_way.name}: {reason}"], "rounds": 0}
    folder = bench.place.folder(of_way)
    settings, found = {"size_mib": mib}, []
    process = bench.place.start(of_way, settings, folder=folder)
    try:
        process.ask("fill", 1)
        for _ in range(bench.options.repeat):
            process.ask("snapshot")
            if logged:
                process.ask("log", logged, ENTRY_BYTES)
            process.kill()
            process = bench.place.start(of_way, {**settings, "expects": 1}, folder=folder)
            found.append({"first_operation_ns": process.first_operation_ns,
                          "last_page_ns": process.ready["last_page_ns"] - process.began_ns, "recovery_ns": process.ready["recovery_ns"]})
        process.end()
    finally:
        process.destroy()
        bench.place.remove(process)
    return {"left_out": [], "rounds": len(found), **{name: spread(one[name] for one in found) for name in found[0]}}


def lines(result):
    rows = [[mebibytes(cell["mib"]), short(cell["logged"]), cell["way"], quartiles(cell["first_operation_ns"]),
             quartiles(cell["last_page_ns"]), duration(cell["recovery_ns"]["median"])] for cell in result["cells"] if cell["rounds"]]
    return table(["data", "operations in the log", "loading", "first operation", "last page", "recovery_ns"], rows)


def bars(result):
    cell = next((cell for cell in result["cells"]
                 if cell["rounds"] and (cell["mib"], cell["logged"], cell["way"]) == (1024, 0, "lazy")), None)
    return [at_most("1 GiB recovered on memory, to its last page: under 0.4 s", 0.4e9, cell and cell["last_page_ns"]["median"], "ns"),
            at_most("1 GiB on memory, from the start of the process to its first operation: under 0.4 s", 0.4e9,
                    cell and cell["first_operation_ns"]["median"], "ns")]
