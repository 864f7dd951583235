"""Recovery: a process is killed and started again, by the size of its data and of the log that is to be run again."""

from driver.figures import spread

from . import bars as known
from .shown import duration, mebibytes, quartiles, short, table
from .sides import pronto

TITLE = "Recovery by the size of the data (§5.3.8)"
SAYS = """\
An object of the given size is filled, a snapshot is taken, and the process is killed: at once, or after operations of 1 KiB each that
amount to an eighth of the data and are in the log only. Then it is started again. Times run from the start of the process, so with exec
and loading; `last page`: the program has read every page of the object. What was read is compared with what was written. `recovery_ns`
is the runtime's figure, from opening the pool to the program's first operation."""

SIZES_MIB = (64, 256, 1024)
LOGGED_PART, ENTRY_BYTES = 8, 1024
SIDE = pronto("pronto_image", run=(("interval-ms", 3_600_000),))


def sizes(options):
    return (16,) if options.quick else SIZES_MIB


def steps(options):
    return 2 * len(sizes(options))


def measure(bench):
    cells = []
    for mib in sizes(bench.options):
        for logged in (0, mib * (1 << 20) // LOGGED_PART // ENTRY_BYTES):
            bench.progress.step(f"recovery, {mebibytes(mib)}, {logged:,} operations in the log")
            cells.append({"mib": mib, "logged": logged, **recovered(bench, mib, logged)})
    return {"cells": cells}


def recovered(bench, mib, logged):
    reason = bench.place.why_not(SIDE)
    if reason:
        return {"left_out": [f"{SIDE.name}: {reason}"], "rounds": 0}
    folder = bench.place.folder(SIDE)
    settings, found = {"size_mib": mib}, []
    process = bench.place.start(SIDE, settings, folder=folder)
    try:
        process.ask("fill", 1)
        for _ in range(bench.options.repeat):
            process.ask("snapshot")
            if logged:
                process.ask("log", logged, ENTRY_BYTES)
            process.kill()
            process = bench.place.start(SIDE, {**settings, "expects": 1}, folder=folder)
            found.append({"first_operation_ns": process.ready["first_operation_ns"] - process.began_ns,
                          "last_page_ns": process.ready["last_page_ns"] - process.began_ns, "recovery_ns": process.ready["recovery_ns"]})
        process.end()
    finally:
        process.destroy()
        bench.place.remove(process)
    return {"left_out": [], "rounds": len(found), **{name: spread(one[name] for one in found) for name in found[0]}}


def lines(result):
    rows = [[mebibytes(cell["mib"]), short(cell["logged"]), quartiles(cell["first_operation_ns"]), quartiles(cell["last_page_ns"]),
             duration(cell["recovery_ns"]["median"])] for cell in result["cells"] if cell["rounds"]]
    return table(["data", "operations in the log", "first operation", "last page", "recovery_ns"], rows)


def bars(result):
    cell = next((cell for cell in result["cells"] if cell["mib"] == 1024 and not cell["logged"] and cell["rounds"]), None)
    return [known.RECOVERY.judged(cell and cell["last_page_ns"]["median"]),
            known.FIRST_OPERATION.judged(cell and cell["first_operation_ns"]["median"])]
